"""Which files of a tree date the libraries that a front end's recipe runs with.

A tree may hold parts that are installed apart from one another. A file counts that installs the front end, too, or that
is of the front end's own checkout. Any other one does as long as a known release of the front end can stand beside the
transformers that it asks for, and is no witness against a key of the recipe (``strict``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.door import MAX_REQUIREMENTS
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen
from lintfit.versions import Versions, before

if TYPE_CHECKING:
    from lintfit.run.model import Run

_NAMES: Mapping[str, str] = {
    "axolotl": r"(?<![\w-])axolotl(?![\w-])",
    "litgpt": r"(?<![\w-])lit-?gpt(?![\w-])",
    "llamafactory": r"(?i:llama[-_]?factory)|(?<!\w)llmtuner(?!\w)",
    "swift": r"(?<!\w)ms[-_]swift(?!\w)|modelscope/swift",
    "torchtune": r"(?<![\w-])torchtune(?![\w-])",
    "trl": r"(?<![\w-])trl(?![\w-])",
}
"""What the packages and repositories of front ends are called."""
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "axolotl": ("src/axolotl",),
    "litgpt": ("litgpt",),
    "llamafactory": ("src/llamafactory", "src/llmtuner"),
    "swift": ("swift/llm", "swift/cli"),
    "torchtune": ("torchtune",),
    "trl": ("trl",),
}
"""The folders that their own checkouts have."""
_DISTRIBUTIONS: Mapping[str, str] = {"swift": "ms-swift"}
"""What is installed where it is not called as the front end is."""
_INSTALLS = lazy_pattern(r"(?:\bpip3?[ \t]+install|\bgit[ \t]+clone|\buv[ \t]+(?:add|pip))\b(?:\\\n|[^\n;&|`])*")
_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#[^\n]*")


@frozen
class FrontEndPins:
    """What may speak of the libraries of a front end's recipe.

    ``oldest`` is the first transformers that a release of it can stand beside, None where that is not known.
    ``strict``: only what installs the front end, too.
    """

    front_end: str
    oldest: str | None = None
    strict: bool = False

    def of_file(self, folder: Path, path: Path, asked: Mapping[str, str]) -> bool:
        """Whether what a file of a project's folder asks for dates the recipe."""
        if self.front_end not in _NAMES:
            return True
        if any(door.is_folder(folder / package) for package in _PACKAGES[self.front_end]) or _installs(
            path, self.front_end
        ):
            return True
        return not self.strict and self._admits(asked)

    def of_environment(self, installed: Mapping[str, str]) -> bool:
        """The same of what an environment has installed."""
        if _DISTRIBUTIONS.get(self.front_end, self.front_end) in installed or self.front_end not in _NAMES:
            return True
        return not self.strict and self._admits(installed)

    def _admits(self, asked: Mapping[str, str]) -> bool:
        return self.oldest is None or before(asked.get("transformers"), self.oldest) is not True


@cache
def _installs(path: Path, front_end: str) -> bool:
    """Whether a file of requirements, or a command of a script or page, names a front end."""
    name = lazy_pattern(_NAMES[front_end])
    try:
        text = door.read_regular(path, MAX_REQUIREMENTS).decode("utf-8", errors="replace")
    except OSError:
        return False
    if path.suffix in (".sh", ".md") or path.name.startswith("Dockerfile"):
        return any(name.search(command.group()) for command in _INSTALLS.finditer(text))
    return name.search(_COMMENT.sub("", text)) is not None


def of_front_end(
    run: Run, versions: Versions, known: Callable[[FrontEndPins], Versions], read: Callable[[Versions], Run]
) -> tuple[Run, Versions]:
    """A front end's run by the versions that date it, where other parts of the tree pin others.

    ``known`` gives the versions by what may speak of them, ``read`` the run by versions. What is refused only by what a
    file pins that does not install the front end is not refused.
    """
    if run.recipe is None or run.recipe.dialect not in _NAMES:
        return run, versions
    from lintfit.catalog.peers import oldest_transformers

    front_end = run.recipe.dialect
    by_script = run.launch is not None and run.launch.script is not None  # which older releases have, too
    stated = versions.get(_DISTRIBUTIONS.get(front_end, front_end))
    oldest = oldest_transformers(front_end, stated) if not by_script else None
    for strict in (False, True):
        told = known(FrontEndPins(front_end, oldest, strict)) if run.refused or not strict else versions
        if dict(told) == dict(versions):
            continue
        other = read(told)
        if not strict or len(other.refused) < len(run.refused):
            run, versions = other, told
    return run, versions
