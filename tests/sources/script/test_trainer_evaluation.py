"""What a Trainer evaluates with is read where it evaluates, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

MODEL = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, IntervalStrategy, Trainer, TrainingArguments
from trl import SFTConfig, SFTTrainer
model = AutoModelForCausalLM.from_pretrained("some/model")
"""


def said(arguments: str, trainer: str = "eval_dataset=data", after: str = "") -> dict[str, object]:
    text = f"{MODEL}args = TrainingArguments(output_dir='out', {arguments})\n"
    text += f"trainer = Trainer(model=model, args=args, train_dataset=data, {trainer})\ntrainer.train()\n{after}"
    found = values(script(text, ""))
    return {name: value for name, value in found.items() if name.startswith("eval_") or "generat" in name}


BATCH = {"eval_batch_size": 8, "eval_do_concat_batches": True}


@pytest.mark.parametrize(
    "arguments",
    [
        "eval_strategy='steps'",
        "eval_strategy='epoch'",
        "evaluation_strategy='steps'",
        "eval_strategy=IntervalStrategy.STEPS",
        "eval_on_start=True",
    ],
)
def test_a_strategy_evaluates_between_the_steps(arguments: str) -> None:
    assert said(arguments) == BATCH
    assert said(f"{arguments}, per_device_eval_batch_size=2") == {**BATCH, "eval_batch_size": 2}


@pytest.mark.parametrize(
    ("arguments", "trainer"),
    [
        ("", "eval_dataset=data"),
        ("eval_strategy='no', per_device_eval_batch_size=64", "eval_dataset=data"),
        ("do_eval=True", "eval_dataset=data"),
        ("eval_strategy='steps'", "eval_dataset=None"),
        ("eval_strategy='steps'", ""),
    ],
)
def test_nothing_is_evaluated(arguments: str, trainer: str) -> None:
    assert said(arguments, trainer) == {}


def test_a_strategy_may_hang_on_the_data_that_there_is() -> None:
    asked = "eval_strategy='steps' if data else 'no'"
    assert said(asked) == BATCH
    assert said("eval_strategy='steps' if wanted() else 'no'", "eval_dataset=data if wanted() else None") == {}, (
        "perhaps"
    )
    assert said(asked, "eval_dataset=None") == {}


def test_the_script_may_ask_itself() -> None:
    assert said("", after="trainer.evaluate()\n") == BATCH
    assert said("", "", "trainer.evaluate(held_out)\n") == BATCH
    assert said("", after="if wanted():\n    trainer.evaluate()\n") == {}, "perhaps"
    assert said("", after="metric.evaluate(data)\n") == {}, "not the Trainer"


def test_a_strategy_switches_do_eval_on() -> None:
    text = f"""{MODEL}
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
trainer = Trainer(model=model, args=args, train_dataset=data, eval_dataset=data if args.do_eval else None)
trainer.train()
if args.do_eval:
    trainer.evaluate()
"""
    flags = "--output_dir out --per_device_eval_batch_size 3"
    assert values(script(text, f"{flags} --eval_strategy steps"))["eval_batch_size"] == 3
    assert values(script(text, f"{flags} --do_eval"))["eval_batch_size"] == 3
    assert "eval_batch_size" not in values(script(text, flags))


def test_a_batch_that_cannot_be_told_is_unknown() -> None:
    assert said("eval_strategy='steps', per_device_eval_batch_size=pick()")["eval_batch_size"] is UNKNOWN


def test_predict_gives_the_logits_back_with_or_without_metrics() -> None:
    assert said("", "", "trainer.predict(held_out)\n") == {**BATCH, "eval_predictions": "kept"}
    assert (
        said("", "eval_dataset=data", "trainer.evaluate()\ntrainer.predict(held_out)\n")["eval_predictions"] == "kept"
    )
    assert said("prediction_loss_only=True", "", "trainer.predict(held_out)\n") == BATCH


METRICS = "eval_dataset=data, compute_metrics=metrics"


@pytest.mark.parametrize(
    ("arguments", "trainer", "predictions"),
    [
        ("", METRICS, "kept"),
        ("eval_accumulation_steps=4", METRICS, "kept"),
        ("", f"{METRICS}, preprocess_logits_for_metrics=argmax", "dropped"),
        ("", f"{METRICS}, preprocess_logits_for_metrics=None", "kept"),
        ("", "eval_dataset=data, compute_metrics=None", None),
        ("", "eval_dataset=data, compute_metrics=metrics if wanted() else None", None),
        ("prediction_loss_only=True", METRICS, None),
        ("prediction_loss_only=pick()", METRICS, None),
        ("batch_eval_metrics=True", METRICS, "gathered"),
        ("", f"{METRICS}, **more", None),
    ],
)
def test_what_becomes_of_the_logits(arguments: str, trainer: str, predictions: str | None) -> None:
    found = said(f"eval_strategy='steps', {arguments}", trainer)
    assert found.get("eval_predictions") == predictions
    assert found.get("eval_accumulation_steps") == (4 if "eval_accumulation" in arguments else None)


