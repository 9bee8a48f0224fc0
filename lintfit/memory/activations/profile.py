"""One layer, counted: what it saves, and the worst point of its backward pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.memory.activations.blocks import Layer, Naming
from lintfit.memory.activations.families import family
from lintfit.memory.activations.form import Backward, Changes, Live, Passed, Reader, Table, live, reader, total
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.kinds import Kind, kinds, stream_width
from lintfit.memory.activations.litgpt import layer as litgpt_layer
from lintfit.memory.activations.recipe import Recipe, untrained
from lintfit.memory.activations.replay import backward, bare, forward, late_copies
from lintfit.memory.activations.tape import Var, rounded


@frozen
class Profile:
    """One layer of one rank, in bytes.

    ``input``: its input, which checkpointing keeps instead of ``saved``. ``saved``: what autograd keeps without
    checkpointing (the input where an operation saves it). ``peak``: the worst point of its backward pass, with
    everything recomputed where it is checkpointed, without the input then. ``weights``: its parameter
    gradients. ``output``: its output. ``marked``: what selective checkpointing keeps beside the input, or any that runs
    the layer again with other arguments. ``pinned``: what of all this stays after its backward, until the graph goes.
    ``keeps_input``: whether the input is among ``saved``. ``returned``: attention weights that it gives back beside its
    output. ``retains``: whether it holds its checkpointed input, and that input its gradient, behind its backward;
    ``lingers``: all that it holds until it runs the next time. ``form``: where it is not checkpointed, its form, and in
    ``batch`` and ``seq`` the micro-batch.
    """

    input: int
    saved: Live
    peak: Live
    weights: int
    output: int
    marked: int = 0
    pinned: int = 0
    keeps_input: bool = False
    returned: int = 0
    retains: bool = False
    lingers: int = 0
    form: Form | None = None
    batch: int = 0
    seq: int = 0

    @property
    def ceiling(self) -> int:
        """Bytes that no point of its forward pass exceeds, the input with it; 0 where it is checkpointed.

        That is all that is saved, and beside it one operation's tensors, whose gradients the backward has, or what the
        backward never sees. Of a layer that leaves no graph that is nothing, and its forward pass is followed.
        """
        if self.form is None:
            return 0
        if not self.form.output.grad:
            return self.forward
        return self.input + self.saved.total + self.peak.total + self.form.unseen

    @property
    def forward(self) -> int:
        """Bytes at the worst point of its forward pass, the input with it; 0 where it is checkpointed."""
        return self.form.passing(self.batch, self.seq) if self.form is not None else 0


@frozen
class Forward:
    """A layer's forward pass with a graph, for any micro-batch."""

    table: Table
    passed: Passed

    def peak(self, batch: int, seq: int) -> int:
        """Bytes at the worst point, without an input that somebody else counts."""
        return self.passed.peak(self.table.sizes(batch, seq))


@frozen
class Form:
    """The same for any micro-batch. ``again``: the forward pass, where it is followed from the start.

    ``watch`` writes and follows it where it is not: most layers' pass is never the peak. ``unseen``: see
    :class:`.tape.Tape`.
    """

    table: Table
    input: Var
    output: Var
    marked: Changes
    arguments: Changes
    pinned: Changes
    lingering: Changes
    passed: Backward
    again: Passed | None
    weights: int
    keeps_input: bool
    returned: tuple[Var, ...] = ()
    unseen: int = 0
    watch: Callable[[], Forward] | None = None

    def passing(self, batch: int, seq: int) -> int:
        """Bytes at the worst point of the forward pass, without an input that somebody else counts."""
        if self.watch is not None:
            return self.watch().peak(batch, seq)
        return self.again.peak(self.table.sizes(batch, seq)) if self.again is not None else 0


def profile(
    facts: ModelFacts,
    recipe: Recipe,
    batch: int,
    seq: int,
    index: int,
    *,
    stream: int,
    flows: bool = True,
    checkpointed: bool = False,
    selective: bool = False,
    reentrant: bool = False,
    kept: float = 1.0,
) -> Profile:
    """The profile of layer ``index`` for ``batch`` sequences of ``seq`` tokens.

    ``stream``: bytes of an element of the residual stream. ``flows``: whether its input needs a gradient (not in the
    first layer behind frozen embeddings). ``kept``: see :meth:`.form.Backward.peak`.
    """
    kind = kinds(facts)[index]
    slides = kind.window is not None and seq >= kind.window
    early = checkpointed and not reentrant
    form = _form(facts, recipe, index, kind, batch > 1, _How(stream, flows, checkpointed, selective, slides, early))
    return counted(form, batch, seq, checkpointed=checkpointed, reentrant=reentrant, kept=kept)


