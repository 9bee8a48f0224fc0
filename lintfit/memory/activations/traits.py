"""What sets the layers of a family apart, beyond the function that writes one: see :class:`Traits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var


class Turn(NamedTuple):
    """Which of the layers that share parameters one is: whether it is the ``first``, and how many come ``behind`` it,
    two standing for any more."""

    first: bool
    behind: int


class Halves(NamedTuple):
    """What a model of an encoder and a decoder does around their layers.

    ``layers``: how many each has. ``ending``: what follows the last of either. ``biased``: whether the layers of a half
    share biases of positions.
    """

    layers: Callable[[ModelFacts], tuple[int, int]]
    ending: Callable[[Layer, Var], Var]
    biased: bool = False


class Traits(NamedTuple):
    """What a family's module says in ``TRAITS``; None where its layers are all alike in that.

    Functions take a model and the number of a layer. ``heads``: its heads and its window, where Llama's way does not
    tell. ``routes``: whether it has experts. ``crosses``: how it attends to what stands beside the text, empty where it
    does not. ``shares``: whether it takes keys and values of an earlier layer. ``mixer``: what mixes its tokens in the
    place of attention, empty where nothing does. ``mlp``: the width of its MLP and whether that is sparse. ``streams``:
    how many residual streams a model has. ``unturned``: whether a layer has no rotary, where its window does not tell.
    ``turn``: which of the layers it is that share parameters, None where it shares none. ``sees_embeddings``: these
    take the embeddings once more beside the stream (``ZambaAttentionDecoderLayer.forward``). ``unnormed``: whether
    nothing is normed in front of a layer's attention. ``place``: which of a stack whose layers share biases it is,
    ``first``, ``last``, ``only``, or none of these. ``halves``: of a model of an encoder and a decoder. ``packages``:
    of :data:`.spec.KERNELS`, those that transformers runs these layers with where they are installed, and that keep
    less than plain torch. ``casts_experts``: its experts run as plain products, whose weights autocast casts.
    ``views``: whether its layers multiply by views of their weights, which autocast's cache does not take.
    ``unread``: whether a config asks for what its module does not follow.
    """

    heads: Callable[[ModelFacts, int], Heads] | None = None
    routes: Callable[[ModelFacts, int], bool] | None = None
    crosses: Callable[[ModelFacts, int], str] | None = None
    shares: Callable[[ModelFacts, int], bool] | None = None
    mixer: Callable[[ModelFacts, int], str] | None = None
    mlp: Callable[[ModelFacts, int], tuple[int, bool]] | None = None
    streams: Callable[[ModelFacts], int] | None = None
    unturned: Callable[[ModelFacts, int], bool] | None = None
    turn: Callable[[ModelFacts, int], Turn | None] | None = None
    sees_embeddings: bool = False
    unnormed: Callable[[ModelFacts, int], bool] | None = None
    place: Callable[[ModelFacts, int], str] | None = None
    halves: Halves | None = None
    packages: tuple[str, ...] = ()
    casts_experts: bool = False
    views: Callable[[ModelFacts], bool] | None = None
    unread: Callable[[ModelFacts], bool] | None = None
