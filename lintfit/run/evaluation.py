"""What a run evaluates with, as far as its files say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lintfit.memory.spec import Evaluation
from lintfit.settings.kinds import LARGEST_COUNT, LARGEST_SEQUENCE
from lintfit.settings.model import Setting, is_count


def evaluation(settings: Mapping[str, Setting], values: Mapping[str, Any], doubtful: list[str]) -> Evaluation | None:
    """The evaluation of a run; None where it has none, or only batches of the training's size.

    A batch that is written but is not statically known is taken as the least, and named in ``doubtful``.
    """
    batch = settings.get("eval_batch_size")
    if batch is None or values.get("trainer") == "ppo":
        return None
    if not is_count(batch.value, LARGEST_COUNT):
        doubtful.append("eval_batch_size")
    predictions = _value(settings, "eval_predictions")
    steps = _value(settings, "eval_accumulation_steps")
    new = _value(settings, "eval_new_tokens")
    beams = _value(settings, "generation_num_beams")
    return Evaluation(
        batch_size=batch.value if is_count(batch.value, LARGEST_COUNT) else 1,
        predictions=predictions if predictions in ("dropped", "gathered", "kept", "held", "listed") else "none",
        accumulation_steps=steps if is_count(steps, LARGEST_COUNT) else None,
        concat_batches=_value(settings, "eval_do_concat_batches") is not False,
        generates=_generates(settings),
        new_tokens=new if is_count(new, LARGEST_SEQUENCE) else None,
        graph=_value(settings, "eval_graph") is True,
        beams=beams if is_count(beams, LARGEST_COUNT) else 1,
    )


def _generates(settings: Mapping[str, Setting]) -> bool | Literal["only"]:
    """Whether answers are generated, and the loss is not computed."""
    by_loop = _value(settings, "eval_generates")
    if by_loop == "only":
        return "only"
    return by_loop is not None or _value(settings, "predict_with_generate") is True


def _value(settings: Mapping[str, Setting], name: str) -> Any:
    setting = settings.get(name)
    return setting.value if setting is not None and setting.known else None
