"""Where the rule pages and schemas lie, installed or in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lintfit.errors import LintfitError


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
