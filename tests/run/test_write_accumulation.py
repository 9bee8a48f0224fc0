"""Accumulation is not written where nobody would count: the effective batch would change."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from lintfit.run.write import why_not, write_one
from tests.fit.places import MODEL

LOOP = f"""\
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("{MODEL}", torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(dataset, batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
"""
STEP = ("accelerator.backward(model(**batch).loss)", "optimizer.step()")
EVERY = LOOP + "".join(f"    {line}\n" for line in STEP)
COUNTED = LOOP + "    with accelerator.accumulate(model):\n" + "".join(f"        {line}\n" for line in STEP)
YAML = "distributed_type: 'NO'\nnum_processes: 1\ngradient_accumulation_steps: 2\n"


@pytest.mark.parametrize("config", [False, True])
@pytest.mark.parametrize(("script", "written"), [(EVERY, False), (COUNTED, True)])
def test_only_where_accelerate_counts(script: str, written: bool, config: bool, tmp_path: Path) -> None:
    command = "accelerate launch --config_file acc.yaml train.py\n" if config else "accelerate launch train.py\n"
    files = {"train.py": script, "run.sh": command, **({"acc.yaml": YAML} if config else {})}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (judged,) = load_runs([tmp_path / "run.sh"], Options(isolated=True))[1]
    edits = write_one(judged.run, "gradient_accumulation_steps", 4)
    assert bool(edits) is written
    if not written:
        assert "accelerator.accumulate" in why_not(judged.run, "gradient_accumulation_steps", 4)
