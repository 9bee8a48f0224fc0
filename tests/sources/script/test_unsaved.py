"""Runs of a Trainer that certainly save nothing, and those that may."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import FileText
from lintfit.documents.python_reader import PythonDocument, read_python
from tests.sources.scripts import PARSED, script, values

SCRIPT = """
import utils
from transformers import AutoModelForCausalLM, AutoTokenizer, SaveStrategy, Trainer, TrainerCallback, TrainingArguments
class Mine(TrainerCallback):
    pass
tokenizer = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m")
trainer = Trainer(model, TrainingArguments("out", {arguments}), callbacks=[{callbacks}])
trainer.train()
{after}
"""
NEVER = 'save_strategy="no"'


def _saves(arguments: str = NEVER, after: str = "", callbacks: str = "", **kwargs: object) -> object:
    text = SCRIPT.format(arguments=arguments, after=after, callbacks=callbacks)
    return values(script(text, "", **kwargs)).get("saves")


@pytest.mark.parametrize(
    ("arguments", "saves"),
    [
        (NEVER, False),
        ("save_strategy=SaveStrategy.NO", False),
        (NEVER + ", save_total_limit=2, push_to_hub=False", False),
        ("", None),
        ('save_strategy="epoch"', None),
        ("save_strategy=chosen()", None),
        (NEVER + ", enable_jit_checkpoint=True", None),
        (NEVER + ", **more", False),  # Python refuses the same keyword twice
        ("**more", None),
    ],
)
def test_the_arguments_of_a_trainer(arguments: str, saves: bool | None) -> None:
    assert _saves(arguments) is saves


@pytest.mark.parametrize(
    ("line", "saves"),
    [
        ("trainer.evaluate()  # trainer.save_model() comes later", False),
        ("tokenizer.save_pretrained('out')\ntrainer.save_state()\ntrainer.save_metrics('all', {})", False),
        ("print(model)", False),
        ("final_save_path = 'out/final'\n# trainer.save_model(final_save_path)", False),
        ("keep(final_save_path)", False),
        ("model.save_to_folder('out')", None),
        ("trainer.save_model()", None),
        ("if chosen():\n    model.save_pretrained('out')", None),
        ("accelerator.save_state('out')", None),
        ("torch.save(model.state_dict(), 'm.pt')", None),
        ("trainer.push_to_hub()", None),
        ("state = model.state_dict()", None),
        ("utils.finish(trainer)", None),
        ("utils.finish(model)", None),
        ("utils.log('done')", False),
        ("os.environ['WANDB_LOG_MODEL'] = 'end'", None),
    ],
)
def test_what_else_may_save(line: str, saves: bool | None) -> None:
    assert _saves(after=line) is saves


@pytest.mark.parametrize(("callback", "saves"), [("Mine()", False), ("utils.Callback()", None)])
def test_callbacks(callback: str, saves: bool | None) -> None:
    assert _saves(callbacks=callback) is saves


@pytest.mark.parametrize(("body", "saves"), [("print(t)", False), ("t.save_model('out')", None)])
def test_a_function_of_another_file(body: str, saves: bool | None) -> None:
    def opened(path: Path) -> PythonDocument | None:
        text = f"def finish(t):\n    {body}\n"
        return read_python(FileText(path, text)) if path.name == "utils.py" else None

    text = SCRIPT.format(arguments=NEVER, after="finish(trainer)", callbacks="")
    text = text.replace("import utils", "from utils import finish")
    assert values(script(text, "", open_file=opened)).get("saves") is saves


def test_the_command_line() -> None:
    """``save_strategy`` is a field of what HfArgumentParser fills."""
    assert values(script(PARSED, "--model_name_or_path m --save_strategy no"))["saves"] is False
    assert "saves" not in values(script(PARSED, "--model_name_or_path m --save_strategy steps"))
    assert "saves" not in values(script(PARSED, "--model_name_or_path m"))


def test_a_variable_of_the_launch_line_has_a_callback_save() -> None:
    assert _saves(env={"WANDB_LOG_MODEL": "checkpoint"}) is None
    assert _saves(env={"WANDB_PROJECT": "mine"}) is False
