"""A tape of what autograd saves: the operations of one layer with sizes in place of values.

A family's layer is written against :class:`Tape` the way transformers writes it against torch. Each operation
notes what its backward formula keeps (torch's ``derivatives.yaml``). A tape knows no batch and no sequence length: a
tensor has so many elements a token (or for each of another :data:`Extent`), so that one recording holds for every
micro-batch. :mod:`.form` turns it into closed forms of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from lintfit.frozen import frozen

INDEX = 8
"""Bytes of an index, or a token id (int64)."""
BLOCK = 512
"""The caching allocator's smallest block (``kMinBlockSize``, c10/cuda/CUDACachingAllocator.cpp)."""

ACTIVATION, LOGITS, CAST = range(3)

Extent = Callable[[int, int], int]
"""How many there are of what a size is for, by the sequences of a micro-batch and the tokens of each."""

Scratch = tuple[int, Extent]
"""Bytes for each of an extent."""


def once(batch: int, seq: int) -> int:
    """What does not grow with the micro-batch: weights."""
    return 1


def tokens(batch: int, seq: int) -> int:
    """Tokens of the micro-batch."""
    return batch * seq


def sequences(batch: int, seq: int) -> int:
    """Sequences of the micro-batch."""
    return batch


def positions(batch: int, seq: int) -> int:
    """Positions in a sequence."""
    return seq


def pairs(batch: int, seq: int) -> int:
    """Pairs of tokens in a sequence: attention scores and masks."""
    return batch * seq * seq


def square(batch: int, seq: int) -> int:
    """Pairs of positions, whatever the sequences: masks that all of them share."""
    return seq * seq


