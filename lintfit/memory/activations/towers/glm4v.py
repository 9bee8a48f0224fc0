"""What stands around the layers of GLM 4V's image encoder, on tapes (``modeling_glm4v.py``).

In front of them learnt positions, sampled from their grid for every patch; behind them a convolution that merges
neighbouring patches, and a gated MLP.
"""

from __future__ import annotations

from lintfit.catalog.architectures._glm_v import VISION
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.encoder import CHANNELS, norm
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import style, tower_of, vision_config

AXES = 2
"""Coordinates of a patch in the grid of positions."""


def _number(facts: ModelFacts, key: str) -> int:
    return int(vision_config(facts).get(key) or VISION[key])


def with_positions(t: Layer, x: Var) -> Var:
    """x with its positions, which ``grid_sample`` takes from a copy of their table in fp32."""
    tower, recipe = tower_of(t.facts), t.recipe
    trains = recipe.trains("position_embedding")
    size = (_number(t.facts, "image_size") // tower.patch) ** 2 * tower.hidden
    table = t.constant(size if recipe.weights != 4 else 0, 4, trains)
    t.op(table, (), weights=(size * recipe.weights,) if trains else ())
    places = t.like(x, AXES, 4, False)
    sampled = t.like(x, tower.hidden, 4, trains)
    t.op(sampled, (table,), (table, places) if trains else (), temp=(places.scratch(4),) if trains else ())
    return t.add(x, t.cast(sampled, recipe.weights))


def connector(t: Layer, x: Var) -> Var:
    """From the encoder's last states to the language model's tokens."""
    facts, tower = t.facts, tower_of(t.facts)
    out, inner = facts.hidden, _number(facts, "intermediate_size")
    if facts.model_type == "glm_ocr":
        inner = out * CHANNELS
    y = norm(t, x, style(facts))
    y = t.view(y, tower.merge * tower.hidden, Merged(tower.merge))
    trains = t.recipe.trains("downsample")
    y = t.matmul(y, y.width, out, item=t.recipe.weights, trains=trains, bias=True, convolves=True)
    y = t.activation(t.layernorm(t.linear("proj", y, out, out), out), "gelu")
    gate = t.activation(t.linear("gate_proj", y, out, inner), style(facts).activation)
    return t.linear("down_proj", t.mul(gate, t.linear("up_proj", y, out, inner)), inner, out)
