"""No plan asks for what the run's versions refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check
from lintfit.findings.results import RunResult
from lintfit.fit.axes import fsdp
from lintfit.fit.options import Effect, Subject
from lintfit.fit.space import Space
from lintfit.fit.taken import has_liger_plugin, takes
from lintfit.options.model import Options

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
args = TrainingArguments(output_dir="out", per_device_train_batch_size=1, bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=args).train()
"""
RECIPE = """\
base_model: mistralai/Mistral-7B-v0.1
datasets:
  - path: data.jsonl
    type: {kind}
sequence_len: 2048
micro_batch_size: 8
gradient_accumulation_steps: 2
num_epochs: 1
optimizer: adamw_torch
learning_rate: 0.0002
bf16: true
output_dir: out
"""


def _judged(file: Path, text: str, **versions: str) -> RunResult:
    file.write_text(text)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 1, "versions": versions}
    return check([file], Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))).runs[0]


def _names(judged: RunResult) -> set[str]:
    assert judged.run.spec is not None
    space = Space(Subject(judged.run, judged.run.spec), Effect.NUMERICS)
    return {option.name for axis in (*space.passing, *space.lasting) for option in axis}


@pytest.mark.parametrize(("version", "known"), [("4.19.2", False), ("4.28.1", False), ("4.31.0", True), ("", True)])
def test_optimizers_that_a_release_does_not_know(tmp_path: Path, version: str, known: bool) -> None:
    judged = _judged(tmp_path / "train.py", SCRIPT, **({"transformers": version} if version else {}))
    assert ("paged AdamW" in _names(judged)) is known
    assert takes(judged.run, "optim", "adamw_torch") and not takes(judged.run, "optim", "nobody's")
    assert takes(judged.run, "use_liger_kernel") is (not version)


@pytest.mark.parametrize(
    ("kind", "versions", "known"),
    [
        ("alpaca", {}, True),
        ("sharegpt", {}, False),
        ("sharegpt.load_role", {}, False),
        ("alpaca", {"axolotl": "0.4.1"}, False),
        ("alpaca", {"axolotl": "0.5.0"}, True),
    ],
)
def test_the_plugin_of_liger(tmp_path: Path, kind: str, versions: dict[str, str], known: bool) -> None:
    judged = _judged(tmp_path / "sft.yaml", RECIPE.format(kind=kind), **versions)
    assert has_liger_plugin(judged.run) is known
    assert ("Liger's fused loss" in _names(judged)) is known


@pytest.mark.parametrize(("pin", "known"), [("", True), ("==0.5.2", False), ("==0.5.9", True), (">=0.5.2", True)])
def test_what_the_pinned_liger_fuses(tmp_path: Path, pin: str, known: bool) -> None:
    (tmp_path / "setup.py").write_text(f'install_requires = [\n    "liger_kernel{pin}",\n]\n')
    judged = _judged(tmp_path / "train.py", SCRIPT.replace("Qwen2.5-1.5B", "Qwen3-1.7B"))
    assert ("Liger's fused loss" in _names(judged)) is known
    older = _judged(tmp_path / "train.py", SCRIPT)
    assert "Liger's fused loss" in _names(older)


@pytest.mark.parametrize(("trl", "known"), [("0.14.0", True), ("0.15.2", False), ("0.16.1", True)])
@pytest.mark.parametrize("trainer", ["SFTTrainer", "Trainer"])
def test_sft_of_one_release_takes_logits_for_its_accuracy(trainer: str, trl: str, known: bool, tmp_path: Path) -> None:
    script = SCRIPT.replace("Trainer(model", f"{trainer}(model")
    script = script if trainer == "Trainer" else f"from trl import SFTTrainer\n{script}"
    judged = _judged(tmp_path / "train.py", script, trl=trl)
    assert ("Liger's fused loss" in _names(judged)) is (known or trainer == "Trainer")


GRPO = """\
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
args = GRPOConfig("out", bf16=True, per_device_train_batch_size=8, max_completion_length=512{more})
GRPOTrainer(model=model, args=args, reward_funcs=len, train_dataset=data).train()
"""


def _sharded(folder: Path, launch: str, **versions: str) -> set[str]:
    (folder / "run.sh").write_text(launch)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 4, "versions": versions}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    run = next(each.run for each in check([folder / "run.sh"], options).runs if each.run.launch is not None)
    assert run.spec is not None and run.spec.engine == "ddp"
    return {option.name for option in fsdp.options(Subject(run, run.spec))}


@pytest.mark.parametrize(
    ("more", "known"),
    [("", True), (', use_vllm=True, vllm_mode="server"', False), (', use_vllm=True, vllm_mode="colocate"', False)],
)
def test_no_fsdp_where_vllm_generates(tmp_path: Path, more: str, known: bool) -> None:
    (tmp_path / "train.py").write_text(GRPO.format(more=more))
    launch = "accelerate launch --num_processes 4 --mixed_precision bf16 train.py\n"
    assert bool(_sharded(tmp_path, launch)) is known


@pytest.mark.parametrize(("trl", "known"), [("<0.16", False), ("0.17.0", False), ("0.18.0", True)])
def test_no_fsdp_where_grpo_generates_by_what_it_unwraps(tmp_path: Path, trl: str, known: bool) -> None:
    (tmp_path / "train.py").write_text(GRPO.format(more=""))
    launch = "accelerate launch --num_processes 4 --mixed_precision bf16 train.py\n"
    assert bool(_sharded(tmp_path, launch, trl=trl)) is known


@pytest.mark.parametrize(
    ("transformers", "launch", "version"),
    [
        ("4.57.0", "torchrun --nproc_per_node 4 train.py\n", 1),
        ("5.5.4", "torchrun --nproc_per_node 4 train.py\n", 1),
        ("5.10.1", "torchrun --nproc_per_node 4 train.py\n", 2),
        ("5.5.4", "accelerate launch --config_file ddp.yaml train.py\n", 2),
    ],
)
def test_the_version_of_fsdp_that_a_trainer_has_unasked(
    tmp_path: Path, transformers: str, launch: str, version: int
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "ddp.yaml").write_text("distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 4\n")
    names = _sharded(tmp_path, launch, transformers=transformers)
    assert names == {f"FSDP{version}", f"FSDP{version} offloaded to the host"}
