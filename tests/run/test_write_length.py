"""The length of a sequence is written where a file states it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit.applying import Applied, apply_changes
from lintfit.options.model import Options

PARSED = """\
from dataclasses import dataclass, field

import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer


@dataclass
class Arguments(transformers.TrainingArguments):
    model_max_length: int = field(default=4096)


(args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B", model_max_length=args.model_max_length)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=args).train()
"""
KEYWORD = """\
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", max_length=4096, bf16=True)
SFTTrainer(model="Qwen/Qwen2.5-7B", args=args).train()
"""
GUESSED = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=TrainingArguments(output_dir="out", bf16=True)).train()
"""
LAUNCH = "torchrun --nproc_per_node 2 train.py --output_dir out --bf16 True"


@pytest.mark.parametrize(
    ("script", "launch", "file", "line"),
    [
        (KEYWORD, "", "train.py", 'args = SFTConfig(output_dir="out", max_length=2048, bf16=True)'),
        (PARSED, LAUNCH, "run.sh", "    --model_max_length 2048"),
        (PARSED, f"{LAUNCH} --model_max_length 8192", "run.sh", f"{LAUNCH} --model_max_length 2048"),
    ],
    ids=["keyword", "default", "flag"],
)
def test_a_stated_length_is_written_at_home(
    script: str, launch: str, file: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(script)
    if launch:
        Path("run.sh").write_text(f"{launch}\n")
    options = Options(isolated=True)
    (judged,) = load_runs([Path("run.sh" if launch else "train.py")], options)[1]
    carried = apply_changes(judged.run, {"seq_len": 2048}, Workspace(), options)
    assert isinstance(carried, Applied) and carried.run.spec is not None
    assert carried.run.spec.seq_len == 2048
    assert [path.name for path in carried.texts] == [file]
    assert line in next(iter(carried.texts.values())).splitlines()


def test_a_length_that_nobody_states_is_nobody_s_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(GUESSED)
    (judged,) = load_runs([Path("train.py")], Options(isolated=True))[1]
    assert isinstance(apply_changes(judged.run, {"seq_len": 512}, Workspace(), Options(isolated=True)), str)


GENERATES = """\
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainerCallback, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B")


class Answers(TrainerCallback):
    def on_evaluate(self, args, state, control, model=None, **kwargs):
        for sample in samples:
            inputs = tokenizer(sample, return_tensors="pt", padding=False, max_length=4096)
            model.generate(**inputs)


model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
args = TrainingArguments(output_dir="out", bf16=True)
trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[Answers()])
Answers().on_evaluate(args, None, None, model=model)
trainer.train()
"""


def test_a_length_of_what_is_generated_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(GENERATES)
    workspace, options = Workspace(), Options(gpu="A100-80GB", gpus=1, isolated=True)
    (judged,) = load_runs([Path("train.py")], options)[1]
    made = apply_changes(judged.run, {"seq_len": 2048}, workspace, options)
    assert isinstance(made, str) and "max_length=4096" in Path("train.py").read_text()
