"""A loop of the script's own in ``nn.DataParallel``: each GPU that the process sees gets a part of the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

LOOP = """\
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained("gpt2")
data = tokenizer(texts, max_length=1024, truncation=True, padding="max_length", return_tensors="pt")
if torch.cuda.device_count() > 1:
    model = {wrapper}
model = model.to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(data, batch_size={batch}):
    model(**batch).loss.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
WRAPPED = "torch.nn.DataParallel(model)"


def run_of(folder: Path, wrapper: str, batch: int, gpus: int = 8, visible: str = "", model: str = "gpt2") -> Any:
    (folder / "train.py").write_text(LOOP.format(wrapper=wrapper, batch=batch, model=model), "utf-8")
    (folder / "run.sh").write_text(f"{visible}python train.py\n", "utf-8")
    flags = ("--gpu", "3090", "--gpus", str(gpus), "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=folder).json["runs"]
    return run


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"wrapper": WRAPPED, "batch": 128}, "unknown"),
        ({"wrapper": WRAPPED, "batch": 1}, "fits"),
        ({"wrapper": WRAPPED, "batch": 128, "model": "gpt2-xl"}, "does-not-fit"),
        ({"wrapper": WRAPPED, "batch": 128, "gpus": 1}, "does-not-fit"),
        ({"wrapper": WRAPPED, "batch": 128, "visible": "CUDA_VISIBLE_DEVICES=0 "}, "does-not-fit"),
        ({"wrapper": "torch.compile(model)", "batch": 128}, "does-not-fit"),
    ],
)
def test_a_part_of_the_batch_is_not_the_whole(tmp_path: Path, more: dict[str, Any], verdict: str) -> None:
    assert run_of(tmp_path, **more)["verdict"] == verdict
