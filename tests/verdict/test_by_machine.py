"""What `accelerate config` wrote on the machine is open; a run may fit whatever it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype="bfloat16")
args = TrainingArguments("out", per_device_train_batch_size=1, bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=data).train()
"""


def judged(folder: Path, model: str, *flags: str) -> dict[str, Any]:
    (folder / "train.py").write_text(SCRIPT.format(model=model))
    (folder / "run.sh").write_text("accelerate launch train.py\n")
    command = ("check", "run.sh", "--gpu", "a100-80gb", "--seq-len", "512", "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, *flags, cwd=folder).json["runs"][0]
    return found


@pytest.mark.parametrize(
    ("model", "verdict"),
    [("Qwen/Qwen2.5-0.5B", "fits"), ("Qwen/Qwen2.5-7B", "unknown")],
)
def test_a_run_is_judged_where_every_engine_says_the_same(tmp_path: Path, model: str, verdict: str) -> None:
    found = judged(tmp_path, model, "--gpus", "1")
    assert found["verdict"] == verdict
    if verdict == "fits":
        assert any("accelerate config" in line for line in found["estimate"]["assumptions"])


def test_nothing_is_said_of_an_unknown_number_of_gpus(tmp_path: Path) -> None:
    assert judged(tmp_path, "Qwen/Qwen2.5-0.5B")["verdict"] in ("unknown", "fits")


def test_a_host_too_small_to_offload_to_is_no_gpu_too_small(tmp_path: Path) -> None:
    """Only a file that offloads needs that host: DDP fits the GPUs."""
    found = judged(tmp_path, "meta-llama/Llama-2-7b-hf", "--gpus", "2", "--host-memory", "32")
    assert found["verdict"] != "does-not-fit"


def test_every_strategy_of_fsdp_is_among_what_the_file_may_say(tmp_path: Path) -> None:
    """SHARD_GRAD_OP keeps what it gathers, which takes more than whole weights on each GPU do."""
    adapters = "from peft import LoraConfig, get_peft_model\nmodel = get_peft_model(model, LoraConfig(r=8))\nargs"
    (tmp_path / "train.py").write_text(SCRIPT.format(model="meta-llama/Llama-2-7b-hf").replace("args", adapters, 1))
    (tmp_path / "run.sh").write_text("accelerate launch train.py\n")
    command = ("check", "--gpu-memory", "20GiB", "--gpus", "2", "--seq-len", "512", "--output-format", "json")
    assert lintfit(*command, "run.sh", cwd=tmp_path).json["runs"][0]["verdict"] == "unknown"
    config = "distributed_type: FSDP\nnum_processes: 2\nmixed_precision: bf16\nfsdp_config: {STRATEGY}\n"
    strategy = "{fsdp_version: 1, fsdp_sharding_strategy: SHARD_GRAD_OP, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}"
    (tmp_path / "fsdp.yaml").write_text(config.replace("{STRATEGY}", strategy))
    (tmp_path / "run.sh").write_text("accelerate launch --config_file fsdp.yaml train.py\n")
    assert lintfit(*command, "run.sh", cwd=tmp_path).json["runs"][0]["verdict"] == "tight"
