"""Where the rule pages and schemas lie, installed or in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lintfit.errors import LintfitError


def packaged(file: Path) -> str:
    """The text of a file that comes with lintfit."""
    with file.open(encoding="utf-8") as opened:
        return opened.read()


def packaged_head(file: Path, most: int) -> str:
    """The text of its first ``most`` bytes; nothing behind them is read."""
    with file.open("rb") as opened:
        return opened.read(most).decode("utf-8", "ignore")


def packaged_files(folder: Path, pattern: str) -> list[Path]:
    """The files in one of lintfit's own folders that a pattern fits, in no order."""
    return list(folder.glob(pattern))


@cache
def resource_dir(name: str) -> Path:
    """The folder ``rules`` or ``schemas``: ``lintfit/_<name>`` in an installed package, else the checkout's.

    Raises LintfitError where neither is there (a broken installation).
    """
    package = Path(__file__).parent
    for candidate in (package / f"_{name}", package.parent / name):
        if candidate.is_dir():
            return candidate
    raise LintfitError(f"the folder of {name} is missing from {package}; install lintfit again")
