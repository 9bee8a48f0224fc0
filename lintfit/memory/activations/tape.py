"""A tape of what autograd saves: the operations of one layer with sizes in place of values.

A family's layer is written against :class:`Tape` the way transformers writes it against torch. Each operation
notes what its backward formula keeps (torch's ``derivatives.yaml``), and :func:`backward` replays the tape in
reverse as the autograd engine does: newest node first, a gradient freed when its node has run, gradients of a
tensor used twice added in place, saved tensors released node by node. All sizes are bytes of one rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

BLOCK = 512
"""The caching allocator's smallest block (``kMinBlockSize``, c10/cuda/CUDACachingAllocator.cpp)."""

ACTIVATION, LOGITS, CAST = range(3)


def rounded(size: int) -> int:
    """Bytes that the caching allocator hands out for ``size`` bytes."""
    return -(-size // BLOCK) * BLOCK


class Storage:
    """One allocation. ``external`` storages are counted by somebody else (a checkpointed layer's input)."""

    __slots__ = ("external", "kind", "size")

    def __init__(self, size: int, kind: int = ACTIVATION) -> None:
        self.size = -(-size // BLOCK) * BLOCK
        self.kind = kind
        self.external = False


class Var:
    """A tensor of ``numel`` elements of ``item`` bytes in a storage, and whether a gradient flows through it."""

    __slots__ = ("grad", "item", "numel", "storage")

    def __init__(self, numel: int, item: int, storage: Storage, grad: bool) -> None:
        self.numel = numel
        self.item = item
        self.storage = storage
        self.grad = grad


class Node:
    """One backward function: gradients of ``outs`` come in, those of ``inputs`` and ``weights`` go out.

    ``temp``: bytes that live only while the node runs, negative where it overwrites logits. ``same``: the incoming
    gradient is passed on as it is (addition, views). ``weights``: bytes of each parameter gradient it makes.
    """

    __slots__ = ("inputs", "outs", "same", "saved", "temp", "weights")

    def __init__(
        self,
        outs: tuple[Var, ...],
        inputs: Sequence[Var],
        saved: Sequence[Storage],
        temp: int,
        same: bool,
        weights: tuple[int, ...],
    ) -> None:
        self.outs = outs
        self.inputs = inputs
        self.saved = saved
        self.temp = temp
        self.same = same
        self.weights = weights


class Live(NamedTuple):
    """Bytes alive at one point of a backward pass, by what they are."""

    activations: int = 0
    logits: int = 0
    casts: int = 0
    temporaries: int = 0
    gradients: int = 0

    @property
    def total(self) -> int:
        return sum(self)


class Tape:
    """Records operations. ``nodes`` are in the order of the forward pass.

    ``held`` are tensors that the Python code around an operation still refers to (a residual, a function's
    argument). ``forward`` is the most bytes alive after any operation of the forward pass: what is saved so far,
    what is held, and the operation's own inputs and result. ``early`` is the same up to the last tensor saved,
    where non-reentrant checkpointing stops to recompute (``torch/utils/checkpoint.py``, ``_StopRecomputationError``).
    Both are followed only where ``watched``. ``marked``: bytes that selective checkpointing keeps beside the input.
    """

    __slots__ = (
        "_kept", "_products", "_seen", "early", "forward", "held", "marked", "nodes", "pinned", "selective", "watched",
    )  # fmt: skip

    def __init__(self, watched: bool = False, selective: bool = False) -> None:
        self.nodes: list[Node] = []
        self.watched = watched
        self.selective = selective
        self.marked = 0
        self.pinned: set[Storage] = set()
        self._products = 0
        self.held: tuple[Var, ...] = ()
        self.forward = 0
        self.early = 0
        self._seen: set[Storage] = set()
        self._kept = 0

    def _record(self, node: Node) -> None:
        self.nodes.append(node)
        if self.watched:
            for storage in node.saved:
                if storage not in self._seen and not storage.external:
                    self._seen.add(storage)
                    self._kept += storage.size

    def _alive(self, out: Var, inputs: tuple[Var, ...], saves: bool) -> None:
        seen = self._seen
        total = self._kept
        loose = set()
        for var in (*inputs, *self.held):
            storage = var.storage
            if storage not in seen and storage not in loose:
                loose.add(storage)
                if not storage.external:
                    total += storage.size
        if saves:
            self.early = max(self.forward, total)
        storage = out.storage
        if storage not in seen and storage not in loose:
            total += storage.size
        if total > self.forward:
            self.forward = total

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
                self.marked += var.storage.size

    def pin(self, x: Var) -> None:
        """Keep a tensor as long as the graph lives: an attribute of a Python autograd node, not a saved tensor."""
        storage = x.storage
        if storage.external or storage in self.pinned:
            return
        self.pinned.add(storage)
        if self.watched and storage not in self._seen:
            self._seen.add(storage)
            self._kept += storage.size

    def held_by_graph(self) -> int:
        """Bytes that stay when the backward is done, until the graph goes."""
        return sum(storage.size for storage in self.pinned)

    def new(self, numel: int, item: int, grad: bool = True, kind: int = ACTIVATION) -> Var:
        """A tensor in a storage of its own."""
        return Var(numel, item, Storage(numel * item, kind), grad)

    def op(
        self,
        out: Var,
        inputs: Iterable[Var],
        saved: Iterable[Var] = (),
        *,
        temp: int = 0,
        weights: tuple[int, ...] = (),
    ) -> Var:
        """``out`` computed from ``inputs``; the backward needs ``saved``. No node where nothing needs a gradient."""
        inputs = tuple(inputs)
        flowing = [var for var in inputs if var.grad]
        if flowing or weights:
            storages = [var.storage for var in saved]
            self._record(Node((out,), flowing, storages, temp, False, weights))
        else:
            storages = []
            out.grad = False
        if self.watched:
            self._alive(out, inputs, bool(storages))
        return out

    def add(self, *terms: Var) -> Var:
        """The sum of same-shaped tensors: saves nothing, hands its gradient to every term."""
        item = max(term.item for term in terms)
        out = self.new(terms[0].numel, item, any(term.grad for term in terms), terms[0].storage.kind)
        flowing = [term for term in terms if term.grad]
        if flowing:
            self._record(Node((out,), flowing, (), 0, all(term.item == item for term in flowing), ()))
        if self.watched:
            self._alive(out, terms, False)
        return out

    def map(self, x: Var, saved: Iterable[Var] = (), item: int | None = None, temp: int = 0) -> Var:
        """An elementwise operation of one input: a new tensor, and on the way back a new gradient."""
        out = self.new(x.numel, item or x.item, x.grad, x.storage.kind)
        return self.op(out, (x,), saved, temp=temp)

    def cast(self, x: Var, item: int) -> Var:
        """``x.to(dtype)``: the same tensor where it has the dtype already, else a copy; saves nothing."""
        return x if x.item == item else self.map(x, item=item)

    def split(self, x: Var, numels: Sequence[int]) -> list[Var]:
        """Views into ``x``; on the way back one buffer of the size of ``x`` is put together from their gradients."""
        parts = [Var(numel, x.item, x.storage, x.grad) for numel in numels]
        if x.grad:
            self._record(Node(tuple(parts), (x,), (), 0, False, ()))
        return parts

    def saved(self) -> Live:
        """What the recorded nodes keep alive until the backward pass, each storage once."""
        sizes = [0, 0, 0]
        seen: set[int] = set()
        for node in self.nodes:
            for storage in node.saved:
                if not storage.external and id(storage) not in seen:
                    seen.add(id(storage))
                    sizes[storage.kind] += storage.size
        for storage in self.pinned:
            if id(storage) not in seen:
                sizes[storage.kind] += storage.size
        return Live(sizes[ACTIVATION], sizes[LOGITS], sizes[CAST])

    def weights(self) -> int:
        """Bytes of all parameter gradients that the recorded nodes make."""
        return sum(size for node in self.nodes for size in node.weights)


class _Gradient:
    __slots__ = ("logits", "refs", "size")

    def __init__(self, size: int, logits: bool) -> None:
        self.size = size
        self.refs = 0
        self.logits = logits


def backward(tape: Tape, out: Var, *, kept: float = 1.0, extra: int = 0, recompute: int = 0) -> Live:
    """Replay ``tape`` backwards from the gradient of ``out``: what is alive at the point with the most bytes.

    ``kept`` is the share of each parameter gradient that stays on this rank as a gradient of its own: 1 for a
    plain step, 0 where it is added to an earlier micro-batch's, 1/ranks where it is reduced and sharded.
    ``extra`` bytes (a recomputed layer's output, say) are alive throughout. ``recompute``: the
    worst point of the forward pass that is run again when the first node asks for a saved tensor.
    """
    users: dict[Storage, int] = {}
    live = [0, 0, 0]
    for storage in tape.pinned:
        users[storage] = 1
        live[storage.kind] += storage.size
    for node in tape.nodes:
        for storage in node.saved:
            if storage.external:
                continue
            if storage not in users:
                users[storage] = 1
                live[storage.kind] += storage.size
            else:
                users[storage] += 1
    stored = sum(live)
    gradients = 0.0
    # Bytes of gradients on their way: those of logits, and the others with what is alive throughout.
    waiting = [extra, 0]
    first = _Gradient(rounded(out.numel * out.item), out.storage.kind == LOGITS)
    first.refs = 1
    peak = Live(live[0], live[1], live[2], extra, 0)
    peak_total = peak.total
    waiting[first.logits] += first.size
    pending: dict[Var, _Gradient] = {out: first}

    for node in reversed(tape.nodes):
        incoming = []
        for var in node.outs:
            gradient = pending.pop(var, None)
            if gradient is not None:
                gradient.refs -= 1
                incoming.append(gradient)
        outgoing: list[tuple[Var, _Gradient]] = []
        if recompute and node.saved:
            if recompute + waiting[0] > peak_total:
                peak_total = recompute + waiting[0]
                peak = Live(recompute, 0, 0, waiting[0], 0)
            recompute = 0
        if incoming:
            for var in node.inputs:
                if node.same:
                    gradient = incoming[0]
                else:
                    gradient = _Gradient(-(-var.numel * var.item // BLOCK) * BLOCK, var.storage.kind == LOGITS)
                    waiting[gradient.logits] += gradient.size
                outgoing.append((var, gradient))
        made = sum(node.weights) if node.weights else 0
        total = stored + waiting[0] + waiting[1] + node.temp + made + gradients
        if total > peak_total:
            peak_total = int(total)
            peak = Live(
                live[0],
                live[1] + waiting[1] + min(0, node.temp),
                live[2],
                waiting[0] + max(0, node.temp) + made - int(made * kept),
                int(gradients + made * kept),
            )
        gradients += made * kept
        for storage in node.saved:
            if storage.external:
                continue
            users[storage] -= 1
            if not users[storage]:
                live[storage.kind] -= storage.size
                stored -= storage.size
        for var, gradient in outgoing:
            held = pending.get(var)
            if held is None:
                gradient.refs += 1
                pending[var] = gradient
            elif held.refs > 1 and not node.same:
                # The engine adds in place only into a buffer that nobody else holds (InputBuffer::accumulate).
                held.refs -= 1
                gradient.refs += 1
                pending[var] = gradient
            elif gradient.refs == 0 and not node.same:
                waiting[gradient.logits] -= gradient.size
        for gradient in incoming:
            if gradient.refs == 0:
                waiting[gradient.logits] -= gradient.size
    return peak