def test_no_logits_of_a_classifier_or_of_a_loop_of_the_scripts_own() -> None:
    text = MODEL.replace("AutoModelForCausalLM.from", "AutoModelForSequenceClassification.from")
    text += f"Trainer(model=model, args=TrainingArguments('out', eval_strategy='steps'), {METRICS}).train()\n"
    assert "eval_predictions" not in values(script(text, ""))
    own = "class Mine(Trainer):\n    def prediction_step(self, *args):\n        return None, None, None\n"
    own += f"Mine(model=model, args=TrainingArguments('out', eval_strategy='steps'), {METRICS}).train()\n"
    assert "eval_predictions" not in values(script(MODEL + own, ""))


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (
            "    def forward(self, input_ids, labels=None):\n        return self.head(self.lm.bert(input_ids)[0])\n",
            False,
        ),
        ("    name = 'mine'\n", True),
    ],
)
def test_a_class_of_the_scripts_own_may_give_a_few_labels(body: str, kept: bool) -> None:
    text = f"{MODEL}import torch\nclass Labels(torch.nn.Module):\n{body}"
    if kept:
        text = text.replace("torch.nn.Module", "AutoModelForCausalLM")
    made = "Labels(model)" if not kept else "Labels.from_pretrained('some/model')"
    text = text.replace('model = AutoModelForCausalLM.from_pretrained("some/model")\n', "") if kept else text
    text += (
        f"args = TrainingArguments('out', eval_strategy='steps')\nTrainer(model={made}, args=args, {METRICS}).train()\n"
    )
    assert ("eval_predictions" in values(script(text, ""))) is kept


def test_trls_sft_trainer_keeps_them_as_well() -> None:
    text = (
        f"{MODEL}SFTTrainer('some/model', args=SFTConfig(output_dir='out', eval_strategy='epoch'), {METRICS}).train()"
    )
    assert values(script(text, ""))["eval_predictions"] == "kept"


def test_answers_that_are_generated() -> None:
    text = f"""{MODEL}
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments
args = Seq2SeqTrainingArguments("out", eval_strategy="steps", predict_with_generate=True, generation_num_beams=4)
Seq2SeqTrainer(model=model, args=args, {METRICS}).train()
"""
    found = values(script(text, ""))
    assert (found["predict_with_generate"], found["generation_num_beams"]) == (True, 4)


def test_a_trainer_of_another_module_evaluates_in_its_own_way(tmp_path: Path) -> None:
    text = MODEL.replace("from trl", "from pairs import PairTrainer\nfrom trl")
    text += "args = TrainingArguments(output_dir='out', eval_strategy='steps')\n"
    text += (
        "trainer = PairTrainer(model=model, args=args, eval_dataset=data, compute_metrics=metrics)\ntrainer.train()\n"
    )
    for step, kept in (
        ("", True),
        ("    def prediction_step(self, model, inputs, *rest):\n        return pair\n", False),
    ):
        (tmp_path / "pairs.py").write_text(
            f"from transformers import Trainer\n\nclass PairTrainer(Trainer):\n    name = 'pairs'\n{step}"
        )
        (tmp_path / "train.py").write_text(text)
        (judged,) = load_runs([tmp_path / "train.py"], Options(isolated=True))[1]
        assert ("eval_predictions" in judged.run.settings) is kept


OWN = """
class Own(Trainer):
{}

args = TrainingArguments(output_dir="out", eval_strategy="steps")
Own(model=model, args=args, train_dataset=data, eval_dataset=data).train()
"""
GENERATES = """
    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        if prediction_loss_only:
            return super().prediction_step(model, inputs, prediction_loss_only)
        answers = model.generate(inputs["input_ids"])
        # outputs = model(**inputs)
        return None, answers, inputs["labels"]
"""
LOOPS = """
    def evaluate(self, eval_dataset=None):
        return {"accuracy": accuracy(self.model, self.eval_dataset)}
"""
ASKS = """
    def evaluate(self, eval_dataset=None):
        if not self.asked:
            return {}
        return super().evaluate(eval_dataset)
    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        if prediction_loss_only:
            return super().prediction_step(model, inputs, prediction_loss_only)
        loss, metrics = self.batch_loss(model, inputs)
        return loss, model.generate(inputs["input_ids"]), inputs["labels"]
    def batch_loss(self, model, inputs):
        return self.both(model, inputs), {}
    def both(self, model, inputs):
        return model(**inputs).loss
"""


@pytest.mark.parametrize(
    ("methods", "line"),
    [
        (GENERATES, "what Own.prediction_step evaluates by code of its own"),
        (LOOPS, "what Own.evaluate evaluates by code of its own"),
        (ASKS, None),
        ("    pass", None),
    ],
)
def test_what_a_trainer_evaluates_by_itself_is_not_counted(methods: str, line: str | None) -> None:
    found = values(script(MODEL + OWN.format(methods), ""))
    assert found.get("own_evaluation") == line
    assert found.get("eval_batch_size") == (8 if line is None else None)


def test_what_evaluates_by_itself_is_no_reason_where_nothing_is_evaluated() -> None:
    text = MODEL + OWN.format(GENERATES).replace('eval_strategy="steps"', 'eval_strategy="no"')
    assert "own_evaluation" not in values(script(text, ""))
