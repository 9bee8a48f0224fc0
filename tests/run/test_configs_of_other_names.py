"""A config is what a launch names it for, whatever it is called: read, mended and read again as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import Kind
from lintfit.documents.workspace import Workspace
from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
Trainer(model=model, args=args).train()
"""
FLAGS = "--per_device_train_batch_size 16 --bf16 True --output_dir out"
ZERO = """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 0
  offload_optimizer_device: none
  offload_param_device: none
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
SHARDED = """\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_sharding_strategy: SHARD_GRAD_OP
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
STAGES = """\
{
  "bf16": {"enabled": true},
  "train_micro_batch_size_per_gpu": 16,
  "gradient_accumulation_steps": 1,
  "zero_optimization": {"stage": 0}
}
"""
HARDWARE = ("--isolated", "--gpu", "A100 40GB", "--gpus", "8", "--seq-len", "2048")
NAMED = [("acc-fsdp.conf", SHARDED), ("acc", ZERO), ("zero.YML", ZERO), ("stages.JSON", STAGES), ("stages.mk", STAGES)]


def _tree(folder: Path, name: str, text: str) -> None:
    by_accelerate, by_deepspeed = f"accelerate launch --config_file {name} train.py", "deepspeed --num_gpus 8 train.py"
    launch = f"{by_deepspeed} --deepspeed {name}" if text is STAGES else by_accelerate
    (folder / "run.sh").write_text(f"{launch} {FLAGS}\n")
    (folder / "train.py").write_text(SCRIPT)
    (folder / name).write_text(text)


@pytest.mark.parametrize(("name", "text"), NAMED, ids=[name for name, _ in NAMED])
def test_a_plan_is_made_and_carried_out(name: str, text: str, tmp_path: Path) -> None:
    _tree(tmp_path, name, text)
    checked = lintfit("check", ".", *HARDWARE, "--output-format", "json", cwd=tmp_path)
    assert (checked.status, checked.err) == (1, "")
    (run,) = checked.json["runs"]
    assert (run["verdict"], run["plan"]["verdict"]) == ("does-not-fit", "fits")
    fixed = lintfit("check", ".", *HARDWARE, "--fix", cwd=tmp_path)
    assert (fixed.err, "1 finding" in fixed.out) == ("", True)
    if text in (ZERO, STAGES):
        assert (tmp_path / name).read_text() != text
    again = lintfit("estimate", ".", *HARDWARE, "--output-format", "json", cwd=tmp_path)
    assert [each["verdict"] for each in again.json["runs"]] == ["fits"]


def test_a_plan_of_fit_is_written(tmp_path: Path) -> None:
    _tree(tmp_path, "acc.conf", ZERO)
    assert (lintfit("fit", ".", *HARDWARE, "--diff", "1", cwd=tmp_path).status) == 0
    applied = lintfit("fit", ".", *HARDWARE, "--apply", "1", cwd=tmp_path)
    assert (applied.status, applied.err) == (0, "")
    assert "zero_stage: 2" in (tmp_path / "acc.conf").read_text()


def test_a_file_keeps_its_role_where_its_name_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "acc.conf").write_text(ZERO)
    (tmp_path / "ds.json").write_text(STAGES)
    workspace = Workspace(tmp_path)
    first = workspace.read(Path("acc.conf"), Kind.YAML)
    assert workspace.read(Path("acc.conf")) is first
    workspace.read(Path("ds.json"), Kind.YAML)
    assert workspace.read(Path("ds.json")).kind is Kind.JSON, "a name that tells is not overruled for others"
    assert workspace.with_overlay({Path("acc.conf"): SHARDED}).read(Path("acc.conf")).kind is Kind.YAML
