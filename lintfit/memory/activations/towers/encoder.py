"""The layers of image encoders on tapes, and the embedding of patches in front of them.

Sources: transformers' ``modeling_<name>.py``, by the names of :data:`.style.KINDS`.
"""

from __future__ import annotations

from lintfit.catalog.facts import VisionTower
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.layernorm import turned_on_copies
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import INDEX, Var, function
from lintfit.memory.activations.towers.style import Style, style, tower_of

CHANNELS = 3


def block(t: Layer, x: Var, *, gated: bool = False) -> Var:
    """One layer of the encoder; ``gated``: what its blocks give back is multiplied by a learnt number."""
    tower, how = tower_of(t.facts), style(t.facts)
    y = norm(t, x, how)
    t.held = (x, y)
    attended = _scaled(t, _attention(t, y, tower, how), how, gated)
    x = t.add(x, attended)
    t.held = (x, attended) if how.names_attention else (x,)
    y = norm(t, x, how)
    t.held = (*t.held, y)
    return t.add(x, _scaled(t, _mlp(t, y, tower, how), how, gated))


def _mlp(t: Layer, y: Var, tower: VisionTower, how: Style) -> Var:
    h, i = tower.hidden, tower.intermediate
    if how.gated:
        gate_name, up_name, down_name = how.names[-3:]
        lies = how.norms_patches
        gate = t.activation(t.linear(gate_name, y, h, i, bias=how.bias, strided=lies), how.activation)
        up = t.linear(up_name, y, h, i, bias=how.bias, strided=lies)
        return t.linear(down_name, t.mul(gate, up), i, h, bias=how.bias)
    first, second = how.names[-2:]
    return t.linear(second, t.activation(t.linear(first, y, h, i, bias=True), how.activation), i, h, bias=True)


def _scaled(t: Layer, x: Var, how: Style, gated: bool) -> Var:
    """``lambda * x`` with a learnt vector (InternVL's ``lambda_1``, ``lambda_2``), or a number."""
    if gated:
        return t.scaled(x, 1, t.recipe.trains("gate"))
    if not how.scaled:
        return x
    return t.scaled(x, x.width, t.recipe.trains("lambda"))


def norm(t: Layer, x: Var, how: Style, width: int | None = None) -> Var:
    """The encoder's norm over ``width`` elements, its own width by default."""
    width = width or tower_of(t.facts).hidden
    return t.rmsnorm(x, width) if how.rms else t.layernorm(x, width)


@function
def _attention(t: Layer, y: Var, tower: VisionTower, how: Style) -> Var:
    h = tower.hidden
    heads = Heads(tower.heads, how.groups or tower.heads, h // tower.heads)
    narrow = heads.keys * heads.dim
    if not how.fused:
        q, k, v = (t.linear(name, y, h, h, bias=how.bias, strided=how.norms_patches) for name in how.names[:3])
    else:
        q, k, v = t.split(t.linear(how.names[0], y, h, h + 2 * narrow, bias=how.bias), (h, narrow, narrow))
    if how.head_norms or how.each_head:
        normed = heads.dim if how.each_head else h
        q, k = t.rmsnorm(q, normed), t.rmsnorm(k, normed)
    if how.rotary and how.apart:
        q, k = turned_on_copies(t, q, k)
    elif how.rotary:
        q, k = t.both_turned(q, k)
    mask = mask_item(t.recipe, how)
    out = attend(
        t, q, k, v, heads, dropout=0.0, half_softmax=how.half_softmax, scaled_queries=how.scaled_queries, masked=mask
    )
    if how.apart and t.recipe.attention != "flash_attention_2":
        out = t.map(out)  # the images' (or windows') results are put together by a ``torch.cat``
    return t.linear(how.names[1 if how.fused else 3], out, h, h, bias=how.bias)


def last_norm(t: Layer, x: Var) -> Var:
    """The LayerNorm at the encoder's end, whose result the encoder gives back: where it is frozen, and leaves no
    gradient, it keeps nothing."""
    width = tower_of(t.facts).hidden
    item = 4 if t.recipe.autocast else x.item
    y = t.layernorm(x, width) if x.grad or not t.graph else t.like(x, width, item, False)
    t.name(y)
    return y


def mask_item(recipe: Recipe, how: Style) -> int:
    """Bytes of an element of the mask that keeps images apart; 0 where there is none.

    Pixtral's has the dtype of the patches, Llama 3.2 Vision's comes out of a product.
    """
    if not how.masked:
        return 0
    return 2 if recipe.autocast and how.joins else recipe.weights


def stem(t: Layer, x: Var, flows: bool, adapted: bool = False) -> Var:
    """The convolution over patches of pixels, positions, and the norm behind them.

    ``adapted``: whether the convolution has an adapter of its own. Patches of a frozen encoder that are made to need a
    gradient are a leaf, which stays as long as the graph does.
    """
    tower, how = tower_of(t.facts), style(t.facts)
    x = t.cast(x, t.recipe.weights)
    trains = t.recipe.trains("patch_embedding")
    if adapted:
        named = "proj" if t.recipe.lora is not None and t.recipe.lora.on("proj") else "patch_embedding"
        y = t.linear(named, x, x.width, tower.hidden)
    else:
        y = t.matmul(x, x.width, tower.hidden, item=t.recipe.weights, trains=trains, convolves=True)
    leaf = flows and not trains and not adapted and not how.embeds_whole
    y.grad = y.grad or flows
    y = norm(t, y, how) if how.norms_patches else y
    if how.positions or how.classes:
        kept = (y,) if leaf else ()
        if how.taps and t.recipe.trains("position_embedding"):
            # ``embedding_bag`` keeps the indices of the rows, those of their sums, and lengths.
            kept = (*kept, t.like(y, how.taps * (2 * INDEX + t.recipe.weights) + 3 * INDEX, 1, False))
        if how.blended and t.recipe.trains("position_embedding"):
            kept = (*kept, t.like(y, how.blended * (INDEX + 4), 1, False))  # rows, and their fp32 shares
        y = t.op(t.like(y, y.width, y.item, y.grad), (y,), kept)
    if how.joins:  # the tiles' positions are looked up for every image, and multiplied by one number
        table = t.like(y, y.width, t.recipe.weights, False)
        y = t.op(t.like(y, y.width, y.item, y.grad), (y,), (table,) if t.recipe.trains("gate") else ())
    y = norm(t, y, how) if how.first_norm else y
    return t.map(y) if how.joins else y  # padded
