"""A launch that starts more processes than there are GPUs: its ranks will be others, and so is what fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
Trainer(model=model, args=args).train()
"""
LAUNCH = "torchrun --nproc_per_node 8 train.py --bf16 True --output_dir out --per_device_train_batch_size 1\n"


@pytest.mark.parametrize(("gpus", "planned"), [("8", True), ("4", False)])
def test_it_gets_no_plan(tmp_path: Path, gpus: str, planned: bool) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text(LAUNCH)
    flags = ("run.sh", "--gpu", "A100-40GB", "--gpus", gpus, "--host-memory", "1TiB", "--seq-len", "1024")
    found = lintfit("check", *flags, "--output-format", "json", cwd=tmp_path).json
    assert (found["runs"][0]["plan"] is not None) is planned
    assert ("processes-exceed-visible-gpus" in [each["rule"] for each in found["findings"]]) is not planned
    said = lintfit("fit", *flags, cwd=tmp_path).out
    assert ("more processes than the 4 GPUs" in said) is not planned