def rounded(size: int) -> int:
    """Bytes that the caching allocator hands out for ``size`` bytes."""
    return -(-size // BLOCK) * BLOCK


@frozen
class Chunks:
    """Chunks of ``size`` tokens that all sequences are filled up to, and so many more for each sequence."""

    size: int
    more: int = 0

    def __call__(self, batch: int, seq: int) -> int:
        return batch * (-(-seq // self.size) + self.more)


@frozen
class Larger:
    """The larger of two sizes, as an extent of one byte each."""

    first: Scratch
    second: Scratch

    def __call__(self, batch: int, seq: int) -> int:
        return max(size * per(batch, seq) for size, per in (self.first, self.second))


class Storage:
    """One allocation of ``bytes`` for each of ``per``.

    ``external`` storages are counted by somebody else (a checkpointed layer's input).
    """

    __slots__ = ("bytes", "external", "kind", "per")

    def __init__(self, size: int, per: Extent, kind: int = ACTIVATION) -> None:
        self.bytes = size
        self.per = per
        self.kind = kind
        self.external = False

    def size(self, batch: int, seq: int) -> int:
        """Bytes for a micro-batch, in whole blocks."""
        return rounded(self.bytes * self.per(batch, seq))


class Var:
    """A tensor of ``width`` elements of ``item`` bytes for each of ``per``, and whether a gradient flows through it."""

    __slots__ = ("grad", "item", "per", "storage", "width")

    def __init__(self, width: int, item: int, per: Extent, storage: Storage, grad: bool) -> None:
        self.width = width
        self.item = item
        self.per = per
        self.storage = storage
        self.grad = grad

    def scratch(self, each: int) -> Scratch:
        """``each`` bytes for every element, as a node's temporary."""
        return self.width * each, self.per


Node = tuple[
    tuple[Var, ...], Sequence[Var], bool, Sequence[Storage], Sequence[Scratch], bool, tuple[int, ...], Sequence[Storage]
]
"""One backward function: outs, inputs, saves, first, temp, same, weights, overwritten.

Gradients of ``outs`` come in, those of ``inputs`` and ``weights`` (bytes of each parameter gradient) go out. ``saves``:
whether it saves anything; ``first``: of that what no node before it keeps. ``temp``: what lives only while the node
runs. ``same``: the incoming gradient is passed on as it is (addition, views), a copy to terms of another dtype.
``overwritten``: saved tensors whose storage takes an outgoing gradient. A plain tuple: a layer has up to a hundred of
them, each has to cost little.
"""

Step = tuple[Var, Sequence[Var], tuple[Var, ...], int, Sequence[Storage]]
"""One operation of the forward pass: out, inputs, held, saves, first.

What it makes and reads, and what the code around it holds; whether it saves anything, 2 where that is done when it has
run, and of what it saves that which no operation before it keeps.
"""


def any_grad(tensors: Sequence[Var]) -> bool:
    """Whether a gradient flows through one of these."""
    for var in tensors:  # noqa: SIM110 (any() makes a generator, which costs more than the whole loop)
        if var.grad:
            return True
    return False


def saved_factors(a: Var, b: Var) -> list[Var]:
    """Which factors of a product are saved: each for the other's gradient."""
    if a.grad:
        return [a, b] if b.grad else [b]
    return [a] if b.grad else []


class Tape:
    """Records operations. ``nodes`` are in the order of the forward pass; so are ``steps``, where ``watched``.

    ``held`` are tensors that the Python code around an operation still refers to (a residual, a function's
    argument), ``lasting`` those that it refers to until the layer ends. ``marked`` are storages that selective
    checkpointing keeps beside the input, ``arguments`` those that any checkpointing does, as it runs the layer again
    with them, ``pinned`` those that stay when the backward is done, until the graph goes. ``lingering``: those that a
    graph made again by non-reentrant checkpointing holds, because the model has a name for one of its results.
    ``graph``: whether autograd records; under ``torch.no_grad()`` nothing needs a gradient and nothing is saved: what
    a graph would keep is there as long as a name is. ``keeps_scores``: whether a softmax saves what goes into it, too.
    ``weights``: bytes of all parameter gradients that the recorded nodes make. ``unseen``: bytes that the forward pass
    has at once and the backward never sees, neither them nor a gradient.
    """

    __slots__ = (
        "_kept", "_products", "arguments", "graph", "held", "keeps_scores", "lasting", "lingering", "marked", "nodes",
        "pinned", "selective", "steps", "unseen", "watched", "weights",
    )  # fmt: skip

    def __init__(self, watched: bool = False, selective: bool = False, graph: bool = True) -> None:
        self.graph = graph
        self.keeps_scores = False
        self.nodes: list[Node] = []
        self.steps: list[Step] = []
        self.watched = watched
        self.selective = selective
        self.marked: list[Storage] = []
        self.arguments: list[Storage] = []
        self.pinned: list[Storage] = []
        self.lingering: list[Storage] = []
        self._kept: dict[Storage, None] = {}
        self._products = 0
        self.weights = 0
        self.unseen = 0
        self.held: tuple[Var, ...] = ()
        self.lasting: tuple[Var, ...] = ()

    def name(self, *tensors: Var) -> None:
        """Note names that the Python function around has for tensors until it returns (:func:`function`).

        With a graph nodes save these anyway, or what passes beside them is never the most.
        """
        if not self.graph:
            self.held = (*self.held, *tensors)

    def mark(self, *results: Var, product: bool = False) -> None:
        """Keep an expensive operation's results under selective checkpointing; of products every second one.

        torchtitan's policy (``_apply_ac_to_transformer_block``, option ``op``): the results of attention and of every
        second ``mm``, from the first on. They stay until their layer's backward is done.
        """
        if not self.selective:
            return
        self._products += product
        if product and self._products % 2 == 0:
            return
        for var in results:
            if not var.storage.external:
                var.storage.external = True
                self.marked.append(var.storage)

    def pin(self, x: Var) -> None:
        """Keep an input of the last operation as long as the graph lives: an attribute of a Python autograd node."""
        storage = x.storage
        if storage.external or storage in self.pinned:
            return
        self.pinned.append(storage)
        first = self._first((x,))
        if self.watched:
            out, inputs, held, saves, before = self.steps[-1]
            self.steps[-1] = out, inputs, held, saves, (*before, *first)

    def keep(self, number: int, *tensors: Var) -> None:
        """Keep tensors until this node has run: what a checkpoint within a layer holds."""
        outs, inputs, saves, first, temp, same, weights, taken = self.nodes[number]
        self.nodes[number] = outs, inputs, saves, [*first, *self._first(tensors)], temp, same, weights, taken

    def new(self, width: int, item: int, grad: bool = True, kind: int = ACTIVATION, per: Extent = tokens) -> Var:
        """A tensor of ``width`` elements for each of ``per`` in a storage of its own."""
        return Var(width, item, per, Storage(width * item, per, kind), grad and self.graph)

    def like(self, x: Var, width: int, item: int, grad: bool, kind: int = ACTIVATION) -> Var:
        """A tensor with rows as ``x`` has them."""
        return Var(width, item, x.per, Storage(width * item, x.per, kind), grad and self.graph)

    def constant(self, size: int, item: int, grad: bool = False, kind: int = ACTIVATION) -> Var:
        """A tensor of ``size`` elements whatever the micro-batch: a weight, or what is made of weights."""
        return Var(size, item, once, Storage(size * item, once, kind), grad and self.graph)

    def op(
        self,
        out: Var,
        inputs: Sequence[Var],
        saved: Sequence[Var] = (),
        *,
        temp: Sequence[Scratch] = (),
        weights: tuple[int, ...] = (),
        overwritten: Sequence[Var] = (),
        parameter: bool = False,
        results: bool = False,
    ) -> Var:
        """``out`` computed from ``inputs``; the backward needs ``saved``. No node where nothing needs a gradient.

        ``parameter``: whether it needs a parameter as well, which takes no room but counts as a saved tensor.
        ``results``: whether it saves something that it has made itself beside ``out``.
        """
        first: Sequence[Storage] = ()
        if self.graph and (weights or any_grad(inputs)):
            if saved:
                first = self._first(saved)
            taken = [var.storage for var in overwritten] if overwritten else ()
            saves = parameter or bool(saved)
            self.nodes.append(((out,), inputs, saves, first, temp, False, weights, taken))
            self.weights += sum(weights)
        else:
            out.grad = saves = False
        if self.watched:
            self.steps.append((out, inputs, self.held + self.lasting, saves + (saves and results), first))
        return out

    def _first(self, saved: Sequence[Var]) -> list[Storage]:
        """The storages of these tensors that are kept for the first time."""
        kept = self._kept
        found = []
        for var in saved:
            storage = var.storage
            if storage not in kept and not storage.external:
                kept[storage] = None
                found.append(storage)
        return found

    def add(self, *terms: Var) -> Var:
        """The sum of same-shaped tensors: saves nothing, hands its gradient to every term."""
        item = max([term.item for term in terms])
        first = terms[0]
        flows = any_grad(terms)
        out = self.like(first, first.width, item, flows, first.storage.kind)
        if flows:
            self.nodes.append(((out,), terms, False, (), (), True, (), ()))
        if self.watched:
            self.steps.append((out, terms, self.held + self.lasting, False, ()))
        return out

    def cat(self, *terms: Var) -> Var:
        """Tensors side by side in a new one (``torch.cat``): saves nothing, hands each a view of its gradient."""
        first = terms[0]
        flows = any_grad(terms)
        out = self.like(first, sum([term.width for term in terms]), first.item, flows)
        if flows:
            self.nodes.append(((out,), terms, False, (), (), True, (), ()))
        if self.watched:
            self.steps.append((out, terms, self.held + self.lasting, False, ()))
        return out

    def map(self, x: Var, saved: Sequence[Var] = (), item: int | None = None, temp: Sequence[Scratch] = ()) -> Var:
        """An elementwise operation of one input: a new tensor, and on the way back a new gradient."""
        out = self.like(x, x.width, item or x.item, x.grad, x.storage.kind)
        return self.op(out, (x,), saved, temp=temp)

    def exp(self, x: Var, temp: Sequence[Scratch] = ()) -> Var:
        """The exponential, whose backward needs its result alone; so does that of each function named below."""
        out = Var(x.width, x.item, x.per, Storage(x.width * x.item, x.per, x.storage.kind), x.grad)
        return self.op(out, (x,), (out,), temp=temp)

    expm1 = relu = rsqrt = sigmoid = tanh = exp

    def softmax(self, x: Var) -> Var:
        """The softmax over the last dimension, whose backward needs its result alone since torch 1.11."""
        out = Var(x.width, x.item, x.per, Storage(x.width * x.item, x.per, x.storage.kind), x.grad)
        return self.op(out, (x,), (out, x) if self.keeps_scores else (out,))

    log_softmax = softmax

    def cast(self, x: Var, item: int) -> Var:
        """``x.to(dtype)``: the same tensor where it has the dtype already, else a copy; saves nothing."""
        return x if x.item == item else self.map(x, item=item)

    def split(self, x: Var, widths: Sequence[int]) -> list[Var]:
        """Views into ``x``; on the way back one buffer of the size of ``x`` is put together from their gradients."""
        parts = [Var(width, x.item, x.per, x.storage, x.grad) for width in widths]
        if x.grad:
            self.nodes.append((tuple(parts), (x,), False, (), (), False, (), ()))
        return parts

    def view(self, x: Var, width: int, per: Extent) -> Var:
        """The same elements in rows of another width."""
        out = Var(width, x.item, per, x.storage, x.grad)
        if x.grad:
            self.nodes.append(((out,), (x,), False, (), (), True, (), ()))
        return out

    def copied_back(self, x: Var, width: int | None = None, per: Extent | None = None) -> Var:
        """x, or a part of it, whose gradient is copied: into another layout, or into zeros of x's size."""
        return self.link(Var(width or x.width, x.item, per or x.per, x.storage, x.grad), (x,))

    def add_(self, x: Var, other: Var) -> Var:
        """x with another tensor added in place; both get the sum's gradient as it is."""
        return self.link(Var(x.width, x.item, x.per, x.storage, x.grad or other.grad), (x, other), same=True)

    def added(self, x: Var) -> Var:
        """x, whose gradient is added to one that is there already."""
        return self.link(Var(x.width, x.item, x.per, x.storage, x.grad), ())

    def link(self, out: Var, inputs: Sequence[Var], *, same: bool = False, weights: tuple[int, ...] = ()) -> Var:
        """``out`` as a tensor that is there already and has a gradient of its own: a view, a sum in place."""
        if out.grad:
            self.nodes.append(((out,), inputs, False, (), (), same, weights, ()))
            self.weights += sum(weights)
        return out

    def forget(self, storages: Iterable[Storage]) -> None:
        """Leave storages to somebody else that the recorded nodes keep alive."""
        for storage in storages:
            self._kept.pop(storage, None)

    def saved(self) -> list[Storage]:
        """The storages that the recorded nodes keep alive until the backward pass, each once."""
        return list(self._kept)

    def saves(self, x: Var) -> bool:
        """Whether the recorded nodes keep the storage of a tensor alive."""
        return x.storage in self._kept


T = TypeVar("T", bound=Tape)
P = ParamSpec("P")
R = TypeVar("R")


def function(body: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """A Python function of the model's code, whose names go when it returns."""

    @wraps(body)
    def run(t: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        held = t.held
        result = body(t, *args, **kwargs)
        t.held = held
        return result

    return run
