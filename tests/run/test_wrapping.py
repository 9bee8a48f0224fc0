"""Whether FSDP makes units of layers: who says so, and what an estimate makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.findings.results import RunResult
from lintfit.options.model import Options
from lintfit.settings.values import Fsdp
from tests.support import lintfit

LOOP = """
from accelerate import Accelerator
from transformers import AutoModelForCausalLM
accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype="bfloat16")
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader([], batch_size=1))
for batch in loader:
    accelerator.backward(model(**batch).loss)
    optimizer.step()
"""
TRAINER = """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype="bfloat16")
{}
Trainer(model=model, args=TrainingArguments("out", bf16=True, per_device_train_batch_size=1)).train()
"""
LORA = "model = get_peft_model(model, LoraConfig(r=8))"
YAML = "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n  fsdp_version: {}\n"
LAUNCH = "accelerate launch --config_file acc.yaml {} train.py\n"


def run(folder: Path, script: str, yaml: str, flags: str = "") -> RunResult:
    (folder / "train.py").write_text(script)
    (folder / "acc.yaml").write_text(yaml)
    (folder / "run.sh").write_text(LAUNCH.format(flags))
    options = Options(gpu="A100-80GB", seq_len=1024, isolated=True, origins={"gpu": "--gpu", "seq_len": "--seq-len"})
    return load_runs([folder / "run.sh"], options)[1][0]


@pytest.mark.parametrize(
    ("policy", "flags", "wraps"),
    [
        ("NO_WRAP", "", False),
        ("", "", False),
        ("TRANSFORMER_BASED_WRAP", "", True),
        ("SIZE_BASED_WRAP", "", True),
        ("NO_WRAP", "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP", True),
        ("TRANSFORMER_BASED_WRAP", "--fsdp_auto_wrap_policy NO_WRAP", False),
    ],
)
def test_the_policy_decides(policy: str, flags: str, wraps: bool, tmp_path: Path) -> None:
    yaml = YAML.format(1) + (f"  fsdp_auto_wrap_policy: {policy}\n" if policy else "")
    spec = run(tmp_path, LOOP, yaml, flags).run.spec
    assert spec is not None and spec.fsdp == Fsdp(1, auto_wrap=wraps)


@pytest.mark.parametrize(
    ("version", "script", "wraps"),
    [(1, TRAINER.format(""), False), (1, TRAINER.format(LORA), True), (2, TRAINER.format(LORA), False)],
)
def test_pefts_policy_takes_the_place_of_it_in_a_trainer(
    version: int, script: str, wraps: bool, tmp_path: Path
) -> None:
    spec = run(tmp_path, script, YAML.format(version) + "  fsdp_auto_wrap_policy: NO_WRAP\n").run.spec
    assert spec is not None and spec.fsdp is not None and spec.fsdp.auto_wrap is wraps


def test_the_estimate_gathers_what_the_rule_says(tmp_path: Path) -> None:
    found = run(tmp_path, LOOP, YAML.format(1) + "  fsdp_auto_wrap_policy: NO_WRAP\n")
    assert found.estimate is not None and found.run.facts is not None
    at_the_loss = next(m for m in found.estimate.moments if m.name == "loss, backward")
    whole = at_the_loss.components["communication_buffers"]
    assert whole == 2 * found.run.facts.parameters
    flags = ("--isolated", "--gpu", "A100-80GB", "--seq-len", "1024", "--select", "fsdp-no-wrap")
    shown = lintfit("check", "run.sh", *flags, "--output-format", "concise", cwd=tmp_path).out
    assert f"each GPU gathers {whole / 2**30:.1f} GiB" in shown


@pytest.mark.parametrize("policy", ["  fsdp_auto_wrap_policy: NO_WRAP\n", ""])
def test_a_plan_wraps_layers(policy: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "acc.yaml").write_text(YAML.format(1) + policy)
    (tmp_path / "run.sh").write_text(LAUNCH.format(""))
    flags = ("--isolated", "--gpu", "RTX 6000 Ada", "--seq-len", "1024", "--host-memory", "256GiB")
    (found,) = lintfit("fit", "run.sh", *flags, "--output-format", "json", cwd=tmp_path).json["runs"]
    assert found["verdict"] == "does-not-fit"
    first = found["plans"][0]
    assert first["name"] == "FSDP1 FULL_SHARD layer by layer"
    assert lintfit("fit", "run.sh", *flags, "--apply", "1", cwd=tmp_path).status == 0
    assert "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n" in (tmp_path / "acc.yaml").read_text()
