"""Smaller batches of the evaluation: no update of the training changes by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.model import Span
from lintfit.fit.options import Option, Subject
from lintfit.memory.spec import Spec
from lintfit.run.generation import group_size, ranks_known
from lintfit.run.model import Run
from lintfit.settings.model import is_count


def options(subject: Subject) -> Iterator[Option]:
    """Half the batch, a quarter, …; only where the evaluation is known."""
    for size in smaller(subject.run, subject.spec):
        yield Option(f"evaluation batch {size}", {"eval_batch_size": size})


def smaller(run: Run, spec: Spec) -> Iterator[int]:
    """Half, a quarter, … of the evaluation's batch, down to one sequence; whole groups of answers for GRPO and RLOO, on
    any number of ranks where no launch says how many there are."""
    size, group = spec.eval_batch_size or 0, _group(run, spec)
    ranks = ranks_known(run, spec)
    while size > 1:
        size //= 2
        if not size * ranks % group:
            yield size


def follows_training(run: Run) -> bool:
    """Whether one line states both batches, so that the evaluation's is whatever the training's becomes: axolotl's
    where it has no ``eval_batch_size`` (``normalize_config``, 0.19.0), or a script that hands one flag to both."""
    places = [_place(run, name) for name in ("eval_batch_size", "micro_batch_size")]
    return places[0] is not None and places[0] == places[1]


def _place(run: Run, name: str) -> tuple[Path, Span] | None:
    setting = run.settings.get(name)
    place = setting.provenance.place if setting is not None else None
    return (place.document.path, place.span) if place is not None else None


def _group(run: Run, spec: Spec) -> int:
    """Answers to one prompt, of which the batches of all ranks together must hold whole groups."""
    if spec.trainer not in ("grpo", "rloo"):
        return 1
    own = run.script.argument("num_generations_eval") if run.script is not None else None
    return own.value if own is not None and is_count(own.value) else group_size(run)
