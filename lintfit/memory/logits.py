"""The head and the loss: what [tokens, vocabulary] costs, by the way the loss is computed and by transformers version.

Sources: transformers ``loss/loss_utils.py:ForCausalLMLoss`` (5.x pads the labels; up to 4.48 the fp32 logits are
sliced and copied), ``modeling_llama.py`` of 4.45 (``logits = logits.float()`` in the model), accelerate's
``convert_outputs_to_fp32``, TRL ``kernels/chunked_logprob.py``, Liger ``ops/fused_linear_cross_entropy.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import litgpt
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.gemma import SANDWICH
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import LOGITS, Live, Tape, Var, backward, rounded
from lintfit.memory.litgpt import CHUNK, switches

PADDED_LABELS = (4, 49)
"""The first transformers version whose loss pads the labels instead of copying the shifted logits."""

UPCAST_IN_MODEL = (4, 46)
"""Below this version the models themselves upcast their logits, and the half-precision ones are dropped."""

MODEL_DTYPE_LOSS = frozenset({"gpt2", "gpt_bigcode", "gpt_neox", "opt", "bloom", "falcon", "mpt", "stablelm"})
"""Models whose own loss, up to 4.48, takes the logits in the dtype that they have (autocast makes it fp32)."""

REMOTE_LOSS = frozenset({"qwen", "baichuan"})
"""Models whose own code does so whatever the version (``modeling_qwen.py``, ``modeling_baichuan.py``)."""

TRL_TOKENS, TRL_VOCABULARY = 4096, 32768
"""TRL's tile: ``TOKEN_CHUNK_SIZE`` and ``_CHUNKED_LOGPROB_CHUNK_SIZE``."""


class Head(NamedTuple):
    """The final norm, the head and the loss of one micro-batch, in bytes.

    ``saved``: what they keep at the end of the forward pass. ``forward``: what lives beside that at the worst
    point of the forward pass. ``loss``: the worst point of the loss's backward, before the first parameter
    gradient. ``head``: the worst point of the head's own backward, with ``weights`` being its gradients.
    ``pinned``: what of ``saved`` stays until the graph goes. ``lingering``: logits that a variable of the training
    loop holds while the layers run backward.
    """

    saved: Live
    forward: Live
    loss: Live
    head: Live
    weights: int
    pinned: int = 0
    lingering: int = 0


