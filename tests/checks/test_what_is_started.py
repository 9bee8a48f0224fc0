"""What counts only for what is started is information elsewhere; and so is what only ``--gpus`` speaks against."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.checks.helpers.context import RunContext
from lintfit.checks.helpers.registry import errors_of, run_run_checks
from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from tests.support import lintfit

SCRIPT = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=TrainingArguments(output_dir="out"), train_dataset=load()).train()
"""


def _said(folder: Path, *flags: str) -> str:
    said = lintfit("check", ".", "--isolated", "--gpu", "RTX 3090", "--verbose", *flags, cwd=folder)
    return " ".join(said.out.split())


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ("torchrun --nproc_per_node 16 train.py", "info: 16 processes, but the machine has 8 GPUs (--gpus)"),
        (
            "CUDA_VISIBLE_DEVICES=8,9 torchrun --nproc_per_node 2 train.py",
            "info: CUDA_VISIBLE_DEVICES names GPUs",
        ),
        (
            "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 train.py",
            "error: 4 processes, but CUDA_VISIBLE_DEVICES shows 2 GPUs",
        ),
    ],
)
def test_processes_against_the_command_line(launch: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text(f"{launch}\n")
    assert said in _said(tmp_path, "--gpus", "8")


BOTH = '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "fp16": {"enabled": true}}\n'
INITIALIZE = """
import deepspeed
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
model, *_ = deepspeed.initialize(model=model, config="ds.json")
for batch in loader:
    model.backward(model(**batch).loss)
    model.step()
"""


def test_a_config_that_nothing_is_given(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(BOTH)
    said = _said(tmp_path)
    assert "info: bf16 and fp16 are both enabled" in said
    assert "(nothing is seen to be started with this config)" in said


def test_a_config_that_a_script_hands_on(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(BOTH)
    (tmp_path / "train.py").write_text(INITIALIZE)
    assert "error: bf16 and fp16 are both enabled" in _said(tmp_path)


ADAPTERS = """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments("out", bf16=True, gradient_checkpointing=True)
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")
model = get_peft_model(model, LoraConfig(r=8, target_modules=["{target}"]))
Trainer(model=model, args=args, train_dataset=load()).train()
"""


@pytest.mark.parametrize(
    ("launch", "target", "rule"),
    [
        ("torchrun --nproc_per_node 2 train.py\n", "q_proj", "reentrant-checkpoint-ddp"),
        (None, "c_attn", "lora-targets-refused"),
    ],
)
def test_what_may_stop_a_run_is_an_error_to_plans(
    launch: str | None, target: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(ADAPTERS.format(target=target))
    Path("requirements.txt").write_text("transformers==4.46.3\n")
    if launch is not None:
        Path("run.sh").write_text(launch)
    options = Options(gpu="RTX 3090", gpus=2, seq_len=512, isolated=True)
    (judged,) = load_runs([Path("train.py" if launch is None else "run.sh")], options)[1]
    context = RunContext(judged.run, judged.estimate)
    assert [str(each.severity) for each in run_run_checks(context) if each.rule == rule] == ["info"]
    assert rule in errors_of(judged.run)
