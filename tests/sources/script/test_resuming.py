"""Scripts that go on from a checkpoint, and those that may."""

from __future__ import annotations

import pytest

from lintfit.settings.uncounted import KEPT_STATES, KEPT_WEIGHTS
from tests.sources.scripts import script, values

TRAINER = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
trainer = Trainer(AutoModelForCausalLM.from_pretrained("m"), args)
{}
"""
LOOP = """
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM
accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("m")
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
{}
for batch in loader:
    accelerator.backward(model(**batch).loss)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "flags", "resumes"),
    [
        ("trainer.train(resume_from_checkpoint=True)", "", True),
        ('trainer.train("out/checkpoint-100")', "", True),
        ("trainer.train(args.resume_from_checkpoint)", "--output_dir o --resume_from_checkpoint o/checkpoint-1", True),
        ("trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)", "--output_dir o", None),
        ("trainer.train(resume_from_checkpoint=False)", "", None),
        ("trainer.train(resume_from_checkpoint=None)", "", None),
        ("trainer.train(resume_from_checkpoint=last_checkpoint(args.output_dir))", "", None),
        ("trainer.train()", "--output_dir o --resume_from_checkpoint o/checkpoint-1", None),
        ("if found():\n    trainer.train(resume_from_checkpoint=True)\nelse:\n    trainer.train()", "", None),
    ],
)
def test_a_trainer_that_resumes(line: str, flags: str, resumes: bool | None) -> None:
    """The argument of ``TrainingArguments`` alone does nothing: scripts hand it on, or not."""
    assert values(script(TRAINER.format(line), flags)).get("resumes") is resumes


@pytest.mark.parametrize(
    ("line", "resumes"),
    [
        ('accelerator.load_state("out")', True),
        ('if again:\n    accelerator.load_state("out")', None),
        ('model.load_state("out")', None),
        ("", None),
    ],
)
def test_a_loop_with_accelerate(line: str, resumes: bool | None) -> None:
    assert values(script(LOOP.format(line), "")).get("resumes") is resumes


@pytest.mark.parametrize(
    ("line", "gathers"),
    [("accelerator.get_state_dict(model)", True), ("other.get_state_dict(model)", None), ("", None)],
)
def test_a_state_dict_that_accelerate_gathers(line: str, gathers: bool | None) -> None:
    assert values(script(LOOP.format("") + line + "\n", "")).get("gathered_state_dict") is gathers


@pytest.mark.parametrize(
    ("other", "resumes"),
    [("accelerator", True), ("None", None), ("Accelerator(mixed_precision='bf16')", None)],
)
def test_what_may_be_another_s_is_not_sure(other: str, resumes: bool | None) -> None:
    chosen = f"chosen = accelerator if some() else {other}\nchosen.load_state('out')"
    assert values(script(LOOP.format(chosen), "")).get("resumes") is resumes


OWN_LOOP = """
import torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m").to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
{}
for batch in loader:
    model(**batch).loss.backward()
    optimizer.step()
"""
LOADED = 'state = torch.load("last.pt", map_location={})\nmodel.load_state_dict(state["model"])\n'
STATES = 'optimizer.load_state_dict(state["optimizer"])\n'


@pytest.mark.parametrize(
    ("lines", "torch", "stays"),
    [
        (LOADED.format('"cuda"') + STATES, "2.0.1", KEPT_STATES),
        (LOADED.format('"cuda"') + STATES, "2.1.0", KEPT_WEIGHTS),
        (LOADED.format('"cuda:0"'), "2.0.1", KEPT_WEIGHTS),
        (LOADED.format('"cpu"') + STATES, "2.0.1", None),
        (LOADED.format('"cuda"') + STATES + "del state\n", "2.0.1", None),
    ],
)
def test_a_checkpoint_whose_name_stands_stays_on_the_gpu(lines: str, torch: str, stays: str | None) -> None:
    found = script(OWN_LOOP.format(lines), versions={"torch": torch})
    assert values(found).get("uncounted") == stays
