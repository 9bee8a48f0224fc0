"""The head and the loss: what [tokens, vocabulary] costs, by the way the loss is computed and by transformers version.

The losses from whole logits are in :mod:`.losses`. Sources: accelerate's ``convert_outputs_to_fp32``, TRL
``kernels/chunked_logprob.py``, Liger ``ops/fused_linear_cross_entropy.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memory.activations import litgpt
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.final import final_norm
from lintfit.memory.activations.form import Alive, Backward, Changes, Live, Table, live, total
from lintfit.memory.activations.kinds import stream_width
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.replay import backward
from lintfit.memory.activations.tape import LOGITS, Extent, Scratch, Tape, Var, once
from lintfit.memory.litgpt import CHUNK, switches
from lintfit.memory.loss.losses import (
    FP32_LOGITS,
    UPCAST_IN_MODEL,
    Scored,
    causal_loss,
    own_dtype_loss,
    own_loss,
    response_loss,
    selective_loss,
    soft_cap,
    upcasts_itself,
)
from lintfit.memory.loss.preference import FROM_WHOLE
from lintfit.memory.memo import Memo

TRL_TOKENS, TRL_VOCABULARY = 4096, 32768
"""TRL's tile: ``TOKEN_CHUNK_SIZE`` and ``_CHUNKED_LOGPROB_CHUNK_SIZE``."""


@frozen
class Head:
    """The final norm, the head and the loss of one micro-batch, in bytes.

    ``saved``: what they keep at the end of the forward pass. ``forward``: what lives beside that at the worst
    point of the forward pass. ``loss``: the worst point of the loss's backward, before the first parameter
    gradient. ``head``: the worst point of the head's own backward, with ``weights`` being its gradients.
    ``pinned``: what of ``saved`` stays until the graph goes. ``lingering``: logits that a variable of the training
    loop holds while the layers run backward. ``bare``: all of the forward's worst point where there is no graph.
    """

    saved: Live
    forward: Live
    loss: Live
    head: Live
    weights: int
    bare: Live
    pinned: int = 0
    lingering: int = 0
    made: int | None = None
    """Bytes of the logits as the head makes them, where the loss runs behind the model's forward; None where in it."""


@frozen
class _Form:
    """The same for any micro-batch.

    ``logits``: of these points of the loss's forward the one with most logits counts. ``states``: the head's input,
    ``hidden`` the same where nobody saves it. ``capped``: logits that only the backward needs. ``loss`` is None where
    the loss is a node of the head's. ``made``: the logits where a loss behind the model's forward takes them.
    """

    table: Table
    logits: tuple[Changes, ...]
    states: Changes
    hidden: Changes
    capped: Changes
    loss: Backward | None
    head: Backward
    weights: int
    made: Changes | None = None

    def at(self, batch: int, seq: int, kept: float) -> Head:
        """The head of ``batch`` sequences of ``seq`` scored tokens."""
        sizes = self.table.sizes(batch, seq)
        states = saved = at_the_loss = live(self.head.saved, sizes)
        if self.loss is not None:
            log = live(self.loss.saved, sizes)
            saved, at_the_loss = states.plus(log), states.plus(self.loss.peak(sizes, log))
        logits = max([total(point, sizes) for point in self.logits])
        return Head(
            saved,
            Live(0, logits, 0, total(self.hidden, sizes), 0),
            at_the_loss,
            self.head.peak(sizes, states, kept=kept),
            self.weights,
            Live(total(self.states, sizes), saved.logits + logits - total(self.capped, sizes)),
            made=total(self.made, sizes) if self.made is not None else None,
        )


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
) -> Head:
    """The head of a causal language model on ``batch`` sequences of ``seq`` tokens.

    ``stream``: bytes of a residual element. ``kept``: see :meth:`.form.Backward.peak`. ``scored``: tokens of a sequence
    that get logits, where not all do: their states are copied out behind the final norm.
    """
    batched = batch > 1 or not recipe.wrapped_loss
    key = recipe, loss_path, stream, scored, batched
    form = _FORMS.get(facts, key, lambda: _recorded(Layer(facts, recipe, batched=batched), loss_path, stream, scored))
    return form.at(batch, seq, kept)


