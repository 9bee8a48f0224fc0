"""Which module writes a model's layers, and what else that module says of them.

A family is a module of this folder with ``layer(tape, x, index)``, and ``TRAITS`` where its layers differ among each
other or from Llama's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from lintfit.catalog.architectures import ALIASES
from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.family_names import has_own, module_name
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.traits import Traits

Family = Callable[[Layer, Var, int], Var]

_UNREAD = frozenset({"chatglm"})
"""Model types that have a module, but whose several generations of remote code differ from it in details."""

_ALIKE = Traits()


def family(facts: ModelFacts) -> Family:
    """The function that writes one layer of this model onto a tape."""
    layer: Family = _module(facts).layer
    return layer


def traits(facts: ModelFacts) -> Traits:
    """What sets this model's layers apart."""
    found: Traits = vars(_module(facts)).get("TRAITS", _ALIKE)
    return found


def _module(facts: ModelFacts) -> ModuleType:
    """The family's module; models without one take the nearest: MoE, Llama's for gated MLPs, GPT-NeoX's otherwise."""
    return _imported(module_name(facts))


@cache
def _imported(name: str) -> ModuleType:
    return import_module(f"lintfit.memory.activations.{name}")


def known(facts: ModelFacts) -> bool:
    """Whether the layer follows the model's own code rather than the nearest family's."""
    text = language(facts)
    if ALIASES.get(text.model_type, text.model_type) in _UNREAD or not has_own(text):
        return False
    if traits(text).halves is not None and text is not facts:  # inside of another model, which runs it in its own way
        return False
    unread = traits(text).unread
    return unread is None or not unread(text)
