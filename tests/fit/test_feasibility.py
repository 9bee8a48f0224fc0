"""What is asked of a change before anything is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.fit.feasibility import unfit_for_stage_3
from lintfit.options.model import Options
from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
weights = trainer.model.state_dict()
"""
ACCELERATE = """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero3_save_16bit_model: true
  zero_stage: 2
num_processes: 2
"""
OPTIONS = Options(gpu="A100-SXM4-80GB", seq_len=512, isolated=True)


@pytest.mark.parametrize(("line", "refused"), [("", True), ("engine.save_16bit_model('out')\n", False)])
def test_only_a_call_saves_what_zero3_shards(
    line: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of the same words in Accelerate's YAML is about what Accelerate saves, which the script does by itself."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT + line)
    Path("accelerate.yaml").write_text(ACCELERATE)
    Path("run.sh").write_text("accelerate launch --config_file accelerate.yaml train.py\n")
    (judged,) = load_runs([Path("run.sh")], OPTIONS)[1]
    assert ("saves state_dict() of the model" in unfit_for_stage_3(judged.run, {"zero_stage": 3})) is refused


LOOP = """\
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    accelerator.backward(model(**batch).loss)
    optimizer.step()
if accelerator.is_main_process:
    print("done")
    {saved}
"""


@pytest.mark.parametrize(
    ("saved", "refused"),
    [
        ('accelerator.unwrap_model(model).save_pretrained("out")', True),
        ("model.generate(**question)", True),
        ('tokenizer.save_pretrained("out")', False),
        ('model.save_pretrained("out", state_dict=accelerator.get_state_dict(model))', False),
    ],
)
def test_a_loop_that_runs_its_model_on_one_rank_gets_no_zero3(
    saved: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(LOOP.format(saved=saved))
    Path("accelerate.yaml").write_text(ACCELERATE)
    Path("run.sh").write_text("accelerate launch --config_file accelerate.yaml train.py\n")
    (judged,) = load_runs([Path("run.sh")], OPTIONS)[1]
    reason = unfit_for_stage_3(judged.run, {"zero_stage": 3})
    assert reason == (
        "train.py:10 runs or saves the model on one rank, and ZeRO-3 gathers its parameters on all of them" * refused
    )


@pytest.mark.parametrize(("each", "by_hand"), [("8", True), ("4", False)])
def test_a_launch_that_starts_more_processes_than_there_are_gpus_is_not_written_for(
    each: str, by_hand: bool, tmp_path: Path
) -> None:
    script = SCRIPT.replace("weights = trainer.model.state_dict()\n", "").replace('"out"', '"out", bf16=True')
    (tmp_path / "train.py").write_text(script.replace("0.5B", "7B"))
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node {each} --nnodes $SLURM_NNODES train.py\n")
    command = (
        "run.sh",
        "--gpu",
        "a100-40gb",
        "--gpus",
        "4",
        "--seq-len",
        "512",
        "--isolated",
        "--output-format",
        "json",
    )
    (run,) = lintfit("check", *command, cwd=tmp_path).json["runs"]
    assert ("starts 8 processes on each machine" in run["plan"].get("by_hand", "")) is by_hand


REFUSING = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from transformers.integrations import deepspeed

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
if args.lora and deepspeed.is_deepspeed_zero3_enabled():
    {then}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(("then", "refused"), [('raise RuntimeError("no ZeRO-3")', True), ('print("ZeRO-3")', False)])
def test_a_script_that_may_refuse_zero3_is_left_to_a_person(
    then: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(REFUSING.format(then=then))
    Path("accelerate.yaml").write_text(ACCELERATE)
    Path("run.sh").write_text("accelerate launch --config_file accelerate.yaml train.py --output_dir out\n")
    (judged,) = load_runs([Path("run.sh")], OPTIONS)[1]
    assert unfit_for_stage_3(judged.run, {"zero_stage": 3}) == "train.py:6 may refuse ZeRO-3" * refused
    assert unfit_for_stage_3(judged.run, {"zero_stage": 1}) == ""
