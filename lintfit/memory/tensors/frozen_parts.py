"""What a full fine-tuning leaves as it is: the patterns of a spec's ``frozen_modules``, of which the last that matches
decides.

``vision_tower`` and ``model.layers.3`` are modules by their names; ``model.layers[:24]`` and ``model.layers[-1]`` are
decoder layers as Python takes them; ``*lm_head*`` is every parameter with such a name, and ``*`` all of them. What
stands behind a ``!`` is trained after all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lintfit.catalog.facts import ModelFacts, Tensor
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.memory.spec import Spec

_INDEXED = lazy_pattern(r"(?P<stem>[^*\[\]]+)\[(?P<first>-?\d+)?(?P<colon>:)?(?P<end>-?\d+)?\]")
_NO_LAYERS: frozenset[int] = frozenset()


@frozen
class Pattern:
    """One of ``frozen_modules``: whether it freezes, and the text that names what it does so to.

    ``stem`` and ``taken``: of layers by their numbers the module that holds them, and which.
    """

    freezes: bool
    text: str
    stem: str = ""
    taken: slice | None = None

    def matches(self, tensor: Tensor, layer: int | None, layers: int) -> bool:
        """Whether it names a tensor; ``layer``: in which of the ``layers``, where it is in them."""
        if self.taken is not None:
            return layer in range(layers)[self.taken] and f".{self.stem}.{{}}." in f".{tensor.name}"
        name = tensor.name if layer is None else tensor.name.replace("{}", str(layer), 1)
        if "*" in self.text:
            return _fits(self.text, name)
        return within(name, (self.text,))


@frozen
class FrozenParts:
    """What is frozen of a model.

    ``names``: of tensors that are frozen in all of their copies. ``layers``: the decoder layers that are frozen.
    ``embedding``, ``final``, ``head``: whether all is that stands there.
    """

    names: frozenset[str] = frozenset()
    layers: frozenset[int] = _NO_LAYERS
    embedding: bool = False
    final: bool = False
    head: bool = False

    @property
    def of_text(self) -> bool:
        """Whether anything of the language model is frozen."""
        return bool(self.layers) or self.embedding or self.final or self.head


NOTHING = FrozenParts()
_FOUND: Memo[FrozenParts] = Memo()


def within(name: str, modules: tuple[str, ...]) -> bool:
    """Whether a parameter belongs to one of the named modules, or to a part of one."""
    return any(f".{module}." in f".{name}" for module in modules)


def _fits(text: str, name: str) -> bool:
    """Whether a name is what a pattern with wildcards says, each of which stands for as little as can be."""
    first, *between, last = text.split("*")
    if not name.startswith(first) or not name.endswith(last):
        return False
    place, end = len(first), len(name) - len(last)
    for part in between:
        place = name.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return place <= end


@lru_cache(maxsize=256)
def pattern(text: str) -> Pattern:
    """A pattern as it is written."""
    freezes, named = not text.startswith("!"), text.removeprefix("!")
    found = _INDEXED.fullmatch(named)
    if found is None or not (found["first"] or found["colon"]):
        return Pattern(freezes, named)
    first, end = (int(found[part]) if found[part] else None for part in ("first", "end"))
    if not found["colon"] and first is not None:
        end = first + 1 or None
    return Pattern(freezes, named, found["stem"], slice(first, end))


def frozen_parts(spec: Spec) -> FrozenParts:
    """What a run leaves frozen of its model; nothing where adapters are trained, which stand beside all of it."""
    if not spec.frozen_modules or spec.method != "full":
        return NOTHING
    return parts_of(spec.facts, spec.frozen_modules)


def trained_parameters(spec: Spec) -> int:
    """Parameters of the model that a full fine-tuning trains."""
    left, facts = frozen_parts(spec), spec.facts
    share = 1 - len(left.layers) / facts.layers
    each = ((tensor, share if tensor.where == "layer" else tensor.name not in left.names) for tensor in facts.tensors)
    return round(sum(tensor.total * part for tensor, part in each))


def parts_of(facts: ModelFacts, modules: tuple[str, ...]) -> FrozenParts:
    """What the patterns freeze of a model; for those that :func:`wrong` has nothing against."""
    return _FOUND.get(facts, modules, lambda: _resolved(facts, modules))


def wrong(facts: ModelFacts, modules: tuple[str, ...]) -> str | None:
    """What is wrong with the patterns for a model, in words; None where nothing is."""
    known = named(facts, modules)
    for text in modules:
        if text not in known:
            tied = " (its head is the embedding)" if facts.tied and "head" in text else ""
            return f"{text!r} names nothing of the model{tied}"
    frozen_in = {_layers(facts, modules, tensor) for tensor in facts.tensors if tensor.where == "layer"}
    if len(frozen_in) > 1:
        return "a part of a decoder layer cannot be frozen, only all of it"
    some = 0 < len(next(iter(frozen_in), _NO_LAYERS)) < facts.layers
    if some and any(tensor.where == "layer" and tensor.copies % facts.layers for tensor in facts.tensors):
        return "decoder layers that differ cannot be frozen one by one, only all of them"
    if len(parts_of(facts, modules).names) == len(facts.tensors):
        return "nothing is left to train"
    return None


def named(facts: ModelFacts, modules: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns that name anything of a model."""
    return tuple(
        text
        for text in modules
        if any(pattern(text).matches(tensor, layer, facts.layers) for tensor, layer in _each(facts))
    )


def uncounted(pipeline: int, trainer: str) -> str | None:
    """Why parts of the language model cannot be frozen in a run; None where they can."""
    if pipeline > 1:
        return f"parts of the language model need pipeline_parallel 1, got {pipeline}"
    if trainer == "ppo":
        return "parts of the language model cannot be kept apart in trainer 'ppo', which trains two models"
    return None


def _each(facts: ModelFacts) -> Iterator[tuple[Tensor, int | None]]:
    """Every tensor, in each layer that may have it."""
    for tensor in facts.tensors:
        for layer in range(facts.layers) if tensor.where == "layer" else (None,):
            yield tensor, layer


def _resolved(facts: ModelFacts, modules: tuple[str, ...]) -> FrozenParts:
    layers = next((_layers(facts, modules, tensor) for tensor in facts.tensors if tensor.where == "layer"), _NO_LAYERS)
    whole = len(layers) == facts.layers
    names = {
        each.name
        for each in facts.tensors
        if (whole if each.where == "layer" else _off(modules, each, None, facts.layers))
    }

    def everything(where: str) -> bool:
        found = [each.name in names for each in facts.tensors if each.where == where]
        return bool(found) and all(found)

    embedding = everything("embedding")
    # A tied head is the embedding.
    head = embedding if facts.tied else everything("head")
    return FrozenParts(frozenset(names), layers, embedding, everything("final"), head)


def _layers(facts: ModelFacts, modules: tuple[str, ...], tensor: Tensor) -> frozenset[int]:
    """The decoder layers in which a tensor is frozen."""
    return frozenset(layer for layer in range(facts.layers) if _off(modules, tensor, layer, facts.layers))


def _off(modules: tuple[str, ...], tensor: Tensor, layer: int | None, layers: int) -> bool:
    """Whether a tensor is frozen, in one decoder layer where it is in several."""
    found = (each.freezes for each in map(pattern, reversed(modules)) if each.matches(tensor, layer, layers))
    return next(found, False)
