"""``estimate --spec``: from one JSON object to a :class:`~lintfit.memory.spec.Spec`, with one-line errors.

The keys are the contract's; what is missing takes the libraries' defaults and stays out of ``Spec.stated``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog import gpus
from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.errors import shown
from lintfit.memory import litgpt
from lintfit.memory.reading import deepspeed_config, deepspeed_values
from lintfit.memory.reading.checkpoint import quantize
from lintfit.memory.reading.contradictions import SpecError, consistent
from lintfit.memory.reading.defaults import complete
from lintfit.memory.reading.keys import KNOWN, NULLABLE, READERS, unknown
from lintfit.memory.reading.named import card, frozen_models, model, other_model
from lintfit.memory.reading.older import as_of
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.frozen_parts import parts_of, uncounted, wrong


def spec_from_mapping(obj: Mapping[str, Any]) -> Spec:
    """The spec that a JSON object describes.

    Raises :class:`SpecError` for an unknown key, a value out of range, an unknown model or GPU, and settings
    that contradict each other; the message names the key, the value and what is allowed.
    """
    if not isinstance(obj, Mapping):
        raise SpecError(f"spec: must be a JSON object, got {shown(obj)}")
    if not KNOWN.issuperset(obj):
        raise unknown(next(key for key in obj if key not in KNOWN))
    values = {
        key: READERS[key](key, value)
        for key, value in obj.items()
        if key in READERS and (value is not None or key in NULLABLE)
    }
    facts = model(obj)
    for key in ("reward_model", "value_model"):
        if obj.get(key) is not None:
            values[key] = other_model(key, obj[key])
    if obj.get("frozen_models") is not None:
        values["frozen_models"] = frozen_models("frozen_models", obj["frozen_models"])
    if values.get("front_end") == "litgpt":
        facts = litgpt.as_built(facts)
    facts = as_of(facts, values.get("versions", {}))
    gpu = card(obj)
    if "gpus" not in values and gpu is not None:
        values.update(_stated_cards(obj["gpu"], values.get("nodes", 1)))
    values.update(_capacities(values, gpu))
    _check_parts(values, facts)
    quantize(values, str(obj.get("model") or facts.name), facts)
    deepspeed_values.check(values)
    in_config = deepspeed_config.stated(values)
    values.update(in_config)
    complete(values, facts)
    consistent(values, facts)
    stated = frozenset([*[key for key, value in obj.items() if value is not None], *in_config, *_said_by(obj)])
    return Spec(facts=facts, gpu=gpu, stated=stated, **values)


def _said_by(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """What the name of a trainer says besides: TRL's SFT trainer runs transformers' models, and whose loss it is."""
    return ("front_end",) if obj.get("trainer") == "sft" else ()


def _stated_cards(name: str, nodes: int) -> dict[str, int]:
    """How many GPUs the run has, where the GPU's name says so: ``8x3090``, ``p4d.24xlarge``."""
    cards = gpus.stated_count(name)
    if cards == 0:
        raise SpecError(f"gpu: {shown(name)} states no GPU; a run has one at least")
    return {} if cards is None else {"gpus": cards * nodes}


def _capacities(values: dict[str, Any], gpu: Gpu | None) -> dict[str, int]:
    """Bytes that the GPU and the host have, from what is stated in GiB, which is taken out of ``values``."""
    found = {} if gpu is None else {"capacity_bytes": gpu.usable_bytes}
    for key, name in (("gpu_memory_gib", "capacity_bytes"), ("host_memory_gib", "host_memory_bytes")):
        if key in values:
            found[name] = int(values.pop(key) * GIB)
    return found


def _check_parts(values: Mapping[str, Any], facts: ModelFacts) -> None:
    """Raise :class:`SpecError` for images or frozen parts that the model does not have."""
    name = shown(facts.name or facts.model_type)
    # Keys of images that say of what the model has none.
    for key in ("images", "image_patches", "image_max_pixels", "image_tiles"):
        if values.get(key) and facts.vision is None:
            raise SpecError(f"{key}: {values[key]} needs a vision-language model; {name} is none")
    modules = values.get("frozen_modules", ())
    against = wrong(facts, modules) if modules else None
    if against is None and modules and parts_of(facts, modules).of_text:
        against = uncounted(values.get("pipeline_parallel", 1), values.get("trainer", ""))
    if against is not None:
        raise SpecError(f"frozen_modules: {against} ({name})")
