from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.readers import older, reader_of
from lintfit.checks.helpers.runs import stated_at
from lintfit.checks.helpers.script_calls import calls_of
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.run.model import Run
from lintfit.run.write import GATHERING as _KEYS
from lintfit.settings.model import Place

AFTER_TRAINING = True

_ADAPTERS_APART = "4.47"
"""Later versions of transformers gather the adapters of a PEFT model whatever the key says."""


_FUNCTION = lazy_pattern(r"^[ \t]*(?:async )?def (\w+)\(", re.MULTILINE)
_GATHERED = "GatheredParameters("
_FOR_SAVING = lazy_pattern(r"save|saving|state|gather|zero_?3|export", re.IGNORECASE)
_SAVES_ITSELF = lazy_pattern(r"^[ \t]+def (_save_checkpoint|_save|save_model)\(", re.MULTILINE)
"""Methods of the Trainer by which it writes a checkpoint."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    if run.mentions("zero_to_fp32", "get_fp32_state_dict_from_zero_checkpoint", ".save_16bit_model(") or _gathers(run):
        return
    place = _place(run)
    if place is None:
        return
    match reader_of((run,)):
        case "transformers":
            yield from _trainer(run, place)
        case "accelerate":
            yield from _by_hand(run, place)


def _trainer(run: Run, place: Place) -> Iterator[Report]:
    if not _runs_the_loop(run) or not _saves(run):
        return
    if run.value("method") != "full" and older((run,), "transformers", _ADAPTERS_APART) is not True:
        return
    by_hand = run.value("method") != "full" and _gathers_by_hand(run)
    if by_hand and any(_SAVES_ITSELF.search(document.text) for document in run.documents):
        return
    yield Report(
        place,
        f"{_what(run)}: checkpoints hold ZeRO-3's shards and no model weights "
        "(the Trainer warns and leaves them to zero_to_fp32.py)",
        severity=Severity.INFO if by_hand else Severity.WARNING,
        fix=_fix(run),
        help="set it to true, or run zero_to_fp32.py on the checkpoint"
        + ("; what the script gathers and saves itself is whole" if by_hand else ""),
    )


def _gathers_by_hand(run: Run) -> bool:
    """Whether a function of the run's own gathers what is to be saved, and is called: LLaVA's and FastChat's
    ``get_peft_state_maybe_zero_3`` does so for adapters."""
    texts = [document.text for document in run.documents]
    names = {name for text in texts if _GATHERED in text for name in _gathering(text)}
    return any(re.search(rf"(?<!def )\b{name}\(", text) for name in names for text in texts)


def _gathering(text: str) -> Iterator[str]:
    """The functions of a module that gather parameters, and whose names speak of saving."""
    found = [(match.start(), match.group(1)) for match in _FUNCTION.finditer(text)]
    for (start, name), (end, _) in zip(found, [*found[1:], (len(text), "")], strict=True):
        if _GATHERED in text[start:end] and _FOR_SAVING.search(name):
            yield name


def _runs_the_loop(run: Run) -> bool:
    """Whether the trainer trains and saves by itself; the PPO trainers of older TRL are stepped by the script."""
    if run.script is None:
        return run.training is not None and run.training.uses_trainer
    trainer = run.script.facts.trainer
    calls = calls_of(run.script, "train")
    return trainer is not None and any(call.receiver == trainer.assigned_to for call in calls if call.receiver)


def _by_hand(run: Run, place: Place) -> Iterator[Report]:
    """``accelerator.get_state_dict(model)`` and what calls it raise a ValueError."""
    assert run.script is not None
    gathered = [
        call
        for call in calls_of(run.script, "get_state_dict", "save_model")
        if call.taken is True and "accelerator" in (call.receiver or "").lower()
    ]
    if gathered:
        yield Report(
            place,
            f"{_what(run)}: {gathered[0].name}() stops with ValueError when the model is saved "
            "(Cannot get 16bit model weights)",
            severity=Severity.ERROR,
            related=(Related(gathered[0].place, "the model is gathered here"),),
            fix=_fix(run),
            help="set it to true",
        )


def _gathers(run: Run) -> bool:
    """Whether something asks for whole weights, or leaves it to what is not read here."""
    if run.deepspeed is not None:
        section = run.deepspeed.config.get("zero_optimization")
        stated = [section[key] for key in _KEYS if key in section] if isinstance(section, dict) else []
        return any(value is not False for value in stated)
    flag = run.accelerate.settings.get("zero3_save_16bit_model") if run.accelerate is not None else None
    launched = run.launch is not None and "zero3_save_16bit_model" in run.launch.invocation.options
    return launched or (flag is not None and flag.value is not False) or run.accelerate is None


def _place(run: Run) -> Place | None:
    if run.deepspeed is not None:
        for key in _KEYS:
            place = run.deepspeed.place("zero_optimization", key)
            if place is not None:
                return place
    elif run.accelerate is not None:
        flag = run.accelerate.settings.get("zero3_save_16bit_model")
        if flag is not None:
            return flag.provenance.place
    return stated_at(run, "zero_stage")


def _what(run: Run) -> str:
    if run.deepspeed is None:
        flag = run.accelerate.settings.get("zero3_save_16bit_model") if run.accelerate is not None else None
        return "zero3_save_16bit_model is " + ("false" if flag is not None else "not set (default false)")
    key = next((key for key in _KEYS if run.deepspeed.node("zero_optimization", key) is not None), None)
    return f"{key or _KEYS[0]} is " + ("false" if key is not None else "not set (default false)")


def _saves(run: Run) -> bool:
    """Whether the trainer writes a model: on its own, or because the script asks it to."""
    if run.script is None:
        return not _saves_nothing(run)
    arguments = run.script.facts.training_arguments
    strategy = arguments.argument("save_strategy") if arguments is not None else None
    if arguments is None or (strategy is not None and strategy.value == "no"):
        return any(True for _ in calls_of(run.script, "save_model"))
    return strategy is None or isinstance(strategy.value, str)


def _saves_nothing(run: Run) -> bool:
    """Whether ms-swift is told to save nothing: where others end with ``save_model`` (TRL's and axolotl's commands,
    LLaMA-Factory), it leaves all of that to the trainer (3.3 ``SwiftSft.train``)."""
    recipe = run.recipe
    strategy = recipe.argument("save_strategy") if recipe is not None and recipe.dialect == "swift" else None
    return strategy is not None and strategy.value == "no"


def _fix(run: Run) -> Fix | None:
    edits = run.accelerate.write("zero3_save_16bit_model", True) if run.accelerate is not None else None
    if run.deepspeed is not None:
        edits = run.deepspeed.write(_KEYS[0], True)
    host = run.spec.host_memory_bytes if run.spec is not None else None
    room = run.spec is not None and host is not None and 2 * run.spec.facts.parameters < host
    applicability = Applicability.SAFE if room else Applicability.UNSAFE
    return offered("gather the 16-bit weights when the model is saved", applicability, edits)
