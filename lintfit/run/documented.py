"""Launches in pages of Markdown: which of them are runs.

A page that the user names is read as a launch script is. In a search its launches count where no launch file starts the
same script or recipe, and where what they start is at hand: pages also tell of other projects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from lintfit.documents.paths import located
from lintfit.run.model import Run


def documented(
    runs: Sequence[Run], named: frozenset[Path], taken: frozenset[Path], trains: Callable[[Run], bool]
) -> Iterator[Run]:
    """The runs of pages that count; ``taken`` are the resolved paths of what launch files start.

    A command that several pages of a folder show (a translation) is one run.
    """
    seen: set[tuple[Path, tuple[str, ...]]] = set()
    for run in runs:
        words = run.says("words", partial(_words, run))
        if not trains(run) or words is None:
            continue
        if run.origin.path in named:
            yield run
            continue
        said = (located(run.origin.path).parent, tuple(words))
        if said in seen or not run.says("is at hand", partial(_is_at_hand, run)):
            continue
        if taken.isdisjoint(map(Path, run.says("starts", partial(_started, run)))):
            seen.add(said)
            yield run


def _words(run: Run) -> Sequence[str] | None:
    return [word.text for word in run.launch.command.words] if run.launch is not None else None


def _started(run: Run) -> Sequence[str]:
    return [str(path) for path in started(run)]


def _is_at_hand(run: Run) -> bool:
    """Whether what a launch starts is here to be read, or a front end's command is all there is."""
    if run.broken or any(each.certainty != "open" for each in run.missing):
        return False
    return run.recipe is not None or (run.script is not None and run.script.facts.trains)


def started(run: Run) -> set[Path]:
    """The script or the recipe that a launch starts; empty for a command that is made of flags alone."""
    if run.script is not None:
        return {located(run.script.document.path)}
    configs = [source.document for source in (run.accelerate, run.deepspeed) if source is not None]
    return {located(each.path) for each in run.documents if each not in configs and each.path != run.origin.path}
