"""What rules ask of a script beside its facts: fields of the trainer's arguments, and calls by name."""

from __future__ import annotations

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script

TRAINED = """
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    def evaluate(flag):
        if flag:
            torch.load("a.pt")

    model = AutoModelForCausalLM.from_pretrained("a/b")
    args = TrainingArguments("out", auto_find_batch_size=True, per_device_eval_batch_size=make())
    for step in range(2):
        evaluate(step)
    if False:
        torch.load("never.pt")
    torch.load("b.pt")
    Trainer(model, args).train()
"""


def test_a_field_is_as_passed_or_the_default() -> None:
    source = script(TRAINED)
    passed = source.argument("auto_find_batch_size")
    assert passed is not None and passed.value is True and passed.provenance.kind == "file"
    default = source.argument("evaluation_strategy", "eval_strategy")
    assert default is not None and default.value in ("no", None) and default.provenance.kind == "default"


def test_a_field_that_cannot_be_told_is_unknown() -> None:
    found = script(TRAINED).argument("per_device_eval_batch_size")
    assert found is not None and not found.known


def test_without_arguments_there_is_none() -> None:
    assert script("import torch\nloss.backward()\n").argument("learning_rate") is None


def test_calls_come_once_each_and_not_from_dead_branches() -> None:
    names = [call.positional[0].value for call in script(TRAINED).calls("load")]
    assert names == ["a.pt", "b.pt"]


def test_a_field_is_written_where_it_stands() -> None:
    source = script(TRAINED)
    (edit,) = source.write_argument("auto_find_batch_size", False) or ()
    assert (edit.document.slice(edit.edit.span) if edit.document else "", edit.edit.text) == ("True", "False")
    assert script(TRAINED).argument("auto_find_batch_size").value is not UNKNOWN  # type: ignore[union-attr]
