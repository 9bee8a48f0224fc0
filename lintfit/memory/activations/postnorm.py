"""Llama's parts with norms behind the blocks: OLMo 2 and 3, FlexOlmo, EXAONE 4, GLM 4, 4V and OCR.

And GLM, whose norms are Llama's.

Sources: ``modeling_olmo2.py``, ``modeling_olmo3.py``, ``modeling_exaone4.py``, ``modeling_glm.py``,
``modeling_glm4.py``, ``modeling_glm4v.py``, ``modeling_glm_ocr.py``.
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.layernorm import turned_by_full_tables
from lintfit.memory.activations.llama import attended, heads, mlp, projected, turns
from lintfit.memory.activations.tape import Var, function, positions

OLMO = frozenset({"flex_olmo", "olmo2", "olmo3", "olmo_hybrid"})
GLM = frozenset({"glm", "glm4", "glm4v_text", "glm_ocr_text"})
SPREADS_TABLES = frozenset({"glm", "glm4"})
"""Model types that spread cos and sin over pairs anew in every layer; GLM 4V does so once."""


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer: OLMo and EXAONE norm only what the blocks give, GLM 4 what they take as well."""
    glm = t.facts.model_type in GLM
    behind = t.facts.model_type != "glm"
    y = t.rmsnorm(x) if glm else x
    t.held = (x, y)
    branch = _attention(t, y, index)
    t.held = (x, branch)
    x = t.add(x, _norm(t, branch) if behind else branch)
    t.held = (x,)
    y = t.rmsnorm(x) if glm else x
    t.held = (x, y)
    branch = _joined_mlp(t, y) if glm else mlp(t, y) if t.facts.moe is None else experts(t, y, t.facts.moe)
    t.held = (x, branch)
    return t.add(x, _norm(t, branch) if behind else branch)


def _norm(t: Layer, x: Var, width: int | None = None) -> Var:
    return t.full_norm(x, width) if t.facts.model_type in OLMO else t.rmsnorm(x, width)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape, norm=_norm if facts.model_type in OLMO else None)
    glm = facts.model_type in GLM
    if facts.model_type not in OLMO and not glm:
        q, k = t.rmsnorm(q, shape.dim), t.rmsnorm(k, shape.dim)
    share = facts.rotary_dim / shape.dim if glm and facts.rotary_dim else 1.0
    spreads = facts.model_type in SPREADS_TABLES
    tables = (t.new(int(shape.dim * share), x.item, False, per=positions),) * 2 if spreads else ()
    if facts.model_type in OLMO:
        q, k = turned_by_full_tables(t, q, k) if facts.rotary_dim else (q, k)
    elif turns(facts, shape):
        q, k = t.both_turned(q, k, share, concatenated=glm, tables=tables)
    return attended(t, q, k, v, shape, head_major=glm)


@function
def _joined_mlp(t: Layer, x: Var) -> Var:
    """Gate and up in one projection, split as views."""
    h, i = t.facts.hidden, t.facts.intermediate
    both = t.linear("gate_up_proj", x, h, 2 * i)
    t.name(both)
    gate, up = t.split(both, (i, i))
    return t.linear("down_proj", t.mul(up, t.activation(gate, t.facts.activation)), i, h)
