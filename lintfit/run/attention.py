"""The attention and the layers of a run whose project, or Unsloth, replaces transformers'."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.attention import CHOOSES
from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memory.spec import Spec
from lintfit.memory.versions import transformers_version
from lintfit.settings.model import BY_UNSLOTH, Setting

ONE_CLASS = (4, 48)
"""The first transformers whose models have one class of attention; before, each kernel has its own (since 4.36)."""


def with_own_attention(spec: Spec, settings: Mapping[str, Setting], doubtful: list[str]) -> Spec:
    """The spec with the kernel that a function of the project calls, where its model runs that function.

    A kernel that somebody asks for runs its own class. Scores that may or may not be made are taken as not made, and
    named in ``doubtful``.
    """
    told = settings.get("own_attention")
    if told is None or "attention" in settings:
        return spec
    from lintfit.memory.activations.recipe import attention_of

    models = (language(spec.facts), spec.facts)
    kinds = (*(facts.model_type for facts in models), *(BY_UNSLOTH for facts in models if facts.code.unsloth))
    found = next((told.value[kind] for kind in kinds if kind in told.value), None)
    before = attention_of(spec)
    if found is None or (before == "sdpa" and CHOOSES <= transformers_version(spec) < ONE_CLASS):
        return spec
    kernel, sure = found
    if not sure and "eager" in (kernel, before):
        doubtful.append("attention")
        kernel = "flash_attention_2"
    return replace(spec, attention=kernel, stated=spec.stated | {"attention"})


def with_own_kernels(spec: Spec, settings: Mapping[str, Setting]) -> Spec:
    """The spec with the kernels of Unsloth's layers, where it has layers of its own for the model's type."""
    told = settings.get("own_kernels")
    if told is None or not (spec.facts.code.unsloth or language(spec.facts).code.unsloth):
        return spec
    return replace(spec, fused_kernels=told.value, stated=spec.stated | {"fused_kernels"})
