"""BLIP-2's Q-Former on a tape: learnt queries that attend to each other, and in some layers to an image's patches.

Source: transformers ``modeling_blip_2.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from lintfit.catalog.architectures import _qformer
from lintfit.frozen import frozen
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.profile import Form, counted, recorded
from lintfit.memory.activations.tape import Storage, Var, function
from lintfit.memory.activations.towers.encoder import last_norm
from lintfit.memory.activations.towers.perceiver import Latents


@frozen
class Pairs:
    """Pairs of a query and another, or of a query and a position of its picture (``patches``)."""

    count: int
    patches: bool = False

    def __call__(self, batch: int, seq: int) -> int:
        return batch * self.count * (seq if self.patches else self.count)


class Again:
    """Bytes that a checkpointed layer has at its worst point beyond its parameter gradients and those of what goes in
    and comes out. ``seen``: bytes of the gradient of a position of a picture."""

    def __init__(self, form: Form, reentrant: bool, seen: int) -> None:
        self.form = form
        self.reentrant = reentrant
        self.seen = seen

    def __call__(self, batch: int, seq: int) -> int:
        found = counted(self.form, batch, seq, checkpointed=True, reentrant=self.reentrant)
        return max(0, found.peak.total - found.weights - found.output - found.input - self.seen * batch * seq)


def connector(t: Layer, x: Var, checkpointed: Literal["", "once", "reentrant"] = "") -> Var:
    """From the encoder's last states to what the language model gets of its queries.

    ``checkpointed``: the layers of queries are, by themselves.
    """
    facts = t.facts
    stated = facts.config.get("qformer_config")
    numbers = {**_qformer.QUERIES, **(stated if isinstance(stated, Mapping) else {})}
    count, width = int(facts.config["num_query_tokens"]), int(numbers["hidden_size"])
    seen = t.cast(last_norm(t, x), t.recipe.weights)  # autocast has norms give fp32
    rate = float(numbers["hidden_dropout_prob"])
    queries = t.new(width, t.recipe.weights, t.recipe.trains("query_tokens"), per=Latents(count))
    queries = t.dropped(t.layernorm(queries, width), rate)
    for index in range(int(numbers["num_hidden_layers"])):
        crosses = index % int(numbers["cross_attention_frequency"]) == 0
        write = partial(_layer, count=count, numbers=numbers)
        if checkpointed and t.graph:
            queries = _checkpointed(t, queries, seen, write, crosses=crosses, reentrant=checkpointed == "reentrant")
        else:
            queries = write(t, queries, seen if crosses else None)
    return t.linear("language_projection", queries, width, facts.hidden, bias=True)


def _checkpointed(
    t: Layer, queries: Var, seen: Var, write: Callable[[Layer, Var, Var | None], Var], *, crosses: bool, reentrant: bool
) -> Var:
    """A layer as one node that keeps its inputs, the patches of every layer, and runs it again."""
    own = Layer(t.facts, t.recipe, watched=True, batched=t.batched, early=not reentrant)
    taken = [Var(x.width, x.item, x.per, Storage(x.storage.bytes, x.per), x.grad) for x in (queries, seen)]
    for x in taken:
        x.storage.external = True
    made = write(own, taken[0], taken[1] if crosses else None)
    form = recorded(own, taken[0], made, held=reentrant)
    out = t.like(queries, made.width, made.item, made.grad)
    gradient = seen.width * seen.item if crosses and seen.grad else 0
    given = (queries, seen) if crosses else (queries,)
    weights = (form.weights,) if form.weights else ()
    return t.op(out, given, (queries, seen), temp=((1, Again(form, reentrant, gradient)),), weights=weights)


def _layer(t: Layer, queries: Var, seen: Var | None, count: int, numbers: Mapping[str, Any]) -> Var:
    width, inner = queries.width, int(numbers["intermediate_size"])
    rate = float(numbers["hidden_dropout_prob"])
    t.held = (queries,)
    queries = _attention(t, queries, queries, Pairs(count), numbers)
    t.held = (queries,)
    if seen is not None:
        queries = _attention(t, queries, seen, Pairs(count, patches=True), numbers)
        t.held = (*t.held, queries)
    y = t.activation(t.linear("dense", queries, width, inner, bias=True), str(numbers["hidden_act"]))
    y = t.dropped(t.linear("dense", y, inner, width, bias=True), rate)
    out = t.layernorm(t.add(y, queries), width)
    t.held = ()
    return out


@function
def _attention(t: Layer, queries: Var, seen: Var, pairs: Pairs, numbers: Mapping[str, Any]) -> Var:
    """BERT's attention, with its output's product, dropout and norm."""
    width, count = queries.width, int(numbers["num_attention_heads"])
    q = t.linear("query", queries, width, width, bias=True)
    k, v = (t.linear(name, seen, seen.width, width, bias=True) for name in ("key", "value"))
    drops, heads = float(numbers["attention_probs_dropout_prob"]), Heads(count, count, width // count)
    out = attend(t, q, k, v, heads, dropout=drops, half_softmax=True, per=pairs)
    out = t.linear("dense", out, width, width, bias=True)
    return t.layernorm(t.add(t.dropped(out, float(numbers["hidden_dropout_prob"])), queries), width)
