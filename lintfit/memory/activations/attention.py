"""What the attention kernels save and what their backward passes need."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen, replace
from lintfit.memory.activations.attention_scratch import efficient_scratch, flash_scratch
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.recipe import ALIGNED, Beside, Recipe
from lintfit.memory.activations.tape import Extent, Scratch, Var, pairs, saved_factors, square

GROUPED_SDPA = (4, 54)
"""The first transformers version that leaves grouped heads to SDPA, whatever the GPU; before, k and v are repeated for
all heads. On GPUs without FlashAttention that leaves the reference path (huggingface/transformers#48633, #45776)."""

FLASH_DIM = 256
"""Elements of the widest head that FlashAttention takes; for wider ones transformers repeats grouped keys and values
(``sdpa_attention.py:use_gqa_in_sdpa``)."""

REPEATED_FLASH = {
    **dict.fromkeys(("mistral", "mixtral", "phi3", "qwen2", "starcoder2"), (4, 48)),
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), (4, 53)),
    "qwen2_moe": (4, 54),
}
"""The first transformers version in which a model type's FlashAttention gets keys and values as they are; before,
``MistralFlashAttention2`` and its copies called ``repeat_kv`` although the kernel knows groups. Llama's never did."""


def _padded(batch: int, seq: int) -> int:
    """Tokens, each sequence's rounded up to the memory-efficient kernel's 32."""
    return batch * (-(-seq // 32) * 32)


@frozen
class Heads:
    """Query heads, key and value heads, elements of one head, and the layer's window (None: full attention)."""

    queries: int
    keys: int
    dim: int
    window: int | None = None
    value_dim: int | None = None


def attend(
    t: Layer,
    q: Var,
    k: Var,
    v: Var,
    heads: Heads,
    *,
    softcap: bool = False,
    dropout: float | None = None,
    head_major: bool = False,
    half_softmax: bool = False,
    recast: bool = False,
    keeps_product: bool = False,
    masked: int = 0,
    scaled_queries: bool = False,
    broadcasts: bool = False,
    mask: Var | None = None,
    per: Extent = pairs,
) -> Var:
    """Attention over one layer's queries, keys and values; the result is laid out for the output projection.

    ``head_major``: the queries lie [batch, heads, seq, dim] in memory (after a ``torch.cat``), so that the
    kernel's output, which takes their layout, has to be copied before the projection.
    ``half_softmax``: the eager softmax runs in the layer's dtype instead of fp32; ``recast``: what it gives is cast
    to the values' (GPT-2), as autocast makes it fp32. ``keeps_product``: Falcon's eager scores (:func:`eager`).
    ``scaled_queries``: these are scaled in the place of the eager scores. ``masked``: bytes of an element of the
    additive mask that SDPA is given, and that somebody else counts; autocast makes one of the queries' dtype of it
    in every layer. ``mask``: one of the layer's own, which it keeps. ``broadcasts``: a single head of keys and values
    is handed on for all queries, of which SDPA is not told (``enable_gqa``). ``per``: how many scores a head has, where
    these are made. ``dropout``: the share of weights that is dropped in training; None: the config's.
    """
    if t.recipe.copies_states:
        # Values are put together with an empty tensor of the keys' dtype, too.
        k, v = t.add(k), t.add(t.cast(v, k.item))
    if t.recipe.returns_states and not t.graph and "kv_lora_rank" not in t.facts.config:
        v = t.cast(v, k.item)  # put together with an empty tensor of the keys' dtype
        t.lasting = (*t.lasting, k, v)
    if t.recipe.ulysses > 1:
        return _over_heads(t, q, k, v, heads, head_major)
    drops = (t.rate("attention_dropout") if dropout is None else dropout) > 0 and t.recipe.dropout
    t.name(q, k, v)
    held = t.held
    if t.recipe.attention == "eager":
        out = eager(
            t, q, k, v, heads, softcap=softcap, drops=drops, half_softmax=half_softmax, recast=recast,
            keeps_product=keeps_product, scaled_queries=scaled_queries, broadcasts=broadcasts, per=per,
        )  # fmt: skip
    else:
        out = _fused(
            t, q, k, v, heads, head_major=head_major, drops=drops, given=masked, broadcasts=broadcasts, mask=mask,
            per=per,
        )  # fmt: skip
    t.held = held
    return out


def _fused(
    t: Layer, q: Var, k: Var, v: Var, heads: Heads, *, head_major: bool, drops: bool, given: int, broadcasts: bool,
    mask: Var | None, per: Extent,
) -> Var:  # fmt: skip
    """FlashAttention 2 or SDPA, with the kernel that torch takes (``sdp_utils.cpp``); ``given``: bytes of an element
    of an additive mask."""
    recipe = t.recipe
    if recipe.attention == "flash_attention_2":
        if heads.keys < heads.queries and recipe.transformers < REPEATED_FLASH.get(t.facts.model_type, (0, 0)):
            k, v = repeat(t, k, heads), repeat(t, v, heads)
            heads = replace(heads, keys=heads.queries)
        return _flash(t, t.cast(q, 2), t.cast(k, 2), t.cast(v, 2), heads, head_major=head_major)
    masked = recipe.ring == 1 and (
        mask is not None or recipe.padded or (heads.window is not None and t.slides) or always_masked(t.facts, recipe)
    )
    grouped = heads.keys < heads.queries
    repeated = grouped and not broadcasts and (masked or recipe.transformers < GROUPED_SDPA or heads.dim > FLASH_DIM)
    if repeated:  # of one head views, of which autocast's casts make whole tensors
        k, v = (expand(t, x, heads) if heads.keys == 1 else repeat(t, x, heads) for x in (k, v))
        t.name(k, v)
        grouped = False
    if recipe.autocast:
        q, k, v = (t.cast(x, 2) for x in (q, k, v))
    # FlashAttention wants values as wide as keys (``sdp_utils_cpp.h`` check_head_dim_size).
    fits = heads.dim <= FLASH_DIM and heads.value_dim in (None, heads.dim)
    flash = q.item == 2 and fits and recipe.sdpa == "flash"
    if (grouped and (broadcasts or not flash)) or (recipe.sdpa == "math" and q.item == 2):
        return _math(t, q, k, v, heads, drops, grouped=grouped, broadcasts=broadcasts, masked=masked, per=per)
    if given:
        return _efficient(t, q, k, v, heads, mask=t.new(1, q.item, False, per=pairs) if given != q.item else None)
    if mask is not None:
        return _efficient(t, q, k, v, heads, mask=t.cast(mask, q.item))
    if masked:
        return _efficient(t, q, k, v, heads, mask=t.new(1, q.item, False, per=pairs))
    if flash:
        return _flash(t, q, k, v, heads, head_major=head_major or recipe.ring > 1)
    return _efficient(t, q, k, v, heads)


def attend_beside(t: Layer, q: Var, k: Var, v: Var, heads: Heads, beside: Beside) -> Var:
    """Attention of the text's queries over what stands beside it, through an additive mask that somebody else counts.

    The mask is [batch, 1, seq, positions]. SDPA takes the memory-efficient kernel, whose mask has rows of a multiple of
    8 elements: where they are not, every layer makes and keeps a copy (``attention.cpp:preprocess_mask``).
    """
    if t.recipe.returns_states and not t.graph:
        v = t.cast(v, k.item)  # put together with an empty tensor of the keys' dtype
        t.lasting = (*t.lasting, k, v)
    t.name(q, k, v)
    held = t.held
    if t.recipe.attention == "eager":
        out = eager(t, q, k, v, heads, per=beside.pairs)
    else:
        if heads.keys < heads.queries:
            k, v = repeat(t, k, heads), repeat(t, v, heads)
            t.name(k, v)
        if t.recipe.autocast:
            q, k, v = (t.cast(x, 2) for x in (q, k, v))
        mask = t.new(1, q.item, False, per=beside.mask_rows)
        mask.storage.external = beside.shares(q.item)
        if beside.mask_item != q.item and beside.count % ALIGNED:
            cast = t.op(t.new(1, q.item, False, per=beside.pairs), ())
            mask = t.op(mask, (cast,))
            t.name(cast)
        out = _efficient(t, q, k, v, heads, mask=mask)
    t.held = held
    return out


def _over_heads(t: Layer, q: Var, k: Var, v: Var, heads: Heads, head_major: bool) -> Var:
    """DeepSpeed's Ulysses: every rank attends over the whole sequence with its share of the heads.

    Each of q, k and v is copied for the exchange, received, and copied into the kernel's layout, key heads repeated
    where there are fewer than ranks; so is the result, which stands beside what the output projection saves
    (``ulysses_sp.py:UlyssesSPAttentionHF.forward``). Masks are dropped. Eager attention is refused there.
    """
    ranks, before = t.recipe.ulysses, t.held
    t.held = (*before, q, k, v)
    copies = -(-ranks // heads.keys) if heads.keys < ranks else 1
    parts = []
    for var, times in ((q, 1), (k, copies), (v, copies)):
        sent = t.op(t.like(var, var.width * times, var.item, var.grad), (var,))
        parts.append(t.map(t.map(sent)))
        t.held = (*t.held, parts[-1])
    own = replace(heads, keys=heads.keys * copies, window=None)
    recipe = t.recipe
    t.recipe = replace(recipe, ulysses=1, padded=False)
    out = attend(t, parts[0], parts[1], parts[2], own, head_major=head_major)
    t.recipe, t.held = recipe, before
    return t.map(t.map(t.map(out)))


def repeats(facts: ModelFacts, recipe: Recipe, *, masked: bool = False) -> bool:
    """Whether a layer's attention saves copies of grouped keys and values rather than what it is given; ``masked``:
    whether it has a mask although batches are not padded."""
    if facts.kv_heads >= facts.heads or recipe.attention == "flash_attention_2":
        return False
    masked = masked or recipe.padded
    return recipe.attention == "eager" or masked or recipe.transformers < GROUPED_SDPA or recipe.weights == 4


def always_masked(facts: ModelFacts, recipe: Recipe) -> bool:
    """Whether SDPA is given a boolean mask even of batches that are not padded."""
    return recipe.transformers >= frame(facts).masked_since


EXPANDED_MASKS = (5, 0)
"""The first transformers version whose boolean mask stands once for all sequences, where none is padded."""


def mask_bytes(recipe: Recipe, kinds: int, sliding: bool, batch: int, seq: int, item: int) -> int:
    """Bytes of the masks that the model makes once and hands to its layers (``masking_utils.py``).

    Eager attention gets an additive mask [batch, 1, seq, seq] in the embeddings' dtype, SDPA a boolean one where
    the batch is padded or a window bites, FlashAttention none. ``kinds``: 2 for models with both full and
    sliding layers.
    """
    cells = batch * seq * seq
    if recipe.attention == "eager":
        return kinds * cells * item
    if recipe.attention == "sdpa" and sliding and not recipe.padded and recipe.transformers >= EXPANDED_MASKS:
        return seq * seq
    if recipe.attention == "sdpa" and (recipe.padded or sliding):
        return kinds * cells
    return 0


def repeat(t: Layer, x: Var, heads: Heads) -> Var:
    """A copy of keys or values for every query head; the gradient is summed back."""
    out = t.like(x, x.width // heads.keys * heads.queries, x.item, x.grad)
    return t.op(out, (x,))


def expand(t: Layer, x: Var, heads: Heads) -> Var:
    """``repeat_kv``, whose ``expand`` and ``reshape`` copy nothing where there is a single head."""
    if heads.keys > 1:
        return repeat(t, x, heads)
    return t.copied_back(x, x.width * heads.queries)


def _merge(t: Layer, out: Var, head_major: bool) -> Var:
    return t.map(out) if head_major else out


def _flash(t: Layer, q: Var, k: Var, v: Var, heads: Heads, *, head_major: bool) -> Var:
    """FlashAttention: saves q, k, v, the result and fp32 logsumexp [batch, heads, seq].

    Backward scratch (``flash_api.cpp:mha_bwd``): fp32 dq accumulator, softmax_d, and dk, dv for all heads under GQA.
    """
    grad = q.grad or k.grad or v.grad
    out = t.like(q, q.width // heads.dim * (heads.value_dim or heads.dim), q.item, grad)
    stats = t.new(heads.queries, 4, False)
    t.mark(out, stats)
    scratch = flash_scratch(heads.queries, heads.dim)
    if heads.keys < heads.queries:
        scratch.append(q.scratch(2 * q.item))
    if t.recipe.ring > 1:
        scratch += _going_round(t.recipe.ring, q, k)
    t.op(out, (q, k, v), (q, k, v, out, stats), temp=tuple(scratch))
    return _merge(t, out, head_major)


def _going_round(ranks: int, q: Var, k: Var) -> list[Scratch]:
    """What torch's ring has in the backward beside the kernel's own scratch.

    Keys and values laid out, put together and gathered from all ranks (Accelerate's ``cp_comm_strategy`` is
    ``allgather``), fp32 sums of all three gradients, and those of keys and values put together, sent and received
    (``_context_parallel/_attention.py:_templated_ring_attention_backward``). The result of the forward is put together
    from two halves on all ranks but the last, which leaves it head by head.
    """
    return [k.scratch(2 * (2 + ranks) * k.item), k.scratch(3 * 2 * 4), q.scratch(4)]


def _efficient(t: Layer, q: Var, k: Var, v: Var, heads: Heads, *, mask: Var | None = None) -> Var:
    """The memory-efficient kernel: q, k, v, result, logsumexp padded to 32, and the additive mask that it was given.

    Its result always lies [batch, seq, heads, dim]. SDPA turns a boolean mask into an additive one
    [batch, 1, seq, seq] of the queries' dtype in every layer.
    """
    grad = q.grad or k.grad or v.grad
    out = t.like(q, q.width // heads.dim * (heads.value_dim or heads.dim), q.item, grad)
    stats = t.new(heads.queries, 4, False, per=_padded)
    t.mark(out, stats)
    given = (q, k, v) if mask is None else (q, k, v, mask)
    t.op(out, given, (*given, out, stats), temp=efficient_scratch(q, out, heads.queries, heads.dim))
    return out


def _math(
    t: Layer, q: Var, k: Var, v: Var, heads: Heads, drops: bool, *, grouped: bool, broadcasts: bool, masked: bool,
    per: Extent,
) -> Var:  # fmt: skip
    """SDPA's reference path, in fp32: scaled copies of q and k, k and v for all heads, the scores.

    Half-precision tensors are cast first (``attention.cpp:_scaled_dot_product_attention_math``). Groups that SDPA is
    told of are repeated; a single head that it is not told of is spread by the products, which copy it where there are
    several sequences (``broadcasts``). A boolean mask that it is given (``masked``) becomes an additive one in its
    arguments' dtype; else it makes a causal one in fp32.
    """
    item = q.item
    mask: tuple[Var, ...] = () if frame(t.facts).encoder else (t.new(1, 4, False, per=square),)
    if masked:
        mask = (t.new(1, item, False, per=pairs),)
    t.name(q, k, v)  # autocast's copies, too
    q, k, v = t.cast(q, 4), t.cast(k, 4), t.cast(v, 4)
    t.name(q, k)
    if grouped and not broadcasts:
        k, v = repeat(t, k, heads), repeat(t, v, heads)
    repeated = k
    q, k = t.map(q), t.map(k)
    if broadcasts:
        k = spread(t, k, heads)
    t.name(q, repeated, v, *mask)
    scores = t.new(heads.queries, q.item, per=per)
    t.op(scores, (q, k), saved_factors(q, k))
    scores = t.add(scores)
    weights = t.softmax(scores)
    if drops:
        weights = t.dropout(weights)
    if broadcasts:
        v = spread(t, v, heads)
    out = t.like(q, q.width, q.item, True)
    t.op(out, (weights, v), saved_factors(weights, v))
    return t.map(t.cast(out, item))


UNMASKED_ENCODERS = (5, 0)
"""The first transformers whose encoders have no mask for eager attention where nothing is padded
(``create_bidirectional_mask``); before, ``get_extended_attention_mask`` made one of zeros."""


def _mask_item(t: Layer) -> int:
    """Bytes of an element of the additive mask of eager attention; none where nothing is hidden from an encoder."""
    hidden = t.recipe.padded or t.slides or not frame(t.facts).encoder
    return t.recipe.opening if hidden or t.recipe.transformers < UNMASKED_ENCODERS else 0


def spread(t: Layer, x: Var, heads: Heads) -> Var:
    """A single head as ``matmul`` takes it for all queries: batch and heads are merged, which copies where there are
    several sequences."""
    return repeat(t, x, heads) if t.batched else expand(t, x, heads)


def laid_out(t: Layer, x: Var) -> Var:
    """A copy of what does not fill its storage."""
    return t.map(x) if x.storage.bytes != x.width * x.item else x


def eager(
    t: Layer, q: Var, k: Var, v: Var, heads: Heads, *, softcap: bool = False, drops: bool = False,
    half_softmax: bool = False, recast: bool = False, one_product: bool = False, keeps_product: bool = False,
    per: Extent = pairs, scaled_queries: bool = False, names_scores: bool = False, broadcasts: bool = False,
    added: Var | None = None,
) -> Var:  # fmt: skip
    """transformers' eager attention: scores, softmax in fp32, cast back, and the product with v.

    ``per``: how many scores a head has.

    ``one_product``: BLOOM merges batch and heads itself, and its ``baddbmm`` makes scaled and biased scores at once;
    these, the masked ones, and all that goes into them have names of their own, which live through the softmax.
    ``names_scores``: what the softmax gets has a name to the end (MPT). ``broadcasts``: :func:`attend`. ``added``: a
    mask that may need a gradient, in the place of the model's.
    """
    named = (q, k, v) if one_product or keeps_product else ()
    asked = v.item if half_softmax else q.item
    if heads.keys < heads.queries and not broadcasts:
        k, v = expand(t, k, heads), expand(t, v, heads)
        t.name(k, v)
    if scaled_queries:
        q = t.map(q)
    if t.batched:
        # Batch and heads of a view, into a fused projection or of one head, cannot be merged: ``matmul`` copies it.
        q, k = laid_out(t, q), k if broadcasts else laid_out(t, k)
        v = laid_out(t, v) if one_product else v
    if broadcasts:
        k = spread(t, k, heads)
    grad = q.grad or k.grad
    if t.recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
    scores = t.op(t.new(heads.queries, q.item, grad, per=per), (q, k), saved_factors(q, k))
    if one_product:
        product, scores = scores, t.add(scores)
        t.held = (*t.held, *named, q, k, v, product, scores)
    else:
        product, scores = scores, scores if scaled_queries else t.map(scores)
    if softcap:
        scores = t.map(scores)
        scores = t.map(t.tanh(scores))
    held = t.held
    masked = t.add(scores, added) if added is not None else t.cast(scores, max(scores.item, _mask_item(t)))
    t.held = (*held, *((*named, product) if keeps_product else ()), masked)
    full = masked if half_softmax and not t.recipe.autocast else t.cast(masked, 4)
    made = t.softmax(full)
    if half_softmax:
        t.held = held
    weights = made if half_softmax and not recast else t.cast(made, asked)
    t.held = held
    if names_scores:
        t.held = (*held, full)
    if drops:
        weights = t.dropout(weights)
    t.scores = made if keeps_product else weights
    t.lasting = (t.scores,)  # A variable of the layer's has what attention gives back beside its result.
    if t.recipe.autocast:
        weights, v = t.cast(weights, 2), t.cast(v, 2)
    if broadcasts:
        v = spread(t, v, heads)
    elif t.batched:
        v = t.map(v) if added is not None and t.saves(v) else laid_out(t, v)
    out = t.like(q, q.width // heads.dim * (heads.value_dim or heads.dim), v.item, grad or v.grad)
    t.op(out, (weights, v), saved_factors(weights, v))
    return t.map(out)
