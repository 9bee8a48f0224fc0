"""``lintfit estimate … --sweep micro-batch,seq-len``: a run with every combination of one setting's values or two's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from lintfit.errors import LintfitError
from lintfit.findings.questions import Cell, Sweep
from lintfit.findings.results import RunResult
from lintfit.run.model import Run
from lintfit.run.what_if import asked
from lintfit.settings.kinds import FLAG, TOKENS, Choice, Count
from lintfit.settings.registry import BY_FLAG, SETTINGS
from lintfit.settings.spellings import spelled
from lintfit.suggest import did_you_mean
from lintfit.verdict.judge import judge

MOST = 400
"""Combinations that are estimated; a table that a person reads has far fewer."""

_COUNTS = (1, 2, 4, 8, 16, 32)
_TOKENS = (512, 1024, 2048, 4096, 8192, 16384)
_RANKS = (8, 16, 32, 64, 128, 256)

Axis = tuple[str, tuple[Any, ...]]
"""A setting and the values that it is tried with."""


def axes(text: str) -> tuple[Axis, ...]:
    """``micro-batch,seq-len`` or ``micro-batch=1,2,4`` as settings and values. Raises LintfitError."""
    found: dict[str, list[str]] = {}
    name = ""
    for part in text.split(","):
        written, equals, value = part.strip().partition("=")
        key = BY_FLAG.get(written.lower().replace("_", "-"))
        if key is not None:
            name = key
            found.setdefault(name, []).extend([value] if equals else [])
        elif name and not equals and found[name]:
            found[name].append(written)
        else:
            hint = did_you_mean(written, tuple(BY_FLAG)) or "; a flag's name, as in micro-batch,seq-len"
            raise LintfitError(f"--sweep {text}: no setting {written!r}{hint}")
    if not 1 <= len(found) <= 2:
        raise LintfitError(f"--sweep {text}: one setting or two, in rows and columns")
    settled = tuple((each, _values(each, words, text)) for each, words in found.items())
    if len(settled[0][1]) * len(settled[-1][1]) > MOST:
        raise LintfitError(f"--sweep {text}: more than {MOST} combinations")
    return settled


def _values(name: str, words: Sequence[str], text: str) -> tuple[Any, ...]:
    """The values that are given for a setting, else usual ones."""
    from lintfit.commands.described import value_of

    if words:
        return tuple(value_of(name, spelled(name, word)) for word in words)
    kind = SETTINGS[name].kind
    if kind == TOKENS:
        return _TOKENS
    if name == "lora_rank":
        return _RANKS
    if isinstance(kind, Count):
        return _COUNTS
    if kind is FLAG:
        return (False, True)
    if isinstance(kind, Choice):
        return kind.values
    raise LintfitError(f"--sweep {text}: say which values of {name.replace('_', '-')} (…={words or 'A,B'})")


def sweep(run: Run, swept: Sequence[Axis]) -> Sweep:
    """The run with every combination of the values; what the rest of it forbids is said in its cell."""
    names = tuple(name for name, _ in swept)
    cells = tuple(_cell(run, dict(zip(names, values, strict=True))) for values in product(*(each for _, each in swept)))
    return Sweep(RunResult(run), names, cells)


def _cell(run: Run, values: Mapping[str, Any]) -> Cell:
    try:
        changed = asked(run, values)
    except LintfitError as error:
        return Cell(values, reason=str(error))
    return Cell(values, judge(changed).estimate) if changed.spec is not None else Cell(values, reason="not known")
