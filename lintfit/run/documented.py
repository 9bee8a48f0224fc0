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

    A command that several pages of a folder show (a translation), or that starts the same files from others, is one
    run.
    """
    seen: set[tuple[Path | frozenset[str], tuple[str, ...]]] = set()
    for run in runs:
        words = run.says("words", partial(_words, run))
        if not trains(run) or words is None:
            continue
        if run.origin.path in named:
            yield run
            continue
        starts = frozenset(run.says("starts", partial(_started, run)))
        said = {(where, tuple(words)) for where in (located(run.origin.path).parent, starts) if where}
        if not said.isdisjoint(seen) or not run.says("is at hand", partial(_is_at_hand, run)):
            continue
        if taken.isdisjoint(map(Path, starts)):
            seen |= said
            yield run


def _words(run: Run) -> Sequence[str] | None:
    return [word.text for word in run.launch.command.words] if run.launch is not None else None


def _started(run: Run) -> Sequence[str]:
    """The recipes that a script is handed, which a launch file of that script may have none of; else what starts."""
    handed = [located(each.path) for each in run.opened]
    return [str(path) for path in handed or started(run)]


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
