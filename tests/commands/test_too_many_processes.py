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


@pytest.mark.parametrize(("shown", "planned"), [("0,1,2,3", True), ("0,1,2", False)])
def test_it_gets_no_plan_where_it_shows_itself_too_few(tmp_path: Path, shown: str, planned: bool) -> None:
    """Accelerate's file starts one more than the command shows: a copy of it would start as many."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "ddp.yaml").write_text("distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 4\n")
    flags = "train.py --bf16 True --output_dir out --per_device_train_batch_size 1"
    start = f"CUDA_VISIBLE_DEVICES={shown} accelerate launch --config_file ddp.yaml"
    (tmp_path / "run.sh").write_text(f"{start} {flags}\n")
    told = ("run.sh", "--gpu", "A100-40GB", "--gpus", "8", "--host-memory", "1TiB", "--seq-len", "1024")
    found = lintfit("check", *told, "--output-format", "json", cwd=tmp_path).json
    assert (found["runs"][0]["plan"] is not None) is planned
    assert ("processes-exceed-visible-gpus" in [each["rule"] for each in found["findings"]]) is not planned
    said = lintfit("fit", *told, cwd=tmp_path).out
    assert ("more processes than the 3 GPUs that CUDA_VISIBLE_DEVICES shows" in said) is not planned
