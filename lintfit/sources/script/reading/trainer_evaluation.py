"""What a Trainer evaluates with, read only where it does evaluate: between its steps, or because the script asks it to.

Sources: transformers ``Trainer.__init__``, ``Trainer.evaluate``, ``Trainer.predict``, ``Trainer.evaluation_loop``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.settings.uncounted import OWN_EVALUATION
from lintfit.sources.script.interpreter import models
from lintfit.sources.script.interpreter.values import Class, Function, Object, Record, alternatives, objects, plain
from lintfit.sources.script.reading import own_evaluator
from lintfit.sources.script.reading.collector import Reading, something, sure_none
from lintfit.sources.script.reading.facts import made_by
from lintfit.sources.training_arguments import EVALUATION

_KEEPING = frozenset({"transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer"})
"""Trainers whose evaluation is ``Trainer.evaluation_loop``, as it is."""
_LANGUAGE_MODEL = re.compile(r"(CausalLM|LMHeadModel|Seq2SeqLM|ConditionalGeneration|MaskedLM)\.from_pretrained$")
_OWN_LOOP = re.compile(r"def (prediction_step|evaluation_loop|evaluate|compute_loss)\(")


def read(reading: Reading) -> None:
    """Note the evaluation's batch and what becomes of its logits."""
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is None or made is None or trainer.taken is False or "PPO" in trainer.name:
        return
    asked = _asked(reading, trainer)
    if asked is None and not _between_steps(reading, trainer, made):
        return
    own = own_evaluator.by_itself(reading.calls.documents, trainer)
    if own is not None:
        reading.state("own_evaluation", OWN_EVALUATION.format(own[0]), own[1])
        return
    record = made.call if made.call is not None and not made.parsed else None
    for name, fields in EVALUATION.items():
        value = reading.attribute(made, *fields)
        if value is not None and plain(value) is not None:
            reading.put(name, value, record)
    _predictions(reading, trainer, made, asked)


def _between_steps(reading: Reading, trainer: Record, made: Object) -> bool:
    """Whether the Trainer evaluates while it trains. It refuses a strategy without data."""
    data = trainer.keyword("eval_dataset")
    if sure_none(data) and not (data is None and trainer.spreads):
        return False
    first = reading.attribute(made, "eval_on_start")
    return models.has_strategy(made.attributes, data) or (first is not None and plain(first) is True)


def _asked(reading: Reading, trainer: Record) -> Record | None:
    """The call by which the script itself has the Trainer predict, or evaluate, if this run surely makes it."""
    data = trainer.keyword("eval_dataset")
    found = None
    for record in reading.records:
        if record.taken is not True or record.name not in ("evaluate", "predict"):
            continue
        if not made_by(record.receiver, trainer):
            continue
        if record.passed or not sure_none(data):
            found = record
        if record.name == "predict":
            break
    return found


def _predictions(reading: Reading, trainer: Record, made: Object, asked: Record | None) -> None:
    """What becomes of the logits: kept for ``compute_metrics``, handed to it batch by batch, or reduced before.

    ``predict`` gives them back whether or not there are metrics.
    """
    metrics = trainer.keyword("compute_metrics")
    wanted = metrics is not None and all(something(option) for option in alternatives(metrics))
    predicts = asked is not None and asked.name == "predict"
    if not wanted and not predicts:
        return
    if not _known_loop(reading, trainer) or _flag(reading, made, "prediction_loss_only") is not False:
        return
    node: cst.CSTNode = next(
        (passed.node for passed in trainer.passed if passed.name == "compute_metrics"), trainer.node
    )
    detail = ""
    if asked is not None and predicts and not wanted:
        node, detail = asked.node, PREDICTED
    if not sure_none(trainer.keyword("preprocess_logits_for_metrics")):
        reading.state("eval_predictions", "dropped", node, detail)
        return
    alone = wanted and _flag(reading, made, "batch_eval_metrics") is not False
    reading.state("eval_predictions", "gathered" if alone else "kept", node, detail)


PREDICTED = "predict gives back all logits"


def _flag(reading: Reading, made: Object, name: str) -> object:
    """A switch that is off unless somebody says otherwise; ``UNKNOWN`` where that is not statically known."""
    value = reading.attribute(made, name)
    known = plain(value) if value is not None else False
    return False if known is None else known


def _own_classes(reading: Reading) -> Iterator[Class]:
    """The classes of the project's own that what is trained is of."""
    return (each.cls for each in objects(reading.found.trained) if each.cls is not None)


def _known_loop(reading: Reading, trainer: Record) -> bool:
    """Whether transformers' own loop evaluates a language model, whose logits are as wide as its vocabulary."""
    if trainer.function not in _KEEPING or trainer.spreads or trainer.taken is not True:
        return False
    texts = list(reading.calls.texts())
    called = cst.Module(()).code_for_node(trainer.node.func).rpartition(".")[2]
    own = called != trainer.name  # a class of the project's own, which may stand in any of its modules
    if any(_OWN_LOOP.search(text) for text in (texts if own else texts[:1])):
        return False
    if any(isinstance(cls.member("forward"), Function) for cls in _own_classes(reading)):
        return False  # which may make a few labels of what the language model gives
    loads = [load for load in reading.found.loads if load.taken is not False]
    named = trainer.function == "trl.SFTTrainer" and not loads
    return named or (len(loads) == 1 and bool(_LANGUAGE_MODEL.search(loads[0].function)))
