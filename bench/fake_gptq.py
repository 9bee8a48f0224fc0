"""AutoGPTQ's linear layers in the place of a model's own, and PEFT's adapters for them.

The layers are the package's, in plain torch as they train: ``pip install --no-deps auto-gptq==0.5.1``, of whose modules
two are loaded from their files, as the package itself does not import with transformers 5. Optimum, which makes such
models, gives every layer a bias and leaves the head whole.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

PACKAGE = "auto-gptq"
GROUP = 128
"""Columns that share a scale, as nearly all published models have it."""


def quantised(spec: dict[str, Any]) -> bool:
    """Whether AutoGPTQ's layers run; an error where the spec wants another version than is installed."""
    wanted = spec.get("versions", {}).get(PACKAGE)
    if wanted is None:
        return False
    if version(PACKAGE) != wanted:
        raise RuntimeError(f"{PACKAGE} {wanted} is wanted, here is {version(PACKAGE)}")
    return True


def layer_class(spec: dict[str, Any]) -> Any:
    """``QuantLinear`` for columns in their own order, or in that of their activations (``desc_act``)."""
    ordered = spec["model_config"].get("quantization_config", {}).get("desc_act")
    name = "qlinear_cuda" if ordered else "qlinear_cuda_old"
    package = importlib.util.find_spec("auto_gptq")
    assert package is not None and package.submodule_search_locations
    file = Path(package.submodule_search_locations[0]) / "nn_modules" / "qlinear" / f"{name}.py"
    found = importlib.util.spec_from_file_location(name, file)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.QuantLinear


def quantise(model: Any, spec: dict[str, Any], dtype: Any) -> Any:
    """Put quantised layers in the place of all linear layers but the head; their class."""
    kind = layer_class(spec)
    bits = 8 if spec["quantization"] == "gptq-int8" else 4
    head = model.get_output_embeddings()
    for holder in list(model.modules()):
        for name, layer in list(holder.named_children()):
            if not isinstance(layer, torch.nn.Linear) or layer is head:
                continue
            made = kind(bits, GROUP, layer.in_features, layer.out_features, bias=True, weight_dtype=dtype)
            made.register_buffer("wf", made.__dict__.pop("wf"), persistent=False)  # to get its place with the others
            setattr(holder, name, made)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return kind


def adapters_for(kind: Any) -> dict[Any, Any]:
    """PEFT's layer with an adapter for such a one, which it takes by itself for GPTQModel's only."""
    from peft.tuners.lora.gptq import GPTQLoraLinear

    return {kind: GPTQLoraLinear}
