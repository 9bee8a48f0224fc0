"""The head and the loss: what [tokens, vocabulary] costs, by the way the loss is computed and by transformers version.

The losses from whole logits are in :mod:`.losses`, those that never hold all logits in :mod:`.tiled`. Source:
accelerate's ``convert_outputs_to_fp32``.
"""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memo import Memo
from lintfit.memory.activations.blocks import Layer, Naming
from lintfit.memory.activations.final import final_norm
from lintfit.memory.activations.form import Changes, Table
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.kinds import stream_width
from lintfit.memory.activations.profile import Forward
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.replay import backward, forward
from lintfit.memory.activations.tape import LOGITS, Tape, Var
from lintfit.memory.loss.head import Form, Head
from lintfit.memory.loss.litgpt import Chunked, chunked
from lintfit.memory.loss.losses import (
    UPCAST_IN_MODEL,
    Scored,
    causal_loss,
    gathered_loss,
    masked_loss,
    own_dtype_loss,
    own_loss,
    response_loss,
    selective_loss,
    soft_cap,
    tempered_loss,
    upcasts_itself,
)
from lintfit.memory.loss.preference import FROM_WHOLE
from lintfit.memory.loss.tiled import TILED, tiled

_FORMS: Memo[Form | Chunked] = Memo(4096)


def head(
    facts: ModelFacts,
    recipe: Recipe,
    batch: int,
    seq: int,
    loss_path: str,
    *,
    stream: int,
    kept: float = 1.0,
    scored: int | None = None,
    flows: bool = True,
) -> Head:
    """The head of a causal language model on ``batch`` sequences of ``seq`` tokens.

    ``stream``: bytes of a residual element. ``kept``: see :meth:`.form.Backward.peak`. ``scored``: tokens of a sequence
    that get logits, where not all do: their states are copied out behind the final norm. ``flows``: whether what the
    last layer gives needs a gradient.
    """
    batched = batch > 1 or not recipe.wrapped_loss

    def written() -> Form | Chunked:
        t = Layer(facts, recipe, batched=batched)
        return _recorded(t, t.new(stream_width(facts), stream, flows), loss_path, scored)

    return _FORMS.get(facts, (recipe, loss_path, stream, scored, batched, flows), written).at(batch, seq, kept)


_NORMS: Memo[Forward] = Memo(512)


def norm_forward(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, *, stream: int) -> int:
    """Bytes at the worst point of the final norm's forward, the last layer's output with it."""

    def written() -> Forward:
        t = Naming(facts, recipe, watched=True)
        x = t.new(stream_width(facts), stream)
        final_norm(t, x)
        table = Table()
        return Forward(table, forward(t, x, table))

    return _NORMS.get(facts, (recipe, stream), written).peak(batch, seq)


