"""What a step of the script's own runs beside one pass of the model, and whose loss it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.script.test_packages import project
from tests.sources.scripts import script, values

TRAINER = """
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from trl import GKDTrainer, SFTTrainer

def helper(net, batch):
    return net(**batch).loss

def twice(net, batch):
    return net(**batch).loss + net(**batch).loss

class Own(Trainer):
    def pass_on(self, network, inputs):
        return network(**inputs)

    def get_loss(self, network, batch):
        return network(**batch).loss

    def {method}(self, model, inputs, return_outputs=False, num_items_in_batch=None):
{body}

class Further(Own):
    pass

model = AutoModelForCausalLM.from_pretrained("some/model")
{name}(model=model, args=TrainingArguments("out")).train()
"""


def step(*lines: str, method: str = "compute_loss", name: str = "Own") -> tuple[str | None, bool]:
    """What is not counted, and whether there is a loss of its own."""
    body = "\n".join(f"        {line}" for line in lines)
    settings = script(TRAINER.format(method=method, body=body, name=name)).settings
    uncounted = settings.get("uncounted")
    return uncounted.value if uncounted is not None else None, "own_loss" in settings


ONE = "outputs = model(**inputs)"


@pytest.mark.parametrize(
    "lines",
    [
        (ONE, "return outputs.loss"),
        (ONE, 'loss = outputs["loss"] if isinstance(outputs, dict) else outputs[0]', "return loss"),
        ("loss = super().compute_loss(model, inputs)", "self.log({'loss': loss})", "return loss"),
        ("return helper(model, inputs)",),
        ("return self.pass_on(model, inputs).loss",),
        ("return self.get_loss(model, inputs)",),
        ("if self.plain:", "    return model(**inputs).loss", ONE, "return outputs.loss"),
        (
            "if self.plain:",
            "    outputs = model(**inputs)",
            "else:",
            "    outputs = model(**inputs, a=1)",
            "return outputs[0]",
        ),
        ("unwrapped = self.accelerator.unwrap_model(model)", ONE, "return outputs.loss"),
        (ONE, "accuracy = outputs.logits.argmax(-1)", "self.log(accuracy)", "return outputs.loss"),
        ("features = tokenizer(**inputs.pop('text'))", ONE, "return outputs.loss"),
    ],
)
def test_one_pass_with_the_models_loss(lines: tuple[str, ...]) -> None:
    assert step(*lines) == (None, False)


@pytest.mark.parametrize(
    "lines",
    [
        (ONE, "return F.cross_entropy(outputs.logits.flatten(0, 1), inputs['labels'].flatten())"),
        (ONE, "logits = outputs.get('logits')", "return criterion(logits, inputs['labels'])"),
        (ONE, 'shifted = outputs["logits"][..., :-1, :]', "loss = criterion(shifted)", "return (loss, outputs)"),
    ],
)
def test_one_pass_with_a_loss_of_its_own(lines: tuple[str, ...]) -> None:
    assert step(*lines) == (None, True)


@pytest.mark.parametrize(
    ("lines", "uncounted"),
    [
        (
            (ONE, "more = model(**inputs)", "return outputs.loss + more.loss"),
            "the 2 passes of the model that Own.compute_loss makes before it goes backward",
        ),
        (
            ("return twice(model, inputs)",),
            "the 2 passes of the model that Own.compute_loss makes before it goes backward",
        ),
        (
            (ONE, "with torch.no_grad():", "    asked = self.teacher(**inputs)", "return outputs.loss"),
            "what self.teacher in Own.compute_loss runs beside one pass of the model",
        ),
        (
            (ONE, "seen = self.other(input_ids=inputs['input_ids'])", "return outputs.loss"),
            "what self.other in Own.compute_loss runs beside one pass of the model",
        ),
        (
            ("with torch.no_grad():", "    before = model(**inputs)", ONE, "return outputs.loss"),
            "what model in Own.compute_loss runs beside one pass of the model",
        ),
        (
            ("with torch.no_grad():", "    before = helper(model, inputs)", ONE, "return outputs.loss"),
            "what helper in Own.compute_loss runs beside one pass of the model",
        ),
        (
            ("with torch.no_grad():", "    before = super().compute_loss(model, inputs)", ONE, "return outputs.loss"),
            "what super().compute_loss in Own.compute_loss runs beside one pass of the model",
        ),
        (
            ("return elsewhere(model, inputs)",),
            "what elsewhere in Own.compute_loss runs beside one pass of the model",
        ),
        (
            ("return self.loss_of(inputs)",),
            "what Own.compute_loss runs, which calls the model out of sight",
        ),
        (
            ("pair = both(inputs)", 'logits = model(pair["concatenated_input_ids"]).logits', "return loss_of(logits)"),
            "what Own.compute_loss makes of pairs of answers, in one pass",
        ),
        (
            ('pair = inputs["x"].repeat(4)', 'return loss_of(model(pair["concatenated_input_ids"]).logits)'),
            "the batch that Own.compute_loss makes",
        ),
        (
            ("more = model.generate(inputs)", ONE, "return outputs.loss + model(more).loss"),
            "the 2 passes of the model that Own.compute_loss makes of batches of its own",
        ),
    ],
)
def test_more_than_one_pass_is_not_counted(lines: tuple[str, ...], uncounted: str) -> None:
    assert step(*lines)[0] == uncounted


def test_a_step_of_its_own_that_computes_the_loss_as_the_trainer_does() -> None:
    lines = ("model.train()", "loss = self.compute_loss(model, inputs)", "loss.backward()", "return loss.detach()")
    assert step(*lines, method="training_step") == (None, False)
    assert step("return super().training_step(model, inputs)", method="training_step") == (None, False)


def test_a_pass_of_another_platforms_is_none() -> None:
    away = "if is_sagemaker_mp_enabled():\n            return smp_forward_backward(model, inputs, 1)"
    assert step(away, ONE, "return outputs.loss")[0] is None


def test_a_method_is_inherited() -> None:
    found, _ = step(ONE, "more = model(**inputs)", "return outputs.loss", name="Further")
    assert found == "the 2 passes of the model that Own.compute_loss makes before it goes backward"


BASE = """
import torch
from transformers import Trainer