def counted(
    form: Form, batch: int, seq: int, *, checkpointed: bool = False, reentrant: bool = False, kept: float = 1.0
) -> Profile:
    """A form's bytes for ``batch`` sequences of ``seq`` tokens."""
    again = form.again if checkpointed else None
    sizes = form.table.sizes(batch, seq)
    saved = live(form.passed.saved, sizes)
    repeated = again.peak(sizes, early=not reentrant) if again is not None else 0
    output = _size(form.output, batch, seq)
    # Reentrant checkpointing runs a layer again before any node of its backward, and holds the output throughout.
    returned = sum([_size(var, batch, seq) for var in form.returned])
    extra, incoming = (output, output + returned) if checkpointed and reentrant else (0, None)
    # Reentrant checkpointing runs its forward without a graph, but its node has the arguments as long as it lives; the
    # other kind's first graph holds the inputs, too.
    arguments = total(form.arguments, sizes)
    pinned = arguments if checkpointed and reentrant else total(form.pinned, sizes)
    marked = total(form.marked, sizes) + (pinned if checkpointed else 0) + (0 if reentrant else arguments)
    lingers = total(form.lingering, sizes) if checkpointed else 0
    pinned += 0 if reentrant else lingers
    retains = checkpointed and reentrant and bool(lingers)
    return Profile(
        input=_size(form.input, batch, seq),
        saved=saved,
        peak=form.passed.peak(sizes, saved, kept=kept, extra=extra, recompute=repeated, incoming=incoming),
        weights=form.weights,
        output=output,
        marked=marked,
        pinned=pinned,
        keeps_input=form.keeps_input,
        returned=returned,
        retains=retains,
        lingers=2 * _size(form.input, batch, seq) if retains else lingers,
        form=None if checkpointed else form,
        batch=batch,
        seq=seq,
    )


@frozen
class Bare:
    """A layer's forward pass without a graph, for any micro-batch.

    ``points``: what is there behind each operation, less those of autocast's copies that are not made yet; and these.
    ``copies``: all that the layer makes of them.
    """

    table: Table
    input: Var
    points: tuple[tuple[Reader, Reader], ...]
    returned: tuple[Var, ...]
    """What the model's loop has of the layer before until this one is done."""
    copies: Reader

    def peak(self, batch: int, seq: int) -> Live:
        """What is there at the worst point, with the input; ``casts``: less the copies that are not made yet.

        These are the caller's to count, those of all layers.
        """
        sizes = self.table.sizes(batch, seq)
        beside = sum([_size(var, batch, seq) for var in (self.input, *self.returned)])
        totals = [sum(counted(sizes)) for counted, _ in self.points]
        worst = max(totals)
        later = sum(self.points[totals.index(worst)][1](sizes))
        return Live(beside + worst + later, casts=-later)

    def cached(self, batch: int, seq: int) -> int:
        """Bytes of the copies of its weights that autocast caches."""
        return sum(self.copies(self.table.sizes(batch, seq)))


_BARE: Memo[Bare] = Memo(4096)


def without_graph(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, index: int, *, stream: int) -> Bare:
    """Layer ``index``'s forward pass without gradients; for another micro-batch only where it is as ``batched`` and as
    long as this one."""
    if recipe.frozen or not recipe.autocast or recipe.weights != 4:
        recipe = untrained(recipe)
    kind = kinds(facts)[index]
    slides = kind.window is not None and seq >= kind.window
    batched = batch > 1
    found = _BARE.find(facts, (recipe, kind, stream, slides, batched))
    if found is None:
        found, asked = _without_graph(facts, recipe, index, stream, batched=batched, slides=slides)
        for either in (batched,) if asked else (True, False):
            _BARE.keep(facts, (recipe, kind, stream, slides, either), found)
    return found


