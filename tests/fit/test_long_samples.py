"""Plans of runs that hang on samples of unknown length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """\
import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, TrainingArguments
from trl import SFTTrainer

model = AutoModelForCausalLM.from_pretrained("NousResearch/Llama-2-7b-hf", torch_dtype=torch.bfloat16)
args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1)
rows = load_dataset("json", data_files="rows.json")
adapter = LoraConfig(r=8)
trainer = SFTTrainer(model=model, args=args, train_dataset=rows, PACKINGmax_seq_length=4096, peft_config=adapter)
trainer.train()
"""


@pytest.mark.parametrize(
    ("packing", "flags", "written"),
    [
        ("", ["--fix"], False),
        ("", ["--fix", "--unsafe-fixes"], True),
        ("packing=True, ", ["--fix"], True),
    ],
)
def test_no_file_is_rewritten_unasked_where_samples_may_be_shorter(
    tmp_path: Path, packing: str, flags: list[str], written: bool
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("PACKING", packing))
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    lintfit("check", ".", "--gpu", "RTX 3090", "--gpus", "8", *flags, cwd=tmp_path)
    assert ("gradient_checkpointing=True" in script.read_text()) is written


def test_a_run_that_may_not_fit_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("PACKING", ""))
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    out = lintfit("check", ".", "--gpu", "RTX 3090", "--gpus", "8", "--output-format", "concise", cwd=tmp_path).out
    assert "and a run that may not fit" in out
    assert "passed" not in out