class Base(Trainer):
    def before(self, model, inputs):
        with torch.no_grad():
            return model(**inputs)
"""
CHILD = """
from base import Base
from transformers import AutoModelForCausalLM, TrainingArguments

class Own(Base):
    def compute_loss(self, model, inputs, return_outputs=False):
        return model(**inputs).loss + self.before(model, inputs).loss

Own(model=AutoModelForCausalLM.from_pretrained("some/model"), args=TrainingArguments("out")).train()
"""


def test_a_method_of_another_file_without_gradients(tmp_path: Path) -> None:
    found = values(project(tmp_path, {"base.py": BASE, "train.py": CHILD}))
    assert found["uncounted"] == "what model in Own.compute_loss runs beside one pass of the model"


@pytest.mark.parametrize("alias", ["chosen = Own", "chosen = Own if asked() else Trainer"])
def test_a_class_by_another_name(alias: str) -> None:
    made = f'{alias}\nchosen(model=model, args=TrainingArguments("out")).train()'
    body = f"        {ONE}\n        more = model(**inputs)\n        return outputs.loss"
    text = TRAINER.format(method="compute_loss", body=body, name="Own")
    source = script(text.replace('Own(model=model, args=TrainingArguments("out")).train()', made))
    assert "2 passes" in source.settings["uncounted"].value
    assert source.settings["trainer"].value == "causal-lm"


@pytest.mark.parametrize(("name", "uncounted"), [("GKDTrainer", "the step of TRL's GKDTrainer"), ("SFTTrainer", None)])
def test_trainers_of_trl_whose_step_nobody_has_counted(name: str, uncounted: str | None) -> None:
    assert step(ONE, "return outputs.loss", name=name)[0] == uncounted


LOOP = """
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("some/model").cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
{body}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("lines", "uncounted", "own_loss"),
    [
        (("loss = model(**batch).loss", "loss.backward()"), False, False),
        (("out = model(**batch)", "loss = out.loss", "print(out.logits.mean())", "loss.backward()"), False, False),
        (("out = model(**batch)", "loss = criterion(out.logits, batch)", "loss.backward()"), False, True),
        (("loss = criterion(model(**batch).logits, batch)", "loss.backward()"), False, True),
        (("a, b = model(**batch[0]), model(**batch[1])", "loss = a.loss + b.loss", "loss.backward()"), True, False),
        (("model(**batch[0]).loss.backward()", "model(**batch[1]).loss.backward()"), False, False),
        (
            ("if batch:", "    loss = model(**batch).loss", "else:", "    loss = model(a=1).loss", "loss.backward()"),
            False,
            False,
        ),
    ],
)
def test_loops(lines: tuple[str, ...], uncounted: bool, own_loss: bool) -> None:
    settings = script(LOOP.format(body="\n".join(f"    {line}" for line in lines))).settings
    assert ("uncounted" in settings, "own_loss" in settings) == (uncounted, own_loss)


@pytest.mark.parametrize(
    ("head", "out_of_sight"),
    [
        ("from torch.utils.data import DataLoader\nloader = DataLoader(data)", False),
        ("from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=4)", False),
        ("loader = project.batches()", True),
    ],
)
def test_batches_out_of_sight(head: str, out_of_sight: bool) -> None:
    text = LOOP.format(body="    model(**batch).loss.backward()").replace("for batch", f"{head}\nfor batch")
    assert script(text).facts.batches_out_of_sight is out_of_sight


def test_a_trainer_makes_its_batches_itself() -> None:
    text = TRAINER.format(method="compute_loss", body="        return model(**inputs).loss", name="Own")
    assert not script(text).facts.batches_out_of_sight


OWN_PAIRS = """
from transformers import AutoModelForCausalLM, {base}, TrainingArguments
from trl import DPOTrainer

class OwnDPOTrainer({base}):
    def compute_loss(self, model, inputs, return_outputs=False):
        return loss_of(model.forward(inputs["both"]).logits)

model = AutoModelForCausalLM.from_pretrained("some/model")
OwnDPOTrainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(("base", "own"), [("Trainer", True), ("DPOTrainer", False)])
def test_a_trainer_of_pairs_that_is_none_of_trls(base: str, own: bool) -> None:
    settings = script(OWN_PAIRS.format(base=base)).settings
    assert settings["trainer"].value == "dpo"
    assert ("uncounted" in settings) is own
