"""The opposite question: how much more a run could do with its GPUs, or with how little it would do.

Every answer stands beside the one that is just out of reach, with the figures of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from lintfit.catalog.facts import Gpu
from lintfit.fit.axes.cards import nodes_of
from lintfit.fit.divisors import divisors
from lintfit.fit.figures import Extreme, Figure
from lintfit.fit.least_sharding import least_sharding
from lintfit.fit.options import Candidate, Effect, Option, Subject, run_of
from lintfit.fit.search import Fitting, Search, suffices
from lintfit.fit.space import Space
from lintfit.fit.speed import rounded, step_seconds
from lintfit.memory import estimate
from lintfit.memory.spec import Spec
from lintfit.options.model import Margin
from lintfit.run.change import changed_spec
from lintfit.run.model import Run

Goal = Literal["micro-batch", "seq-len", "gpus", "step-time", "sharding"]

MOST_TOKENS = 2**22
MOST_SAMPLES = 2**14
"""Where the search ends: beyond it no estimate is worth anything."""


def extremes(run: Run, goal: Goal) -> tuple[Extreme, ...]:
    """The answers to one question. The run must have a spec with a capacity."""
    spec, margin = run.spec, run.options.margin
    assert spec is not None
    match goal:
        case "micro-batch":
            return tuple(_micro_batch(run, spec, margin))
        case "seq-len":
            return (_sequence(run, spec, margin),)
        case "gpus":
            return (_fewest(run, spec, margin), *_smallest(run, spec, margin))
        case "step-time":
            return tuple(_fastest(run, spec, margin))
        case "sharding":
            return (least_sharding(run, spec, margin),)


def limit_of(spec: Spec, margin: Margin) -> int:
    """Bytes of one GPU that may be planned for."""
    capacity = spec.capacity_bytes or 0
    return capacity - margin.bytes_of(capacity)


# -- the largest --------------------------------------------------------------------------------------------------


def _micro_batch(run: Run, spec: Spec, margin: Margin) -> Iterator[Extreme]:
    """With the accumulation that there is, then with the samples of a step kept."""
    limit = limit_of(spec, margin)

    def figure(size: int) -> Figure:
        changes = {"micro_batch_size": size}
        return Figure(f"micro-batch {size}", size, changes, estimate(changed_spec(spec, changes)))

    best, beyond = _largest(figure, limit, MOST_SAMPLES)
    steps = spec.gradient_accumulation_steps
    more = f"a step then has {best.value * steps * spec.data_parallel} samples" if best is not None else ""
    changed = best is not None and best.value != spec.micro_batch_size
    yield Extreme(f"the largest micro-batch with accumulation {steps}", best, beyond, more if changed else "")
    samples = spec.effective_batch
    search = Search(Space(Subject(run, spec), Effect.SAME), margin)
    sizes = (
        option for axis in search.space.passing for option in axis if option.changes.keys() == {"micro_batch_size"}
    )
    yield _kept(search, sorted(sizes, key=lambda option: -option.changes["micro_batch_size"]), samples)


def _kept(search: Search, sizes: Sequence[Option], samples: int) -> Extreme:
    """The largest micro-batch among those that keep the samples of a step."""
    spec = search.spec
    here = Candidate((), {"micro_batch_size": spec.micro_batch_size})
    candidates = [found for found in (search.space.combined((option,)) for option in sizes) if found is not None]
    candidates.append(here)
    candidates.sort(key=lambda candidate: -candidate.changes["micro_batch_size"])
    beyond: Figure | None = None
    question = f"the largest micro-batch that keeps {samples} samples a step"
    for candidate in candidates:
        changed = changed_spec(spec, candidate.changes)
        size, steps = changed.micro_batch_size, changed.gradient_accumulation_steps
        text = f"micro-batch {size} with accumulation {steps}"
        time = rounded(search.step_time(changed))
        figure = Figure(text, size, dict(candidate.changes), estimate(changed), time)
        if suffices(figure.estimate, search.limit):
            rank = search.rank(candidate, changed)
            fitting = Fitting(candidate, changed, figure.estimate, search.step_time(changed), rank)
            return Extreme(question, figure, beyond, fitting=fitting if candidate is not here else None)
        beyond = figure
    return Extreme(question, None, beyond)


def _sequence(run: Run, spec: Spec, margin: Margin) -> Extreme:
    """The most tokens, up to the positions that the model has."""
    positions = spec.facts.max_positions

    def figure(tokens: int) -> Figure:
        changes = {"seq_len": tokens}
        return Figure(
            f"{tokens:,} token{'s' if tokens > 1 else ''}", tokens, changes, estimate(changed_spec(spec, changes))
        )

    best, beyond = _largest(figure, limit_of(spec, margin), positions or MOST_TOKENS)
    remark, fitting = "", None
    if best is not None and beyond is None and positions:
        remark = f"the model has no more positions than {positions:,}"
    elif best is not None and best.value > 128:
        remark = f"{best.value // 128 * 128:,} as a multiple of 128"
    if best is not None and best.value != spec.seq_len:
        option = Option(best.text, best.changes, Effect.SHORTER, "samples are cut at another length")
        search = Search(Space(Subject(run, spec), Effect.SAME), margin)
        candidate, changed = Candidate((option,), best.changes), changed_spec(spec, best.changes)
        time = search.step_time(changed)
        fitting = Fitting(candidate, changed, best.estimate, time, search.rank(candidate, changed))
    return Extreme("the longest sequence", best, beyond, remark, fitting)


def _largest(figure: Callable[[int], Figure], limit: int, most: int) -> tuple[Figure | None, Figure | None]:
    """The largest size that fits and the next one, which does not: by doubling and halving the interval.

    Memory only ever grows with the size; both ends of the last interval are estimated, so that the answer is right
    where it stands in any case.
    """
    low = figure(1)
    if not suffices(low.estimate, limit):
        return None, low
    high: Figure | None = None
    while high is None and low.value < most:
        tried = figure(min(2 * low.value, most))
        if suffices(tried.estimate, limit):
            low = tried
        else:
            high = tried
    while high is not None and high.value - low.value > 1:
        middle = figure((low.value + high.value) // 2)
        if suffices(middle.estimate, limit):
            low = middle
        else:
            high = middle
    return low, high


# -- the least ----------------------------------------------------------------------------------------------------


def _fastest(run: Run, spec: Spec, margin: Margin) -> Iterator[Extreme]:
    """The shortest step with the training as it is; then, where that is shorter still, with other numerics."""
    search = Search(Space(Subject(run, spec, recomputes=False), Effect.NUMERICS), margin)
    best: Figure | None = None
    questions = ("the shortest step with the same training", "the shortest step with other kernels or precision")
    for effect, question in zip((Effect.SAME, Effect.NUMERICS), questions, strict=True):
        found = _shortest(search, effect, question)
        if best is None or (found.best is not None and _time(found.best) < _time(best)):
            yield found
        best = found.best or best


def _time(figure: Figure) -> float:
    return figure.step_time if figure.step_time is not None else float("inf")


def _shortest(search: Search, effect: Effect, question: str) -> Extreme:
    beyond: Figure | None = None
    ranked = sorted(search.reachable(effect), key=lambda one: (rounded(one.rank[6]), one.rank[5], one.rank[6]))
    for found in ranked:
        rank, candidate, spec = found.rank, found.candidate, found.spec
        result = search.result(candidate, spec)
        time = rounded(search.step_time(spec))
        if result is not None:
            figure = Figure(candidate.name, candidate.name, dict(candidate.changes), result, time, candidate.notes)
            fitting = Fitting(candidate, spec, result, search.step_time(spec), rank) if candidate.options else None
            return Extreme(question, figure, beyond, fitting=fitting)
        beyond = Figure(candidate.name, candidate.name, dict(candidate.changes), estimate(spec), time)
    return Extreme(question, None, beyond)


def _fewest(run: Run, spec: Spec, margin: Margin) -> Extreme:
    """The fewest such GPUs on which the samples of a step stay the same, ZeRO and smaller micro-batches allowed.

    The machine may have more of them than the run uses.
    """
    beyond: Figure | None = None
    for count in range(1, max(spec.gpus, run.hardware.available or 1) + 1):
        on = _with_cards(spec, count)
        if on is None:
            continue
        figure, nearest = _on(run, spec, on, margin, f"{count} × {_card(spec)}", count)
        if figure is not None:
            return Extreme("the fewest such GPUs", figure, beyond)
        beyond = nearest
    return Extreme("the fewest such GPUs", None, beyond)


def _with_cards(spec: Spec, count: int) -> Spec | None:
    """The run on so many GPUs with the same samples in a step; None where they cannot be parted so."""
    shared = spec.gpus // spec.data_parallel
    samples = spec.effective_batch
    if count % shared or samples % (count // shared):
        return None
    own = samples // (count // shared)
    micro = next(size for size in divisors(own) if size <= spec.micro_batch_size)
    engine = spec.engine
    if count == 1 and engine in ("ddp", "fsdp"):
        engine = "single"
    elif count > 1 and engine == "single":
        engine = "ddp"
    nodes = nodes_of(spec, count)
    return replace(
        spec,
        gpus=count,
        nodes=nodes if count > spec.gpus else min(spec.nodes, nodes),
        engine=engine,
        fsdp=spec.fsdp if engine == "fsdp" else None,
        micro_batch_size=micro,
        gradient_accumulation_steps=own // micro,
    )


def _on(run: Run, before: Spec, on: Spec, margin: Margin, text: str, value: Any) -> tuple[Figure | None, Figure | None]:
    """The best plan on other hardware, else what comes nearest."""
    search = Search(Space(Subject(replace(run_of(on), launch=run.launch), on), Effect.NUMERICS), margin)
    found = next(search.fitting(), None)
    # What :func:`_with_cards` has changed.
    changes = {name: getattr(on, name) for name in ("gpus", "micro_batch_size", "gradient_accumulation_steps")}
    if found is not None:
        candidate = found.candidate
        name = f"{text}, {candidate.name}"
        time = rounded(step_seconds(found.spec) / step_seconds(before))
        return Figure(name, value, {**changes, **candidate.changes}, found.estimate, time, candidate.notes), None
    closest = search.closest()
    if closest is None:
        return None, None
    candidate, result = closest
    return None, Figure(f"{text}, {candidate.name}", value, {**changes, **candidate.changes}, result)


def _smallest(run: Run, spec: Spec, margin: Margin) -> Iterator[Extreme]:
    """The smallest GPU of the catalogue of which as many as there are would do: found by halving the list."""
    cards = _smaller(spec)
    question = f"the smallest GPUs, {spec.gpus} of them" if spec.gpus > 1 else "the smallest GPU"
    low, high = -1, len(cards)
    best: Figure | None = None
    beyond: Figure | None = None
    while high - low > 1:
        middle = (low + high) // 2
        card = cards[middle]
        on = replace(spec, gpu=card, capacity_bytes=card.usable_bytes)
        figure, nearest = _on(run, spec, on, margin, f"{spec.gpus} × {card.name}", card.name)
        if figure is not None:
            high, best = middle, figure
        else:
            low, beyond = middle, nearest
    if cards and best is not None:
        yield Extreme(question, best, beyond)


def _smaller(spec: Spec) -> list[Gpu]:
    """GPUs with less memory than the run's, one for each size, smallest first."""
    from lintfit.catalog.gpus import gpus

    have = spec.capacity_bytes or 0
    bf16 = "bf16" in (spec.mixed_precision, spec.weights_dtype)
    cards = [card for card in gpus().values() if card.usable_bytes < have and _sold(card)]
    cards = [card for card in cards if card.native_bf16 or not bf16]
    by_size: dict[float, Gpu] = {}
    for card in sorted(cards, key=lambda card: card.usable_bytes):
        by_size.setdefault(card.vendor_gb, card)
    return sorted(by_size.values(), key=lambda card: card.usable_bytes)


def _sold(card: Gpu) -> bool:
    """Whole GPUs that today's libraries support: no slices, no laptops, Volta and up."""
    capable = card.compute_capability is not None and card.compute_capability >= (7, 0)
    return capable and not any(word in card.name for word in ("MIG", "Laptop", "modded"))


def _card(spec: Spec) -> str:
    return spec.gpu.name if spec.gpu is not None else "such a GPU"