def head(t: Layer, loss_path: str, *, stream: int, kept: float) -> Head:
    """The head of a causal language model on ``t.tokens`` tokens; ``stream``: bytes of a residual element."""
    facts, recipe = t.facts, t.recipe
    h, vocab = facts.hidden, -(-facts.vocab // recipe.tensor_parallel)
    if recipe.litgpt:
        return _litgpt(t, stream, kept)
    x = t.new(t.tokens * h, stream)
    x.storage.external = False
    if facts.norm == "layernorm":
        y = t.layernorm(x)
    elif facts.model_type in SANDWICH or facts.model_type == "gemma":
        y = t.gemma_norm(x)
    else:
        y = t.rmsnorm(x)
    if loss_path == "chunked":
        return _fused(t, y, vocab, *_trl(t, y, vocab), kept)
    if loss_path == "liger":
        return _fused(t, y, vocab, *_liger(t, y, vocab), kept)
    logits = t.linear("lm_head", y, h, vocab)
    logits.storage.kind = LOGITS
    after = Tape()
    fused = "cross_entropy" in recipe.kernels
    if own_loss(facts, recipe):
        out, transient = _plain_loss(after, logits, fused, recipe.autocast)
    else:
        out, transient = _loss(after, logits, recipe.transformers, _softcapped(t), fused)
    saved_head, saved_loss = t.saved(), after.saved()
    hidden = 0 if any(y.storage in node.saved for node in t.nodes) else y.storage.size
    saved = Live(*(a + b for a, b in zip(saved_head, saved_loss, strict=True)))
    worst = backward(after, out)
    loss = Live(*(a + b for a, b in zip(saved_head, worst, strict=True)))
    back = backward(t, logits, kept=kept)
    if recipe.autocast and (recipe.transformers >= UPCAST_IN_MODEL or own_loss(facts, recipe)):
        # Accelerate's ``convert_outputs_to_fp32`` copies logits that the model has not upcast itself.
        transient = max(transient, logits.storage.size + rounded(logits.numel * 4))
    return Head(saved, Live(0, transient, 0, hidden, 0), loss, back, t.weights())


def _litgpt(t: Layer, stream: int, kept: float) -> Head:
    """LitGPT's head in chunks of 128 tokens a sequence, which all stay (``GPT.forward``, ``chunked_cross_entropy``).

    Fabric hands every chunk over in fp32 (``convert_output``) while the half-precision ones and, in the loop's
    variable, the last iteration's are still there: 4 + 2 + 4 bytes an entry. The engine runs the losses of all chunks
    backward before the first head, so that the gradients of all logits stand beside the logits.
    """
    facts, recipe = t.facts, t.recipe
    on = switches(recipe.lora.targets if recipe.lora is not None else ()).head
    x = t.new(t.tokens * facts.hidden, stream)
    y = litgpt.norm(t, x)
    logits = litgpt.linear(t, y, facts.hidden, facts.vocab, recipe.lora.rank if recipe.lora is not None and on else 0)
    saved = t.saved()
    entries = t.tokens * facts.vocab
    chunks = -(-t.seq // CHUNK)
    made = 4 * entries
    half = entries * logits.item if logits.item == 2 else 0
    weight = facts.hidden * facts.vocab * (4 if recipe.copies_dequantized else 2) if recipe.quantized else 0
    forward = max(2 * made + half, made + half + weight)
    back = t.weights()
    return Head(
        saved=Live(saved.activations, saved.logits + made, saved.casts),
        forward=Live(0, forward - made),
        loss=Live(saved.activations, saved.logits + 2 * made + made // chunks, saved.casts),
        head=Live(
            saved.activations,
            saved.logits + made + half,
            saved.casts,
            weight + t.tokens * facts.hidden * stream + back - int(back * kept),
            int(back * kept),
        ),
        weights=back,
        pinned=t.held_by_graph(),
        lingering=made,
    )


def own_loss(facts: ModelFacts, recipe: Recipe) -> bool:
    """Whether the model computes its loss in the dtype of its logits, apart from autocast."""
    if facts.model_type in REMOTE_LOSS:
        return True
    return recipe.transformers < PADDED_LABELS and facts.model_type in MODEL_DTYPE_LOSS


def _softcapped(t: Layer) -> bool:
    return t.facts.model_type == "gemma2" and t.facts.config.get("final_logit_softcapping", 30.0) is not None


def _loss(t: Tape, logits: Var, version: tuple[int, int], softcap: bool, fused: bool) -> tuple[Var, int]:
    """The loss on a tape of its own: its result, and the bytes of unsaved logits alive at its worst forward point."""
    if softcap:
        scaled = t.map(logits)
        bounded = t.new(logits.numel, logits.item, True, LOGITS)
        logits = t.map(t.op(bounded, (scaled,), (bounded,)))
    full = t.cast(logits, 4)
    alive = [logits] if full is logits else [logits, full]
    if version < UPCAST_IN_MODEL:
        alive = [full]
    if version < PADDED_LABELS:
        full = t.map(full)
        alive.append(full)
    if fused:
        return _overwriting(t, full), sum(var.storage.size for var in alive[:-1])
    log = t.new(logits.numel, 4, True, LOGITS)
    t.op(log, (full,), (log,))
    out = t.op(t.new(1, 4), (log,))
    return out, sum(var.storage.size for var in alive)


def _overwriting(t: Tape, logits: Var) -> Var:
    """The kernel that saves the logits and, in the backward, overwrites them with their gradient.

    Unsloth's ``Fast_CrossEntropyLoss``, also in fms-acceleration's FOAK; Liger's does the same in its forward.
    """
    return t.op(t.new(1, 4), (logits,), (logits,), temp=-logits.storage.size)


def _plain_loss(t: Tape, logits: Var, fused: bool, autocast: bool) -> tuple[Var, int]:
    """The older models' loss: a copy of the shifted logits and their log-softmax in the logits' dtype.

    Autocast runs torch's cross entropy in fp32, on one more copy; a kernel takes what it is given.
    """
    shifted = t.map(logits)
    if fused:
        return _overwriting(t, shifted), logits.storage.size
    full = t.cast(shifted, 4) if autocast else shifted
    log = t.new(logits.numel, full.item, True, LOGITS)
    t.op(log, (full,), (log,))
    copies = shifted.storage.size + (full.storage.size if full is not shifted else 0)
    return t.op(t.new(1, 4), (log,)), logits.storage.size + copies


def _fused(t: Layer, y: Var, vocab: int, forward: int, backward_temp: int, weight: int, kept: float) -> Head:
    """A loss that never holds all logits, as one node behind the final norm."""
    out = t.new(1, 4)
    t.op(out, (y,), (y,), temp=backward_temp, weights=(weight,) if weight else ())
    saved = t.saved()
    peak = backward(t, out, kept=kept)
    return Head(saved, Live(0, forward, 0, 0, 0), saved, peak, t.weights())


def _trl(t: Layer, y: Var, vocab: int) -> tuple[int, int, int]:
    """TRL's chunked loss: one tile of logits, and in the backward fp32 gradients of the states and the head."""
    recipe = t.recipe
    trains = recipe.trains("lm_head")
    item = 2 if recipe.autocast else y.item
    tile = min(t.tokens, TRL_TOKENS) * min(vocab, TRL_VOCABULARY) * item
    full_gradients = y.numel * 4 + (t.facts.hidden * vocab * 4 if trains else 0)
    weight = t.facts.hidden * vocab * recipe.weights if trains else 0
    return tile, tile + full_gradients, weight


def _liger(t: Layer, y: Var, vocab: int) -> tuple[int, int, int]:
    """Liger's fused linear cross-entropy: gradients are made in the forward, chunk by chunk, and only scaled later.

    The chunk is ``next_power_of_2(ceil(tokens / ceil(vocab / hidden)))`` tokens; its logits are held in the
    head's dtype and once more in fp32 while they become their own gradient.
    """
    h = t.facts.hidden
    trains = t.recipe.trains("lm_head")
    item = 2 if t.recipe.autocast else y.item
    parts = -(-vocab // h)
    chunk = 1 << max(0, (-(-t.tokens // parts) - 1).bit_length())
    chunk = min(chunk, t.tokens)
    weight = h * vocab * t.recipe.weights if trains else 0
    forward = chunk * vocab * (item + 4 if item == 2 else 4) + y.numel * y.item + 2 * weight
    return forward, weight, weight