def _recorded(t: Layer, loss_path: str, stream: int, scored: int | None) -> _Form | _Chunked:
    facts, recipe = t.facts, t.recipe
    h, vocab = facts.hidden, -(-facts.vocab // recipe.tensor_parallel)
    if recipe.litgpt:
        return _litgpt(t, stream)
    x = t.new(stream_width(facts), stream)
    normed = y = final_norm(t, x)
    scales = facts.model_type in SCALED_STATES
    if scales:
        y = t.map(y)
    if facts.model_type in FP32_LOGITS:
        y = t.cast(y, recipe.weights)
    h = y.width
    if scored is not None and not loss_path.startswith("ppo"):
        y = t.op(t.new(h, y.item, y.grad, per=Scored(scored)), (y,))
    if loss_path == "chunked":
        return _fused(t, y, _trl(t, y, vocab))
    if loss_path == "liger":
        return _fused(t, y, _liger(t, y, vocab))
    logits = t.linear("lm_head", y, h, 1 if loss_path == "score" else vocab)
    logits.storage.kind = LOGITS
    whole = -(-facts.vocab // recipe.logit_parts)
    if loss_path != "score" and whole > vocab:
        logits = t.op(t.like(logits, whole, logits.item, logits.grad, LOGITS), (logits,))
    after = Tape()
    fused = "cross_entropy" in recipe.kernels
    capped = None
    if loss_path in ("ppo", "ppo-whole"):
        out, alive = response_loss(after, logits, recipe.autocast, scored, whole=loss_path == "ppo-whole")
    elif loss_path in FROM_WHOLE:
        kernel, odds = loss_path.endswith("kernel"), loss_path.startswith("odds")
        out, alive = selective_loss(after, logits, recipe.autocast, kernel=kernel, odds=odds)
    elif own_loss(facts, recipe):
        given = after.cast(logits, 4) if recipe.wrapped_loss and recipe.transformers < UPCAST_IN_MODEL else logits
        out, alive = own_dtype_loss(after, given, fused, recipe.autocast, shifts=t.batched)
    else:
        capped = soft_cap(after, logits) if _softcapped(t) else None
        given = after.map(capped) if capped else logits
        out, alive = causal_loss(after, given, recipe.transformers, fused, upcast=upcasts_itself(facts, recipe))
    table = Table()
    loss, own = backward(after, out, table), backward(t, logits, table)
    points = [table.numbers([var.storage for var in alive])]
    if (
        recipe.autocast
        and recipe.upcast_outputs
        and not loss_path.startswith("ppo")
        and (not upcasts_itself(facts, recipe) or own_loss(facts, recipe))
    ):
        # Accelerate's ``convert_outputs_to_fp32`` copies logits that the model has not upcast itself.
        made = (table.number(LOGITS, logits.width * 4, logits.per),) if loss_path not in FROM_WHOLE else ()
        points.append((table.storage(logits.storage), *made))
    named = (normed, y) if scales else (y,)
    hidden = tuple([table.storage(var.storage) for var in named if not t.saves(var)])
    return _Form(
        table=table,
        logits=tuple(points),
        states=(table.storage(y.storage),),
        hidden=hidden,
        capped=table.numbers([capped.storage]) if capped is not None else (),
        made=(table.storage(logits.storage),) if loss_path in FROM_WHOLE or loss_path == "score" else None,
        loss=loss,
        head=own,
        weights=t.weights,
    )


@frozen
class _Chunked:
    """LitGPT's head in chunks of 128 tokens a sequence, which all stay (``GPT.forward``, ``chunked_cross_entropy``).

    Fabric hands every chunk over in fp32 (``convert_output``) while the half-precision ones and, in the loop's
    variable, the last iteration's are still there: 4 + 2 + 4 bytes an entry. The engine runs the losses of all chunks
    backward before the first head, so that the gradients of all logits stand beside the logits. ``dequantized``:
    bytes of the head's weight as it is computed with, where it is quantised.
    """

    table: Table
    states: Alive
    held: Changes
    stream: Var
    logits: Var
    dequantized: int
    weights: int

    def at(self, batch: int, seq: int, kept: float) -> Head:
        """The head of ``batch`` sequences of ``seq`` tokens."""
        sizes = self.table.sizes(batch, seq)
        saved = live(self.states, sizes)
        entries = batch * seq * self.logits.width
        made = 4 * entries
        half = entries * self.logits.item if self.logits.item == 2 else 0
        stays = int(self.weights * kept)
        gradient = batch * seq * self.stream.width * self.stream.item
        return Head(
            saved=saved.plus(Live(logits=made)),
            forward=Live(0, max(made + half, half + self.dequantized)),
            loss=saved.plus(Live(logits=2 * made + made // -(-seq // CHUNK))),
            head=saved.plus(
                Live(
                    logits=made + half,
                    temporaries=self.dequantized + gradient + self.weights - stays,
                    gradients=stays,
                )
            ),
            weights=self.weights,
            bare=Live(gradient, made + max(made + half, half + self.dequantized)),
            pinned=total(self.held, sizes),
            lingering=made,
        )


SCALED_STATES = frozenset({"minicpm", "minicpm3"})
"""Model types that scale the head's input; the model's output holds what was not scaled."""

_FORMS: Memo[_Form | _Chunked] = Memo(4096)


def _litgpt(t: Layer, stream: int) -> _Chunked:
    facts, recipe = t.facts, t.recipe
    on = switches(recipe.lora.targets if recipe.lora is not None else ()).head
    x = t.new(facts.hidden, stream)
    y = litgpt.norm(t, x)
    logits = litgpt.linear(t, y, facts.hidden, facts.vocab, recipe.lora.rank if recipe.lora is not None and on else 0)
    each = 4 if recipe.copies_dequantized else 2
    table = Table()
    return _Chunked(
        states=table.alive(table.numbers(t.saved())),
        held=table.numbers(t.pinned),
        table=table,
        stream=x,
        logits=logits,
        dequantized=facts.hidden * facts.vocab * each if recipe.quantized else 0,
        weights=t.weights,
    )


def _softcapped(t: Layer) -> bool:
    return t.facts.model_type in SOFTCAPPED and t.facts.config.get("final_logit_softcapping") is not None


SOFTCAPPED = frozenset({"gemma2", "gemma3n_text", "gemma4_text", "nanochat", "vaultgemma"})
"""Model types whose logits go through a tanh where the config has a bound for them."""


class _Fused(NamedTuple):
    """A loss that never holds all logits: what its forward and its backward allocate, and the head's gradient."""

    forward: tuple[Scratch, ...]
    backward: tuple[Scratch, ...]
    weight: int


def _fused(t: Layer, y: Var, loss: _Fused) -> _Form:
    """Such a loss as one node behind the final norm."""
    out = t.constant(1, 4, True)
    t.op(out, (y,), (y,), temp=loss.backward, weights=(loss.weight,) if loss.weight else ())
    table = Table()
    own = backward(t, out, table)
    return _Form(
        table=table,
        logits=(tuple([table.number(LOGITS, size, per, False) for size, per in loss.forward]),),
        states=(table.storage(y.storage),),
        hidden=(),
        capped=(),
        loss=None,
        head=own,
        weights=t.weights,
    )


@frozen
class _Tile:
    """The tokens of TRL's tile."""

    most: int
    per: Extent

    def __call__(self, batch: int, seq: int) -> int:
        return min(self.per(batch, seq), self.most)


def _trl(t: Layer, y: Var, vocab: int) -> _Fused:
    """TRL's chunked loss: one tile of logits, and in the backward fp32 gradients of the states and the head.

    fp32 states and weights get these gradients as they are, others a copy. Under autocast fp32 states and weights are
    cast tile by tile; both passes name the states' tile and the backward the weights', so that the next one of these is
    made before the last one goes.
    """
    recipe, h = t.recipe, t.facts.hidden
    trains, wide = recipe.trains("lm_head"), recipe.weights == 4
    item = 2 if recipe.autocast else y.item
    tile: list[Scratch] = [(TRL_VOCABULARY * item, _Tile(TRL_TOKENS, y.per))]
    chunk = min(vocab, TRL_VOCABULARY) * h * 2 if recipe.autocast and wide else 0
    if recipe.autocast and y.item == 4:
        tile.append((h * 2, _Tile(2 * TRL_TOKENS, y.per)))
    back = [*tile, (chunk * (2 if vocab > TRL_VOCABULARY else 1), once)]
    if y.item != 4:
        back.append(y.scratch(4))
    if trains and not wide:
        back.append((4 * h * vocab, once))
    return _Fused((*tile, (chunk, once)), tuple(back), h * vocab * recipe.weights if trains else 0)


@frozen
class _Chunk:
    """The tokens of Liger's chunk: the power of two from a ``parts``-th of all tokens on."""

    parts: int
    per: Extent

    def __call__(self, batch: int, seq: int) -> int:
        tokens = self.per(batch, seq)
        return min(1 << max(0, (-(-tokens // self.parts) - 1).bit_length()), tokens)


def _liger(t: Layer, y: Var, vocab: int) -> _Fused:
    """Liger's fused linear cross-entropy: gradients are made in the forward, chunk by chunk, and only scaled later.

    The chunk is ``next_power_of_2(ceil(tokens / ceil(vocab / hidden)))`` tokens; its logits are held in the
    head's dtype and once more in fp32 while they become their own gradient.
    """
    h = t.facts.hidden
    item = 2 if t.recipe.autocast else y.item
    weight = h * vocab * t.recipe.weights if t.recipe.trains("lm_head") else 0
    chunk = vocab * (item + 4 if item == 2 else 4), _Chunk(-(-vocab // h), y.per)
    return _Fused((chunk, y.scratch(y.item), (2 * weight, once)), ((weight, once),), weight)
