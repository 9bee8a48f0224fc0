"""Which lines a pull request shows: those that it changes and three around them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lintfit.documents.git import Git
from lintfit.errors import LintfitError

Hunks = Mapping[str, tuple[tuple[int, int], ...]]
"""First and last line, 1-based, of every run of lines that is shown, by path relative to a folder."""

_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def shown_lines(base: str, folder: Path) -> Hunks:
    """The lines below a folder that differ from what it and ``base`` have in common, as git compares them.

    Raises LintfitError in one line where git cannot tell: no repository, or a base that was not fetched.
    """
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--relative", "--ignore-submodules=dirty")
    try:
        answer = Git(folder).diff(*prefixes, "--unified=3", "--merge-base", base)
    except LintfitError as error:
        raise LintfitError(f"git cannot compare with {base}: {error}; check out with `fetch-depth: 0`") from None
    return _hunks(answer.decode(errors="replace"))


def _hunks(diff: str) -> Hunks:
    found: dict[str, list[tuple[int, int]]] = {}
    path: str | None = None
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            path = line[6:].rstrip("\t") if line.startswith("+++ b/") else None
        elif path is not None and (match := _HUNK.match(line)):
            first, count = int(match[1]), int(match[2] or 1)
            if count:
                found.setdefault(path, []).append((first, first + count - 1))
    return {name: tuple(lines) for name, lines in found.items()}
