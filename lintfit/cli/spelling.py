"""Flags of a run as people write them: other names, ``--qlora``, ``4k``, a switch without a value.

All is settled before click reads the command line, so that what follows knows one spelling of each.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from lintfit.cli.help import Grouped
from lintfit.errors import LintfitError, shorten
from lintfit.settings.registry import BY_FLAG, SETTINGS
from lintfit.settings.spellings import is_switch, spelled, takes_no_value

_METHODS = ("lora", "qlora")
"""Flags that say how the run trains, and with ``=16`` or a number behind them its rank."""


class Forgiving(Grouped):
    """A command whose flags of a run may be written as people do. Raises LintfitError for one that stands twice."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name.removeprefix("--") for each in self.params for name in each.opts}
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*_settled(args[:end], own), *args[end:]])


def _settled(args: list[str], own: set[str]) -> list[str]:
    """The arguments with every flag of a run as ``--its-name=value``."""
    found: list[str] = []
    stated: dict[str, str] = {}
    rest = iter(args)
    ahead = list(args)
    for arg in rest:
        ahead = ahead[1:]
        written, equals, text = arg.partition("=")
        asked = written.removeprefix("--").replace("_", "-")
        if not written.startswith("--") or not _is_known(asked, own):
            found.append(arg)
            continue
        value = text if equals else _taken(asked, ahead)
        if value is not None and not equals:
            next(rest)
            ahead = ahead[1:]
        for name, said in _says(asked, value):
            _once(stated, name, said, written)
            found.append(f"--{name.replace('_', '-')}" + ("" if said is None else f"={said}"))
    return found


def _is_known(asked: str, own: set[str]) -> bool:
    """Whether this command has the flag: ``check`` has no more than those of the hardware."""
    if asked in _METHODS:
        return "method" in own
    return asked in BY_FLAG and SETTINGS[BY_FLAG[asked]].option in own


def _taken(asked: str, ahead: list[str]) -> str | None:
    """The argument behind a flag, where it is the flag's value."""
    behind = ahead[0] if ahead else None
    if behind is None:
        return None
    if asked in _METHODS:
        return behind if behind.isdigit() else None
    if takes_no_value(BY_FLAG[asked]):
        return behind if is_switch(behind) else None
    return behind


def _says(asked: str, value: str | None) -> Iterator[tuple[str, str | None]]:
    """The settings that a flag states; None for the value of one that click is to complain of."""
    if asked in _METHODS:
        yield from _method(asked, value)
    elif BY_FLAG[asked] == "method" and value is not None and value.lower() == "qlora":
        yield from _method("qlora", None)
    elif value is None:
        yield BY_FLAG[asked], "true" if takes_no_value(BY_FLAG[asked]) else None
    else:
        yield BY_FLAG[asked], spelled(BY_FLAG[asked], value)


def _method(asked: str, rank: str | None) -> Iterator[tuple[str, str | None]]:
    yield "method", "lora"
    if rank is not None:
        yield "lora_rank", rank
    if asked == "qlora":
        yield "quantization", "nf4"


def _once(stated: dict[str, str], name: str, said: str | None, written: str) -> None:
    """Nobody knows which of two values was meant; the same one twice is no question."""
    value = str(said)
    if stated.setdefault(name, value) != value:
        flag = f"--{name.replace('_', '-')}"
        shown = f"{flag} {shorten(stated[name])} and {written} {shorten(value)}"
        raise LintfitError(f"{shown}: two values for one setting; give one of them")
