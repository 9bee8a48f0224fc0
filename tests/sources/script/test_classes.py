"""Scripts that build and train within classes of their own: inherited constructors, properties, wrapped models."""

from __future__ import annotations

from pathlib import Path

from lintfit.settings.model import UNKNOWN
from tests.sources.script.test_packages import project
from tests.sources.scripts import script, values

RUNNER = """
from abc import ABC, abstractmethod
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

class Base(ABC):
    def __init__(self, name, size):
        self.name = name
        self.arguments = TrainingArguments("out", per_device_train_batch_size=size)
        self.trainer = self.load_trainer()

    @abstractmethod
    def load_trainer(self):
        pass

    @property
    def model(self):
        return AutoModelForCausalLM.from_pretrained(self.name, dtype="bfloat16")

class Own(ABC, Trainer):
    pass

class Runner(Base):
    def __init__(self, name, size):
        super().__init__(name, size)

    def load_trainer(self):
        return Own(model=self.model, args=self.arguments)

Runner("m", 3).trainer.train()
"""


def test_a_constructor_above_calls_what_the_class_below_defines() -> None:
    found = values(script(RUNNER, ""))
    assert (found["model"], found["weights_dtype"], found["micro_batch_size"]) == ("m", "bf16", 3)


def test_super_goes_up_from_the_class_that_defines_the_method() -> None:
    text = RUNNER.replace('Runner("m", 3)', 'Last("m", 5)').replace(
        "\nLast(", "\nclass Last(Runner):\n    def __init__(self, *given):\n        super().__init__(*given)\n\nLast("
    )
    assert values(script(text, ""))["micro_batch_size"] == 5


def test_super_of_a_library_is_not_followed() -> None:
    text = """
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    class Own(Trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
    model = AutoModelForCausalLM.from_pretrained("m")
    Own(model=model, args=TrainingArguments("out", gradient_accumulation_steps=4)).train()
    """
    assert values(script(text, ""))["gradient_accumulation_steps"] == 4


def test_a_script_far_below_the_root_of_its_package(tmp_path: Path) -> None:
    deep = "kit/finetune/embedder/decoder/base"
    load = "from transformers import AutoModelForCausalLM\nload = AutoModelForCausalLM.from_pretrained\n"
    train = """
        from transformers import Trainer, TrainingArguments
        from kit.models import load
        Trainer(model=load("m"), args=TrainingArguments("out")).train()
    """
    found = project(tmp_path, {"kit/models.py": load, f"{deep}/__main__.py": train}, script=f"{deep}/__main__.py")
    assert values(found)["model"] == "m"


def test_what_a_module_of_the_projects_own_does_with_a_batch_is_not_known() -> None:
    text = """
    from torch import nn
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    class Ranker(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
        def forward(self, queries, passages):
            return self.base(**queries), self.base(**passages)
    model = Ranker(AutoModelForCausalLM.from_pretrained("m"))
    Trainer(model=model, args=TrainingArguments("out")).train()
    """
    found = values(script(text, ""))
    assert (found["model"], found["trainer"]) == ("m", UNKNOWN)
