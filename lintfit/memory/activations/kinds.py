"""The layers of a model, told apart: equal ones are counted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from lintfit.catalog.facts import ModelFacts
from lintfit.memo import Memo
from lintfit.memory.activations import llama, moe
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.families import traits
from lintfit.memory.activations.traits import Turn

_Value = TypeVar("_Value")


class Kind(NamedTuple):
    """What tells a layer from the others of its model: its window, and whether it routes to experts.

    ``crosses``: how it attends to what stands beside the text (:func:`.mllama.crosses`), empty where it does not.
    ``shares``: whether it takes keys and values of an earlier layer.
    ``mixer``: what mixes its tokens in the place of attention, empty where nothing does. ``mlp``: the width of its MLP
    and whether that is sparse, where layers differ in it. ``unturned``: whether it has no rotary where others do.
    ``turn``: which of the layers it is that share parameters, None where it shares none. ``unnormed``: whether nothing
    is normed in front of its attention. ``place``: which of those that share biases of positions.
    """

    window: int | None
    routed: bool
    crosses: str = ""
    shares: bool = False
    mixer: str = ""
    mlp: tuple[int, bool] | None = None
    unturned: bool = False
    turn: Turn | None = None
    unnormed: bool = False
    place: str = ""


_Alike = tuple[tuple[Kind, int, int], ...]

_KINDS: Memo[tuple[tuple[Kind, ...], _Alike]] = Memo()
_FIRST: Memo[dict[int | None, int]] = Memo()


def kinds(facts: ModelFacts) -> tuple[Kind, ...]:
    """The kind of every layer."""
    return _KINDS.get(facts, "", lambda: _kinds(facts))[0]


def stretches(facts: ModelFacts) -> _Alike:
    """Layers of a kind that follow one another: the kind, the first one's number, and how many they are."""
    return _KINDS.get(facts, "", lambda: _kinds(facts))[1]


def first_of_windows(facts: ModelFacts) -> dict[int | None, int]:
    """The first layer of each window."""
    return _FIRST.get(facts, "", lambda: {kind.window: start for kind, start, _ in reversed(stretches(facts))})


def running(facts: ModelFacts, *, beside: bool = False) -> tuple[int, ...]:
    """The numbers of the layers that run; ``beside``: whether there is something beside the text to attend to."""
    return tuple([number for number, kind in enumerate(kinds(facts)) if beside or not kind.crosses])


def heads_of(facts: ModelFacts, index: int) -> Heads:
    """The heads and the window of one layer."""
    return (traits(facts).heads or llama.heads)(facts, index)


def lends(facts: ModelFacts) -> dict[int, Heads]:
    """The layers whose keys and values later ones take: the last of each kind that has its own."""
    shares, layers = traits(facts).shares, range(facts.layers)
    if shares is None:
        return {}
    shapes = [heads_of(facts, index) for index in layers]
    last = {shapes[index].window: index for index in layers if not shares(facts, index)}
    taken = {shapes[index].window for index in layers if shares(facts, index)}
    return {index: shapes[index] for window, index in last.items() if window in taken}


def stream_width(facts: ModelFacts) -> int:
    """Elements of what goes from layer to layer: the hidden size, of every stream where there are several."""
    streams = traits(facts).streams
    return facts.hidden * streams(facts) if streams is not None else facts.hidden


def _kinds(facts: ModelFacts) -> tuple[tuple[Kind, ...], _Alike]:
    own, layers = traits(facts), range(facts.layers)
    windows = (
        [heads_of(facts, index).window for index in layers]
        if facts.sliding_window is not None
        else [None] * len(layers)
    )
    has_experts = own.routes or moe.has_experts
    routes = [facts.moe is not None and has_experts(facts, index) for index in layers]
    crosses, shares = _each(facts, own.crosses, ""), _each(facts, own.shares, False)
    mixers, mlps, unturned = _each(facts, own.mixer, ""), _each(facts, own.mlp, None), _each(facts, own.unturned, False)
    turns, unnormed = _each(facts, own.turn, None), _each(facts, own.unnormed, False)
    places = _each(facts, own.place, "")
    each = tuple(map(Kind, windows, routes, crosses, shares, mixers, mlps, unturned, turns, unnormed, places))
    starts = [index for index in range(facts.layers) if index == 0 or each[index] != each[index - 1]]
    ends = [*starts[1:], facts.layers]
    alike = tuple((each[start], start, end - start) for start, end in zip(starts, ends, strict=True))
    return each, alike


def _each(facts: ModelFacts, tells: Callable[[ModelFacts, int], _Value] | None, otherwise: _Value) -> list[_Value]:
    """What is told of every layer."""
    if tells is None:
        return [otherwise] * facts.layers
    return [tells(facts, index) for index in range(facts.layers)]
