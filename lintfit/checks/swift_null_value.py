from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.swift import swift_of
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.kinds import CHOICE

_NUMBERS = ("int", "float")


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = swift_of(context.run)
    document = recipe.arguments.keys.config if recipe is not None else None
    root = document.root if document is not None else None
    if recipe is None or document is None or root is None:
        return
    for entry in root.entries:
        field = recipe.arguments.fields.get(entry.key)
        if field is None or entry.value.shape != "scalar" or entry.value.plain() is not None:
            continue
        what = _breaks(entry.key, field.kind)
        if what is not None:
            yield Report(
                Place(document, entry.span),
                f"{entry.key}: null becomes the word None on the command line: {what}",
                help="leave the key out: that is what null means elsewhere",
            )


def _breaks(key: str, kind: str) -> str | None:
    """What the word None does to a field of this kind; None where it is a word like any other."""
    if kind in _NUMBERS or kind in ("bool", "flag", "flag+"):
        return f"ms-swift stops with exit code 2 (argument --{key}: invalid {kind.removesuffix('+')} value)"
    if kind.startswith(CHOICE) and "None" not in kind[1:].split("|"):
        return f"ms-swift stops with exit code 2 (argument --{key}: invalid choice: 'None')"
    return None
