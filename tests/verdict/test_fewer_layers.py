"""A script that keeps a part of a model's layers: what is counted is the whole model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

LOOP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype=torch.float32)
{cut}
model = model.to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(data, batch_size=1):
    model(**batch).loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("cut", "model", "verdict"),
    [
        ("model.model.layers = nn.ModuleList(model.model.layers[:8])", "meta-llama/Llama-2-7b-hf", "unknown"),
        ("model.model.layers = model.model.layers[: args.kept]", "meta-llama/Llama-2-7b-hf", "unknown"),
        (
            "m = model\nm.layers = nn.ModuleList([layer for i, layer in enumerate(m.layers) if i % 2])",
            "meta-llama/Llama-2-7b-hf",
            "unknown",
        ),
        ("model.layers = build(model.layers)", "meta-llama/Llama-2-7b-hf", "does-not-fit"),
        ("first = model.model.layers[:8]", "meta-llama/Llama-2-7b-hf", "does-not-fit"),
        ("model.model.layers = nn.ModuleList(model.model.layers[:8])", "Qwen/Qwen2.5-0.5B", "fits"),
    ],
)
def test_a_part_of_the_layers_is_not_the_whole_model(tmp_path: Path, cut: str, model: str, verdict: str) -> None:
    (tmp_path / "train.py").write_text(LOOP.format(cut=cut, model=model), "utf-8")
    (tmp_path / "run.sh").write_text("python train.py\n", "utf-8")
    flags = ("--gpu", "3090", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == verdict
