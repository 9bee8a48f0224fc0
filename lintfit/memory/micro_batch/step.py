"""What one micro-batch keeps in memory on one rank: every layer, the head, and what lies around them."""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.frozen import field, frozen, replace
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.activations.profile import Profile
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.loss.head import Head


@frozen
class Stretch:
    """Layers of one kind that follow one another: how many, one's profile, and whether they are checkpointed.

    ``waiting``: bytes of gradients that wait through their backward for what lies before them. ``listed``: whether a
    list that the forward has of the stream (:attr:`Step.listed_states`) has what they take.
    """

    length: int
    layer: Profile
    checkpointed: bool
    waiting: int = 0
    listed: bool = True

    def pinning(self, size: int) -> Stretch:
        """The same layers, of each of which the loop's variables hold so many bytes beyond its backward."""
        return replace(self, layer=replace(self.layer, pinned=self.layer.pinned + size))


@frozen
class Step:
    """What one micro-batch of a run saves: its layers in order, its head, and the embedding's side."""

    stretches: tuple[Stretch, ...]
    head: Head
    recipe: Recipe
    copies: int
    """Bytes of the half-precision copies that autocast caches of all weights."""
    inputs: int
    front: int
    cached: int
    masks: int
    kept_share: float
    retained: bool
    offloaded: bool
    in_flight: int
    embedding_scratch: int
    out_of_place: bool
    waiting: int
    """Bytes of the head's gradient where it waits in the engine for the embedding's, which has the same weight."""
    last_graph: int
    """What the last iteration's graph still holds while this one's forward runs: LitGPT's loop keeps its loss."""
    notes: tuple[str, ...]
    exchanged: int = 0
    """Of ``front`` the buffers that a pipeline's stage receives activations or gradients in."""
    buffers: int = 0
    """Bytes of the model's buffers over all positions, which are there from its load on."""
    before: int = 0
    """Of ``layers``, those of the image encoder, which run first."""
    named: int = 0
    """Bytes that the model's forward has names for while the text's layers run."""
    named_saved: int = 0
    """Of these what layers save."""
    listed: int = 0
    """Bytes that it has names for besides where no layer leaves a graph, or below zero, what then is not there."""
    answered: int = 0
    """Bytes that the model's forward gives back beside the loss, which nobody saves."""
    answered_bare: int | None = None
    """The same in a forward without a graph, where that is not as much."""
    last_norm: int = 0
    """Bytes at the worst point of the forward of the norm behind the last layer, where anything is ``named``."""
    copied: int = 0
    """How many of the text's first layers have their results copied for something to be added to them: what they gave
    has a name until the next layer has given its own."""
    tiled: int = 0
    """Of ``copies`` the head's, where the training's loss casts it tile by tile instead."""
    opening: int = 0
    """Of ``front`` what only a graph keeps: the mask of the first dropout, and embeddings that are a leaf."""
    ending_copies: int = 0
    """Of ``copies`` those that are made between the last layer and the head."""
    opening_casts: int = 0
    """Bytes of ``copies`` that a graph keeps in front of the first layer."""
    summands: int = 0
    """Bytes that the first layer's input is made of, where it is a sum, or normed: these have names of their own."""
    summands_kept: int = 0
    """Of ``summands`` what the graph keeps, which ``front`` has."""
    embedded: int = 0
    """Bytes of the embedding's gradient, where it is made before the backward of the image encoder that ran first."""
    words_again: int = 0
    """Bytes of the embedding's gradient where an encoder's words are looked up in the decoder's table: it is made again
    at the end of the backward, and added."""
    outputs: Live = NOTHING
    """What variables of the training loop hold of a micro-batch's results in its backward pass and behind it, apart
    from what the layers' ``pinned`` and the head's ``lingering`` say."""
    evaluated: int = 0
    """Keys and values that the model returns where nothing is trained, although nobody asks for them."""
    evaluated_last: int = 0
    """Of these the last layer's."""
    untaken: int = 0
    """Of ``masks`` the bytes of one that no layer takes, and no checkpoint holds."""
    let_go: tuple[tuple[int, int], ...] = ()
    """Masks and tables that are gone before the first layers run backward: the first layer that takes each, and
    bytes."""
    earlier: Live = NOTHING
    """What is there in the forward beside the graph: results of the last micro-batch, and outputs that no layer saves,
    or that are there in two dtypes."""
    listed_states: bool = False
    """Whether the model's forward has a list of what every layer gave until the last one is done."""

    count: int = field(init=False)
    """How many layers there are."""
    checkpoints: bool = field(init=False)
    """Whether any layer is checkpointed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", sum([stretch.length for stretch in self.stretches]))
        object.__setattr__(self, "checkpoints", any(stretch.checkpointed for stretch in self.stretches))

    @property
    def around(self) -> int:
        """Bytes beside a layer that runs without a graph: tables and masks that all layers share, and what is named."""
        return self.front - self.opening + self.masks + self.named_bare

    @property
    def named_bare(self) -> int:
        """Bytes that the model's forward has names for where no layer leaves a graph."""
        return self.named + self.listed

    def named_result(self, index: int) -> int:
        """Bytes of the result of the layer before this one, where a copy of it goes on."""
        return self.stretches[self.before].layer.output if 0 < index - self.before <= self.copied else 0

    def listed_before(self, index: int, *, bare: bool = False) -> int:
        """Bytes of the results in that list in a layer's forward that nobody else counts: not the embeddings, nor what
        this layer takes; ``bare``: where no layer leaves a graph."""
        if not self.listed_states:
            return 0
        found, number = 0, 0
        for stretch in self.stretches:
            kept = not stretch.listed or (not bare and (stretch.checkpointed or stretch.layer.keeps_input))
            taken = len(range(max(number, self.before + 1), min(number + stretch.length, index)))
            found += 0 if kept else taken * stretch.layer.input
            number += stretch.length
        return found

    @property
    def cast(self) -> int:
        """Bytes of autocast's cached copies in the training."""
        return self.copies - self.tiled

    @property
    def layers(self) -> tuple[Profile, ...]:
        """Every layer, in the order of the forward pass."""
        return tuple([stretch.layer for stretch in self.stretches for _ in range(stretch.length)])

    @property
    def checkpointed(self) -> tuple[bool, ...]:
        """Whether it is, of every layer."""
        return tuple([stretch.checkpointed for stretch in self.stretches for _ in range(stretch.length)])

    def keeps(self, stretch: Stretch) -> Live:
        """What each layer of a stretch keeps on the GPU from its forward to its backward."""
        if not stretch.checkpointed:
            return stretch.layer.saved
        return NOTHING if self.offloaded else Live(stretch.layer.input + stretch.layer.marked)

    def own(self, stretch: Stretch) -> int:
        """Bytes of a layer's checkpointed input while it runs backward; an offloaded one is back beside the next."""
        if not stretch.checkpointed:
            return 0
        return stretch.layer.input * (2 if self.offloaded else 1) + stretch.layer.marked

    def kept(self, before: int | None = None) -> Live:
        """What layers keep together: the first ones, up to a number, or all, and the graph in front of them."""
        left = self.count if before is None else before
        counts: dict[int, int] = {}
        kinds: dict[int, Stretch] = {}
        for stretch in self.stretches:
            if left <= 0:
                break
            kind, count = id(stretch.layer), min(stretch.length, left)
            kinds[kind] = stretch
            counts[kind] = counts.get(kind, 0) + count
            left -= count
        found = Live(casts=self.opening_casts) if self.opening_casts else NOTHING
        for kind, stretch in kinds.items():
            found = found.plus(self.keeps(stretch), counts[kind])
        return found

    def gone(self, index: int) -> int:
        """Bytes of :attr:`masks` that are gone when this layer runs backward."""
        return sum([size for first, size in self.let_go if first + self.before > index])

    def waits_at(self, index: int) -> int:
        """Bytes of the gradients that wait while this layer runs backward."""
        for stretch in self.stretches:
            if index < stretch.length:
                return stretch.waiting
            index -= stretch.length
        return 0

    def waits(self) -> int:
        """Bytes of :attr:`waiting` that are no gradient of this rank's own while the layers run backward."""
        return self.waiting - int(self.kept_share * self.waiting)

    def results(self) -> Live:
        """What the loop's variables hold once the backward is done; LitGPT's loop holds a graph, in ``last_graph``."""
        if self.outputs is NOTHING:
            named = sum([stretch.length * stretch.layer.lingers for stretch in self.stretches])
            return Live(named) if named else NOTHING
        # What lingers is among what is pinned, but for what reentrant checkpointing has.
        retained = sum([part.length * part.layer.lingers for part in self.stretches if part.layer.retains])
        held = pinned(self.stretches) + retained
        return Live(self.outputs.activations + held, self.outputs.logits + self.head.lingering)


def pinned(stretches: Iterable[Stretch]) -> int:
    """Bytes of what layers keep beyond their backward, until the graph goes."""
    return sum([stretch.length * stretch.layer.pinned for stretch in stretches])
