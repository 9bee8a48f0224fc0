"""What is alive at a moment: model states with what a pass has beside them, and a layer's forward without a graph."""

from __future__ import annotations

from lintfit.catalog.language import language
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.kinds import Kind, stretches
from lintfit.memory.activations.profile import without_graph
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.loss.preference import sequences
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.micro_batch.stream import stream_bytes
from lintfit.memory.result import Components
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import local


def together(states: Components, alive: Live, *others: Live) -> Components:
    """States and what is alive beside them, by the contract's component names; weight copies are temporaries."""
    for other in others:
        alive = alive.plus(other)
    result = dict(states)
    if alive.activations:
        result["activations"] = result.get("activations", 0) + alive.activations
    if alive.logits:
        result["logits"] = result.get("logits", 0) + alive.logits
    if alive.casts or alive.temporaries:
        result["temporaries"] = result.get("temporaries", 0) + alive.casts + alive.temporaries
    if alive.gradients:
        result["gradients"] = result.get("gradients", 0) + alive.gradients
    return result


def layer_without_graph(spec: Spec, step: Step, recipe: Recipe) -> Live:
    """The worst layer of a forward without a graph: masks and tables, the embeddings' output, which the model's loop
    holds throughout, and the layer's own tensors.

    Autocast's copies of trained weights are the caller's to count, all of them; ``casts`` has those that are not made
    yet as bytes below zero.
    """
    alive = without_gradients(spec, recipe)
    return Live(alive.activations + _around_a_layer(step), casts=max(alive.casts - step.ending_copies, -step.copies))


def copies_by(step: Step, layer: Live) -> int:
    """Bytes of autocast's copies of weights by a layer whose ``casts`` has those that are not made yet as bytes below
    zero; none where there are no copies at all (FSDP gathers in half precision)."""
    return max(0, step.cast + layer.casts)


def most_without_graph(step: Step) -> int:
    """Bytes that :func:`layer_without_graph` does not exceed: all that a layer's backward and its input take, and the
    attention weights that the layer before gave back.

    That pass frees what a graph would keep; the backward begins with all of it. A layer with few adapters keeps little,
    and its forward pass may have more.
    """
    layers = [stretch.layer for stretch in step.stretches]
    worst = max([max(layer.peak.total + layer.input + layer.returned, layer.ceiling) for layer in layers], default=0)
    return _around_a_layer(step) + worst


def _around_a_layer(step: Step) -> int:
    text = step.count - step.before
    embeds = step.stretches[step.before].layer.input if text > 1 else 0
    listed = step.listed_before(step.count - 1, bare=True)
    return step.around + (step.summands or embeds) + step.named_result(step.count - 1) + listed


def without_gradients(spec: Spec, recipe: Recipe) -> Live:
    """What is alive at the worst point of any layer's forward pass without gradients.

    ``casts``: less the copies of weights that autocast makes later, in this layer and those behind it.
    """
    facts = local(language(spec.facts), spec.tensor_parallel)
    batch, seq = sequences(spec), spec.local_seq
    stream = stream_bytes(facts, recipe)
    runs = [part for part in stretches(facts) if recipe.beside is not None or not part[0].crosses]
    forms = {kind: without_graph(facts, recipe, batch, seq, start, stream=stream) for kind, start, _ in reversed(runs)}
    if not recipe.autocast:
        return max([form.peak(batch, seq) for form in forms.values()], key=_total)
    later, found = 0, list[Live]()
    sizes: dict[Kind, int] = {}
    for kind, _, length in reversed(runs):
        form = forms.pop(kind, None)
        if form is not None:  # the last of its kind, beside which most copies are made
            alive, each = form.peak(batch, seq), form.cached(batch, seq)
            found.append(Live(alive.activations, casts=alive.casts - later))
            sizes[kind] = each
        later += length * sizes[kind]
    return max(found, key=_total)


def _total(live: Live) -> int:
    return live.total