def _without_graph(
    facts: ModelFacts, recipe: Recipe, index: int, stream: int, *, batched: bool, slides: bool
) -> tuple[Bare, bool]:
    """The pass without a graph, and whether it depends on ``batched``."""
    t = Layer(facts, recipe, watched=True, batched=batched, slides=slides, graph=False)
    x = t.new(stream_width(facts), stream)
    x.storage.external = True
    (litgpt_layer if recipe.litgpt else family(facts))(t, x, index)
    return bare_of(t, x, _returned(t) if facts.layers > 1 else ()), t.asked_batched


def bare_of(t: Layer, x: Var, returned: tuple[Var, ...] = ()) -> Bare:
    """The pass that was written on a tape without a graph."""
    table = Table()
    points = bare(t, x, table)
    copies = reader(table.numbers(late_copies(t)))
    table.close()
    return Bare(table, x, points, returned, copies)


def _returned(t: Layer) -> tuple[Var, ...]:
    """The attention weights that a layer gives back beside its output."""
    return (t.scores,) if t.scores is not None and frame(t.facts).returns_weights else ()


def _size(var: Var, batch: int, seq: int) -> int:
    return rounded(var.width * var.item * var.per(batch, seq))


_FORMS: Memo[Form] = Memo(4096)


class _How(NamedTuple):
    """How a layer is run beyond its recipe: see :func:`profile` and :class:`.blocks.Layer`."""

    stream: int
    flows: bool
    checkpointed: bool
    selective: bool
    slides: bool
    early: bool = False


def _form(facts: ModelFacts, recipe: Recipe, index: int, kind: Kind, batched: bool, how: _How) -> Form:
    """The form of a layer; layers of a kind share one."""
    found = _FORMS.find(facts, (recipe, kind, batched, how))
    if found is None:
        found, asked = _recorded(facts, recipe, index, batched, how)
        for either in (batched,) if asked else (True, False):
            _FORMS.keep(facts, (recipe, kind, either, how), found)
    return found


def _recorded(facts: ModelFacts, recipe: Recipe, index: int, batched: bool, how: _How) -> tuple[Form, bool]:
    """The form, and whether it depends on ``batched``."""

    @cache
    def watch() -> Forward:
        kind = Layer if out.grad else Naming
        t, x, _ = _written(facts, recipe, index, batched, how, watched=True, kind=kind)
        table = Table()
        found = Forward(table, forward(t, x, table))
        table.close()
        return found

    checkpointed = how.checkpointed
    t, x, out = _written(facts, recipe, index, batched, how, watched=checkpointed)
    held, later = checkpointed and not how.early, None if checkpointed else watch
    return recorded(t, x, out, held=held, returned=_returned(t), watch=later), t.asked_batched


def _written(
    facts: ModelFacts, recipe: Recipe, index: int, batched: bool, how: _How, *, watched: bool,
    kind: type[Layer] = Layer,
) -> tuple[Layer, Var, Var]:  # fmt: skip
    """The tape of a layer, its input and its output."""
    modes = {"selective": how.selective, "batched": batched, "slides": how.slides, "early": how.early}
    t = kind(facts, recipe, watched=watched, **modes)
    x = t.new(stream_width(facts), how.stream, how.flows)
    x.storage.external = how.checkpointed
    if how.checkpointed and not how.early and recipe.autocast and x.grad:
        t.leaf = x  # reentrant checkpointing runs a layer again with its input detached
    return t, x, (litgpt_layer if recipe.litgpt else family(facts))(t, x, index)


def recorded(
    t: Layer,
    x: Var,
    out: Var,
    *,
    held: bool = False,
    returned: tuple[Var, ...] = (),
    watch: Callable[[], Forward] | None = None,
) -> Form:
    """The form of what was written on a tape from ``x`` to ``out``.

    ``held``, ``returned``: see :func:`.replay.backward`; ``watch``: see :class:`Form`.
    """
    table = Table()
    form = Form(
        table=table,
        input=x,
        output=out,
        marked=table.numbers(t.marked),
        arguments=table.numbers(t.arguments),
        pinned=table.numbers(t.pinned),
        lingering=table.numbers(t.lingering),
        passed=backward(t, out, table, held=held, returned=returned, early=t.early),
        again=forward(t, x, table) if t.watched else None,
        weights=t.weights,
        keeps_input=t.saves(x),
        returned=returned,
        unseen=t.unseen,
        watch=watch,
    )
    table.close()
    return form