def _recorded(t: Layer, x: Var, loss_path: str, scored: int | None) -> Form | Chunked:
    """The final norm, the head and the loss on a tape, from the last layer's output ``x``."""
    if t.recipe.litgpt:
        return chunked(t, x)
    normed = y = final_norm(t, x)
    how = frame(t.facts)
    scales = how.scaled_states or (how.tied_scale and t.facts.config.get("tie_word_embeddings") is not False)
    if scales:
        y = t.map(y)
    if how.fp32_logits:
        y = t.cast(y, t.recipe.weights)
    if how.transforms is not None and loss_path != "score":
        from lintfit.memory.activations.bert import transformed

        y = transformed(t, y, how.transforms)
    if scored is not None and not loss_path.startswith("ppo"):
        y = t.op(t.new(y.width, y.item, y.grad, per=Scored(scored)), (y,))
    if loss_path in TILED:
        return tiled(t, y, -(-t.facts.vocab // t.recipe.tensor_parallel), loss_path)
    named = (normed, y) if scales else (normed,) if how.transforms else (y,)
    return _whole(t, y, named, loss_path, scored)


def _whole(t: Layer, y: Var, named: tuple[Var, ...], loss_path: str, scored: int | None) -> Form:
    """The head on the states ``y``, and a loss from all logits; ``named``: states that the model has names for.

    A class around the language model has a name for the embeddings that it gave it, not for its states.
    """
    # What a head makes of the states before its product goes with the head's own forward.
    behind = named[0] if frame(t.facts).transforms else y
    logits = _logits(t, y, loss_path)
    after = Tape()
    after.keeps_scores = t.recipe.keeps_scores
    out, alive, capped = _loss(t, after, logits, loss_path, scored)
    table = Table()
    loss, own = backward(after, out, table), backward(t, logits, table)
    around = (table.number(LOGITS, t.facts.hidden * t.recipe.opening, y.per),) if t.recipe.loss_around else ()
    return Form(
        table=table,
        logits=((*table.numbers([var.storage for var in alive]), *around), *_upcast(t, logits, loss_path, table)),
        states=(table.storage(behind.storage),),
        hidden=() if around else tuple([table.storage(var.storage) for var in named if not t.saves(var)]),
        capped=table.numbers([capped.storage]) if capped is not None else (),
        made=(table.storage(logits.storage),) if loss_path in FROM_WHOLE or loss_path == "score" else None,
        loss=loss,
        head=own,
        weights=t.weights,
    )


def _logits(t: Layer, y: Var, loss_path: str) -> Var:
    """The head's result: one score a sequence, or the logits, gathered where ranks have a part each."""
    vocab = -(-t.facts.vocab // t.recipe.tensor_parallel)
    logits = t.linear("lm_head", y, y.width, 1 if loss_path == "score" else vocab)
    logits.storage.kind = LOGITS
    if frame(t.facts).biased_logits and loss_path != "score":
        logits = t.map(logits, item=max(logits.item, t.recipe.weights))
    whole = -(-t.facts.vocab // t.recipe.logit_parts)
    if loss_path == "score" or whole <= vocab:
        return logits
    return t.op(t.like(logits, whole, logits.item, logits.grad, LOGITS), (logits,))


def _loss(t: Layer, after: Tape, logits: Var, loss_path: str, scored: int | None) -> tuple[Var, list[Var], Var | None]:
    """The loss on a tape of its own, ``after`` the head's: its result, the unsaved logits alive at its worst forward
    point, and logits that only the backward needs."""
    facts, recipe = t.facts, t.recipe
    fused = "cross_entropy" in recipe.kernels
    if loss_path in ("ppo", "ppo-whole"):
        return *response_loss(after, logits, recipe.autocast, scored, whole=loss_path == "ppo-whole"), None
    if loss_path == "tempered":
        return *tempered_loss(after, logits), None
    if loss_path in FROM_WHOLE:
        kernel, odds = loss_path.endswith("kernel"), loss_path.startswith("odds")
        if loss_path.endswith("gathered"):
            upcast = upcasts_itself(facts, recipe) and not own_loss(facts, recipe)
            return *gathered_loss(after, logits, recipe.autocast or upcast, odds=odds), None
        return *selective_loss(after, logits, recipe.autocast, kernel=kernel, odds=odds), None
    if frame(facts).plain_loss:
        return *masked_loss(after, logits, recipe.autocast), None
    if own_loss(facts, recipe):
        given = after.cast(logits, 4) if recipe.wrapped_loss and recipe.transformers < UPCAST_IN_MODEL else logits
        return *own_dtype_loss(after, given, fused, recipe.autocast, shifts=t.batched), None
    if frame(facts).masks_logits:  # in place, and their gradient on a copy
        logits = after.copied_back(logits)
    capped = soft_cap(after, logits) if _softcapped(t) else None
    given = after.map(capped) if capped else logits
    return *causal_loss(after, given, recipe.transformers, fused, upcast=upcasts_itself(facts, recipe)), capped


def _upcast(t: Layer, logits: Var, loss_path: str, table: Table) -> tuple[Changes, ...]:
    """Logits while Accelerate's ``convert_outputs_to_fp32`` copies those that the model has not upcast itself; twice
    where the language model's whole output is given back beside them."""
    facts, recipe = t.facts, t.recipe
    if not recipe.autocast or not recipe.upcast_outputs or loss_path.startswith("ppo") or logits.item == 4:
        return ()
    if upcasts_itself(facts, recipe) and not own_loss(facts, recipe):
        return ()
    copy = (table.number(LOGITS, logits.width * 4, logits.per),) if loss_path not in FROM_WHOLE else ()
    return ((table.storage(logits.storage), *copy, *(copy if recipe.loss_around else ())),)


def _softcapped(t: Layer) -> bool:
    return frame(t.facts).softcapped and t.facts.config.get("final_logit_softcapping") is not None
