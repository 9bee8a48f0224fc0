from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.launched import starts_as_it_is
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import anchor
from lintfit.findings.model import Severity
from lintfit.run.model import Run
from lintfit.settings.model import Place, Setting

_LOOKS = "4.30"
"""The oldest transformers in which the checks were read (``TrainingArguments.__post_init__``, 4.30 to 5.0)."""
_FRONT_ENDS = ("llamafactory", "trl")
"""Front ends that hand ``TrainingArguments`` what they are given as it is."""
_SHARES = 1_000_000
"""What transformers multiplies shares of the training by before it divides them."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if not _fills_arguments(run) or older((run,), "transformers", _LOOKS) is True:
        return
    asked = _argument(run, "load_best_model_at_end")
    save, evaluates = _argument(run, "save_strategy"), _argument(run, "eval_strategy", "evaluation_strategy")
    if asked is None or asked.value is not True or save is None or evaluates is None:
        return
    when, how = _strategy(save), _strategy(evaluates)
    if when is None or how is None or when == "best":
        return
    if when != how:
        yield _report(
            run,
            (evaluates, save, asked),
            f"the save and eval strategy to match, but found eval {how} and save {when}",
            f"write the same for both, or take load_best_model_at_end out{_never(how)}",
        )
    elif when == "steps":
        yield from _by_steps(run, asked)


def _by_steps(run: Run, asked: Setting) -> Iterator[Report]:
    saved, evaluated = _argument(run, "save_steps"), _argument(run, "eval_steps")
    if evaluated is not None and evaluated.value in (None, 0):
        evaluated = _argument(run, "logging_steps")  # which transformers takes in its place
    if saved is None or evaluated is None or not (_is_number(saved.value) and _is_number(evaluated.value)):
        return
    if _is_multiple(saved.value, evaluated.value):
        return
    yield _report(
        run,
        (saved, evaluated, asked),
        f"the saving steps to be a round multiple of the evaluation steps, but found {saved.value}, which is not a "
        f"round multiple of {evaluated.value}",
        f"make save_steps a multiple of {evaluated.value}",
    )


def _report(run: Run, settings: tuple[Setting, ...], requires: str, advice: str) -> Report:
    return Report(
        _place(run, settings),
        f"TrainingArguments stops with ValueError (--load_best_model_at_end requires {requires})",
        severity=Severity.ERROR if starts_as_it_is(run) else Severity.INFO,
        help=advice,
    )


def _never(how: str) -> str:
    return ": without evaluation there is no best model" if how == "no" else ""


def _fills_arguments(run: Run) -> bool:
    """Whether transformers makes its arguments of what the run says, and does so when it starts."""
    if run.training is None or not run.training.uses_trainer:
        return False
    if run.recipe is not None:
        return run.recipe.dialect in _FRONT_ENDS and run.recipe.missing is None
    if run.script is None:
        return False
    made = run.script.facts.training_arguments
    # A field that is set when the arguments are made already is not looked at.
    given = made is None or not made.arguments or made.argument("load_best_model_at_end") is not None
    return given and (made is None or made.taken is True)


def _argument(run: Run, *names: str) -> Setting | None:
    assert run.training is not None
    found = run.training.argument(*names)
    return found if found is not None and found.known else None


def _strategy(setting: Setting) -> str | None:
    """``no``, ``steps``, ``epoch`` or ``best``; None for anything else."""
    word = setting.value
    return word if word in ("no", "steps", "epoch", "best") else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_multiple(saved: float, evaluated: float) -> bool:
    """Whether transformers takes the one for a multiple of the other: both are shares, or neither is."""
    if saved % evaluated == 0:
        return True
    if saved < 1 and evaluated < 1:
        return (saved * _SHARES) % (evaluated * _SHARES) == 0
    return False


def _place(run: Run, settings: tuple[Setting, ...]) -> Place:
    stated = (each.provenance.place for each in settings if each.provenance.kind != "default")
    return next((place for place in stated if place is not None), None) or anchor(run)
