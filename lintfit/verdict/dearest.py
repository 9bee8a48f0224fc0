"""What a setting that is open may be at the most: the values of which one takes no less than any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from lintfit.frozen import replace
from lintfit.memory.activations.gptq import AUTO_GPTQ
from lintfit.memory.spec import Spec
from lintfit.run.model import Run

_VALUES: Mapping[str, tuple[Any, ...]] = {
    "attention": ("eager",),
    "gradient_checkpointing": (False,),
    "mixed_precision": ("no", "bf16", "fp16"),
    "optimizer": ("adamw_torch", "ademamix"),
    "quantization": ("gptq-int8", None),
    "reference_model": (True,),
    "weights_dtype": ("fp32", "bf16"),
    "zero_stage": (0, 1, 2, 3),
}
"""Of settings that may be open the values that may need most, where these are the same for every run.

No kernel keeps more than eager attention, whose scores are there for every pair of tokens. Of quantised weights none
has more than eight bits, and none more beside them than a copy in 16 bits, which plain torch's kernels for GPTQ keep
for the backward pass (:func:`lintfit.memory.verdict.headroom._held_weights`); or there are none. No optimizer of
transformers has more than AdEMAMix's three states, or than AdamW's two and the copies of its step. A dtype of 16 bits
stands for both, beside each mixed precision.
"""
_SAID: Mapping[str, str] = {
    "attention": "attention that writes its scores out (which kernel is not known; others keep less)",
    "gradient_checkpointing": "no layer is recomputed (which of them are is not known; that takes less)",
    "lora_modules_to_save": "embedding and head are trained whole beside the adapters (what is, is not known)",
    "method": "the whole model is trained (a part of it is frozen, which takes less)",
    "mixed_precision": "whichever mixed precision takes most (it is not known)",
    "optimizer": "an optimizer of two states and of its step's copies, or of three states (which it is is not known)",
    "quantization": "weights of eight bits that are unpacked to 16 (how they are quantized is not known; other ways "
    "take less)",
    "reference_model": "a frozen copy of the model beside it (whether there is one is not known)",
    "weights_dtype": "weights in fp32 or in 16 bits, whichever take more (it is not known)",
    "zero_stage": "the stage of ZeRO that takes most (which it is is not known)",
}
"""What may be open, and what the estimate says of it. A rank of adapters has no bound."""
_EITHER = "the whole model is trained, or adapters, whichever takes more (which of them is not known)"
_TRAINED = frozenset({"AQLM", "AWQ", "EETQ", "GPTQ", "HQQ", "NVFP4"})
"""Kinds of quantised weights, of no more than eight bits, that front ends train adapters on."""


def dearest(run: Run, spec: Spec, doubtful: Sequence[str]) -> tuple[tuple[Spec, ...], tuple[str, ...]] | None:
    """The specs of which one takes no less, whatever is open, and what is said of them; None without a bound."""
    if not set(doubtful) <= _SAID.keys():
        return None
    methods = _methods(run, spec) if "method" in doubtful else (spec.method,)
    if methods is None or ("quantization" in doubtful and not _trains_quantized(run, spec, methods)):
        return None
    options = {**_VALUES, "lora_modules_to_save": (_words(spec),), "method": methods}
    notes = [_EITHER if name == "method" and len(methods) > 1 else _SAID[name] for name in doubtful]
    return tuple(_specs(spec, {name: options[name] for name in doubtful})), tuple(notes)


def _specs(spec: Spec, options: Mapping[str, tuple[Any, ...]]) -> Iterator[Spec]:
    stated = spec.stated.union(options.keys() - {"method"})
    for chosen in product(*options.values()):
        values = dict(zip(options, chosen, strict=True))
        quantized = values.get("quantization", spec.quantization)
        if values.get("method", spec.method) == "full" and quantized is not None:
            continue  # quantised weights are not trained
        versions = spec.versions
        if values.get("quantization") is not None:
            versions = {name: version for name, version in versions.items() if name not in AUTO_GPTQ}
        yield replace(spec, versions=versions, stated=stated, **values)


def _words(spec: Spec) -> tuple[str, ...]:
    """The modules of embedding and head, which PEFT copies whole where it is asked to."""
    names = (tensor.name for tensor in spec.facts.tensors if tensor.role in ("embedding", "lm_head"))
    return tuple(dict.fromkeys(name.removesuffix(".weight").rpartition(".")[2] for name in names))


def _methods(run: Run, spec: Spec) -> tuple[str, ...] | None:
    """What may be trained, where one of it takes no less: all of the model, where a part is frozen; or all of it and
    adapters, where these are put in by a switch that is not known.

    ZeRO 1 and 2 cut what is trained elsewhere then, and a rank has the gradients whole that touch its part: these may
    be more.
    """
    setting = run.settings.get("method")
    if run.value("partly_frozen") is True:
        cut = spec.engine == "deepspeed" and spec.zero_stage in (1, 2) and spec.sharding_ranks > 1
        return None if cut or (spec.quantization is not None and "quantization" not in run.doubtful) else ("full",)
    switched = setting is not None and not setting.provenance.detail and "lora_rank" in run.settings
    return ("full", "lora") if switched and run.recipe is None else None


def _trains_quantized(run: Run, spec: Spec, methods: Sequence[str]) -> bool:
    """Whether weights that may be quantised are trained on by adapters, or not trained on at all.

    A front end asks for them, or loads such as transformers trains adapters on: FP8's it does not
    (``quantizer_finegrained_fp8.py:is_trainable``, 4.55), unless they are converted.
    """
    stored = spec.facts.stored
    if run.recipe is None:
        return stored is None
    return tuple(methods) == ("lora",) and (stored is None or stored.kind in _TRAINED)
