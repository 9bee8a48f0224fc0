from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.script_calls import arguments_call, calls_of
from lintfit.documents.patterns import lazy_pattern
from lintfit.run.model import Run
from lintfit.settings.model import Place, Setting
from lintfit.sources.script.model import Argument

_CONFIGS = lazy_pattern(r"^trl\..*(SFT|DPO|KTO|CPO|ORPO|Reward|BCO)Config$")
_KINDS = {"causal-lm": "SFT", "dpo": "DPO", "kto": "KTO", "reward": "Reward"}
_SINCE = {"SFT": "0.16", "DPO": "0.13"}
"""TRL from which None means no limit; before, the tokenizer's own or 512 took its place."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    asked = _asked(run)
    if run.training is None or asked is None:
        return
    kind, length, place = asked
    packing = run.training.argument("packing")
    if length.value is not None or length.provenance.kind != "file":
        return
    if (packing is not None and packing.value is not False) or _cuts_images(run):
        return
    if older((run,), "trl", _SINCE.get(kind, "0.16")):
        return
    yield Report(
        place,
        "max_length=None: nothing is cut, so that the longest sample decides the peak",
        help="set max_length to what the GPUs hold; lintfit estimate --seq-len N says it",
    )


def _cuts_images(run: Run) -> bool:
    """Whether a limit would cut the tokens of images, so that TRL asks for None ("Please increase `max_length` or set
    it to `None`", 1.16 ``sft_trainer.py``, ``dpo_trainer.py``): it trains on images where it has a processor, which it
    loads itself for such a model where it is handed no tokenizer."""
    loads = [call.function for call in calls_of(run.script, "from_pretrained")] if run.script is not None else []
    if any("Processor." in function for function in loads):
        return True
    of_text = run.value("text_only") is True or any("Tokenizer" in function for function in loads)
    return run.facts is not None and run.facts.vision is not None and not of_text


def _asked(run: Run) -> tuple[str, Argument | Setting, Place] | None:
    """The kind of TRL's config with its ``max_length`` and where that stands; None where it has none."""
    if run.recipe is not None:
        length = run.recipe.argument("max_length") if run.recipe.uses_trl else None
        kind = _KINDS.get(str(run.value("trainer")))
        if length is None or kind is None:
            return None
        return kind, length, length.provenance.place or anchor(run)
    made = arguments_call(run)
    argument = made.argument("max_length") if made is not None else None
    if made is None or argument is None or not _CONFIGS.search(made.function):
        return None
    return made.name.removesuffix("Config"), argument, argument.whole
