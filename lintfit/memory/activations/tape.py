"""A tape of what autograd saves: the operations of one layer with sizes in place of values.

A family's layer is written against :class:`Tape` the way transformers writes it against torch. Each operation
notes what its backward formula keeps (torch's ``derivatives.yaml``). A tape knows no batch and no sequence length: a
tensor has so many elements a token (or for each of another :data:`Extent`), so that one recording holds for every
micro-batch. :mod:`.form` turns it into closed forms of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


def positions(batch: int, seq: int) -> int:
    """Positions in a sequence."""
    return seq


def pairs(batch: int, seq: int) -> int:
    """Pairs of tokens in a sequence: attention scores and masks."""
    return batch * seq * seq


def rounded(size: int) -> int:
    """Bytes that the caching allocator hands out for ``size`` bytes."""
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True, slots=True)
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


class Node(NamedTuple):
    """One backward function: gradients of ``outs`` come in, those of ``inputs`` and ``weights`` go out.

    ``temp``: what lives only while the node runs. ``same``: the incoming gradient is passed on as it is
    (addition, views). ``weights``: bytes of each parameter gradient it makes. ``overwritten``: saved tensors whose
    storage takes an outgoing gradient.
    """

    outs: tuple[Var, ...]
    inputs: Sequence[Var]
    saved: Sequence[Storage]
    temp: tuple[Scratch, ...]
    same: bool
    weights: tuple[int, ...]
    overwritten: tuple[Storage, ...] = ()


class Step(NamedTuple):
    """One operation of the forward pass: what it makes, reads and saves, and what the code around it holds."""

    out: Var
    inputs: tuple[Var, ...]
    held: tuple[Var, ...]
    saved: Sequence[Storage]
    pinned: tuple[Storage, ...] = ()


class Tape:
    """Records operations. ``nodes`` are in the order of the forward pass; so are ``steps``, where ``watched``.

    ``held`` are tensors that the Python code around an operation still refers to (a residual, a function's
    argument). ``marked`` are storages that selective checkpointing keeps beside the input, ``pinned`` those that stay
    when the backward is done, until the graph goes.
    """

    __slots__ = ("_products", "held", "marked", "nodes", "pinned", "selective", "steps", "watched")

    def __init__(self, watched: bool = False, selective: bool = False) -> None:
        self.nodes: list[Node] = []
        self.steps: list[Step] = []
        self.watched = watched
        self.selective = selective
        self.marked: list[Storage] = []
        self.pinned: list[Storage] = []
        self._products = 0
        self.held: tuple[Var, ...] = ()

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
        if self.watched:
            self.steps[-1] = self.steps[-1]._replace(pinned=(storage,))

    def new(self, width: int, item: int, grad: bool = True, kind: int = ACTIVATION, per: Extent = tokens) -> Var:
        """A tensor of ``width`` elements for each of ``per`` in a storage of its own."""
        return Var(width, item, per, Storage(width * item, per, kind), grad)

    def like(self, x: Var, width: int, item: int, grad: bool, kind: int = ACTIVATION) -> Var:
        """A tensor with rows as ``x`` has them."""
        return Var(width, item, x.per, Storage(width * item, x.per, kind), grad)

    def constant(self, size: int, item: int, grad: bool = False, kind: int = ACTIVATION) -> Var:
        """A tensor of ``size`` elements whatever the micro-batch: a weight, or what is made of weights."""
        return Var(size, item, once, Storage(size * item, once, kind), grad)

    def op(
        self,
        out: Var,
        inputs: Iterable[Var],
        saved: Iterable[Var] = (),
        *,
        temp: tuple[Scratch, ...] = (),
        weights: tuple[int, ...] = (),
        overwritten: tuple[Var, ...] = (),
    ) -> Var:
        """``out`` computed from ``inputs``; the backward needs ``saved``. No node where nothing needs a gradient."""
        inputs = tuple(inputs)
        flowing = [var for var in inputs if var.grad]
        storages: list[Storage] = []
        if flowing or weights:
            storages = [var.storage for var in saved]
            taken = tuple([var.storage for var in overwritten])
            self.nodes.append(Node((out,), flowing, storages, temp, False, weights, taken))
        else:
            out.grad = False
        if self.watched:
            self.steps.append(Step(out, inputs, self.held, storages))
        return out

    def add(self, *terms: Var) -> Var:
        """The sum of same-shaped tensors: saves nothing, hands its gradient to every term."""
        item = max([term.item for term in terms])
        first = terms[0]
        flowing = [term for term in terms if term.grad]
        out = self.like(first, first.width, item, bool(flowing), first.storage.kind)
        if flowing:
            self.nodes.append(Node((out,), flowing, (), (), all(term.item == item for term in flowing), ()))
        if self.watched:
            self.steps.append(Step(out, terms, self.held, ()))
        return out

    def map(self, x: Var, saved: Iterable[Var] = (), item: int | None = None, temp: tuple[Scratch, ...] = ()) -> Var:
        """An elementwise operation of one input: a new tensor, and on the way back a new gradient."""
        out = self.like(x, x.width, item or x.item, x.grad, x.storage.kind)
        return self.op(out, (x,), saved, temp=temp)

    def cast(self, x: Var, item: int) -> Var:
        """``x.to(dtype)``: the same tensor where it has the dtype already, else a copy; saves nothing."""
        return x if x.item == item else self.map(x, item=item)

    def split(self, x: Var, widths: Sequence[int]) -> list[Var]:
        """Views into ``x``; on the way back one buffer of the size of ``x`` is put together from their gradients."""
        parts = [Var(width, x.item, x.per, x.storage, x.grad) for width in widths]
        if x.grad:
            self.nodes.append(Node(tuple(parts), (x,), (), (), False, ()))
        return parts

    def saved(self) -> list[Storage]:
        """The storages that the recorded nodes keep alive until the backward pass, each once."""
        found = {storage: None for node in self.nodes for storage in node.saved if not storage.external}
        return list({**found, **dict.fromkeys(self.pinned)})

    def weights(self) -> int:
        """Bytes of all parameter gradients that the recorded nodes make."""
        return sum([size for node in self.nodes for size in node.weights])
