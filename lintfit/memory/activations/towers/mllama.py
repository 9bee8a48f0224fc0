"""Llama 3.2 Vision's image encoder on tapes: the layers over all tiles of an image, and what stands around them.

Every tile is padded to a multiple of :data:`PADDED` positions; the tiles of an image are one sequence. Some inner
layers' results go to the projector beside the last one's. Source: transformers ``modeling_mllama.py``.
"""

from __future__ import annotations

from lintfit.catalog.architectures.mllama import VISION
from lintfit.catalog.facts import ModelFacts, VisionTower
from lintfit.frozen import frozen
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.encoder import block
from lintfit.memory.activations.towers.style import tower_of, vision_config

PADDED = 8


@frozen
class Trimmed:
    """So many positions of every image, those that its tiles were padded with left out."""

    count: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * self.count


def positions(tower: VisionTower) -> int:
    """Positions that the tiles of one image have together."""
    return tower.tiles * (-(-(patches(tower) + 1) // PADDED) * PADDED)


def patches(tower: VisionTower) -> int:
    """Patches of one tile."""
    return ((tower.image_size or 0) // tower.patch) ** 2


def seen(tower: VisionTower) -> int:
    """Positions that the language model sees of one image."""
    return tower.tiles * (patches(tower) + 1)


def _number(facts: ModelFacts, key: str) -> int:
    return int(vision_config(facts).get(key) or VISION[key])


def projected(facts: ModelFacts) -> int:
    """Elements that the projector gets of one position."""
    return _number(facts, "vision_output_dim")


def inner(facts: ModelFacts) -> tuple[int, ...]:
    """The layers whose results go to the projector beside the last one's."""
    given = vision_config(facts).get("intermediate_layers_indices")
    return tuple(given or VISION["intermediate_layers_indices"])


def stages(facts: ModelFacts) -> tuple[str, ...]:
    """The encoder's parts: the layers, a norm, and the layers with learnt factors."""
    late = _number(facts, "num_global_layers")
    return (*["block"] * (tower_of(facts).layers - late), "bridge", *["gated_block"] * late)


def bridge(t: Layer, x: Var) -> Var:
    """The norm between the two stages, and the tiles' learnt positions."""
    return t.map(t.layernorm(x, tower_of(t.facts).hidden))


def gated_block(t: Layer, x: Var) -> Var:
    """A layer of the second stage, whose blocks' results are multiplied by one number each."""
    return block(t, x, gated=True)


def connector(t: Layer, x: Var) -> Var:
    """All results side by side, without the padding, and the projector."""
    tower = tower_of(t.facts)
    wide = t.new(projected(t.facts), x.item, x.grad, per=Trimmed(seen(tower)))
    wide = t.op(wide, (x,), temp=(x.scratch(len(inner(t.facts)) * x.item),))
    return t.linear("multi_modal_projector", wide, wide.width, t.facts.hidden, bias=True)
