"""What torchtune's components are: models by their builders, optimizers, losses, the modules that LoRA adapts.

Builders and their shapes: ``torchtune/models/*/_model_builders.py`` of 0.1.1 to 0.7.0, which name the checkpoint that
each of them is initialised for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MODELS: Mapping[str, str] = {
    "code_llama2_7b": "codellama/CodeLlama-7b-hf",
    "code_llama2_13b": "codellama/CodeLlama-13b-hf",
    "code_llama2_70b": "codellama/CodeLlama-70b-hf",
    "gemma_2b": "google/gemma-2b",
    "gemma_7b": "google/gemma-7b",
    "gemma2_2b": "google/gemma-2-2b",
    "gemma2_9b": "google/gemma-2-9b",
    "gemma2_27b": "google/gemma-2-27b",
    "llama2_7b": "meta-llama/Llama-2-7b-hf",
    "llama2_13b": "meta-llama/Llama-2-13b-hf",
    "llama2_70b": "meta-llama/Llama-2-70b-hf",
    "llama3_8b": "meta-llama/Meta-Llama-3-8B",
    "llama3_70b": "meta-llama/Meta-Llama-3-70B",
    "llama3_1_8b": "meta-llama/Llama-3.1-8B",
    "llama3_1_70b": "meta-llama/Llama-3.1-70B",
    "llama3_1_405b": "meta-llama/Llama-3.1-405B",
    "llama3_2_1b": "meta-llama/Llama-3.2-1B",
    "llama3_2_3b": "meta-llama/Llama-3.2-3B",
    "llama3_2_vision_11b": "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "llama3_2_vision_90b": "meta-llama/Llama-3.2-90B-Vision-Instruct",
    "llama3_3_70b": "meta-llama/Llama-3.3-70B-Instruct",
    "llama4_scout_17b_16e": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "llama4_maverick_17b_128e": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "mistral_7b": "mistralai/Mistral-7B-v0.1",
    "phi3_mini": "microsoft/Phi-3-mini-4k-instruct",
    "phi4_14b": "microsoft/phi-4",
    "qwen2_0_5b": "Qwen/Qwen2-0.5B-Instruct",
    "qwen2_1_5b": "Qwen/Qwen2-1.5B-Instruct",
    "qwen2_7b": "Qwen/Qwen2-7B-Instruct",
    "qwen2_5_0_5b": "Qwen/Qwen2.5-0.5B-Instruct",
    "qwen2_5_1_5b_base": "Qwen/Qwen2.5-1.5B",
    "qwen2_5_1_5b_instruct": "Qwen/Qwen2.5-1.5B-Instruct",
    "qwen2_5_3b": "Qwen/Qwen2.5-3B-Instruct",
    "qwen2_5_7b_base": "Qwen/Qwen2.5-7B",
    "qwen2_5_7b_instruct": "Qwen/Qwen2.5-7B-Instruct",
    "qwen2_5_14b_base": "Qwen/Qwen2.5-14B",
    "qwen2_5_14b_instruct": "Qwen/Qwen2.5-14B-Instruct",
    "qwen2_5_32b_base": "Qwen/Qwen2.5-32B",
    "qwen2_5_32b_instruct": "Qwen/Qwen2.5-32B-Instruct",
    "qwen2_5_72b_base": "Qwen/Qwen2.5-72B",
    "qwen2_5_72b_instruct": "Qwen/Qwen2.5-72B-Instruct",
    "qwen3_0_6b_base": "Qwen/Qwen3-0.6B-Base",
    "qwen3_0_6b_instruct": "Qwen/Qwen3-0.6B",
    "qwen3_1_7b_base": "Qwen/Qwen3-1.7B-Base",
    "qwen3_1_7b_instruct": "Qwen/Qwen3-1.7B",
    "qwen3_4b_base": "Qwen/Qwen3-4B-Base",
    "qwen3_4b_instruct": "Qwen/Qwen3-4B",
    "qwen3_8b_base": "Qwen/Qwen3-8B-Base",
    "qwen3_8b_instruct": "Qwen/Qwen3-8B",
    "qwen3_14b_base": "Qwen/Qwen3-14B-Base",
    "qwen3_14b_instruct": "Qwen/Qwen3-14B",
    "qwen3_32b": "Qwen/Qwen3-32B",
    "smollm2_135m": "HuggingFaceTB/SmolLM2-135M",
    "smollm2_360m": "HuggingFaceTB/SmolLM2-360M",
    "smollm2_1_7b": "HuggingFaceTB/SmolLM2-1.7B",
}
"""The checkpoint whose shape a builder has, without the prefix ``lora_`` or ``qlora_``. Base and instruction-tuned
models of one size have one shape; a builder that is for both stands for the one that torchtune's configs train."""

DTYPES: Mapping[str, str] = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "fp32": "fp32", "float32": "fp32",
}  # fmt: skip
"""``training.get_dtype`` knows the short names."""

_IN_MODULE = "torchtune.models."

OPTIMIZERS: Mapping[str, str] = {
    "torch.optim.AdamW": "adamw_torch",
    "torch.optim.Adam": "adamw_torch",
    "torch.optim.SGD": "sgd",
    "torch.optim.Adagrad": "adagrad",
    "torch.optim.RMSprop": "rmsprop",
    "bitsandbytes.optim.AdamW": "adamw_bnb_32bit",
    "bitsandbytes.optim.AdamW8bit": "adamw_8bit",
    "bitsandbytes.optim.PagedAdamW": "paged_adamw",
    "bitsandbytes.optim.PagedAdamW32bit": "paged_adamw",
    "bitsandbytes.optim.PagedAdamW8bit": "paged_adamw_8bit",
    "bitsandbytes.optim.Lion": "lion_32bit",
    "bitsandbytes.optim.Lion8bit": "lion_8bit",
    "bitsandbytes.optim.PagedLion": "paged_lion_32bit",
    "bitsandbytes.optim.PagedLion8bit": "paged_lion_8bit",
    "torchao.prototype.low_bit_optim.AdamW8bit": "adamw_torch_8bit",
    "torchao.prototype.low_bit_optim.AdamW4bit": "adamw_torch_4bit",
    "torchao.optim.AdamW8bit": "adamw_torch_8bit",
    "torchao.optim.AdamW4bit": "adamw_torch_4bit",
}
"""transformers' names by the class."""

FUSES = frozenset({"torch.optim.AdamW", "torch.optim.Adam"})
"""Those whose ``fused`` the settings tell apart."""

WRITTEN: Mapping[str, str] = {
    "adamw_8bit": "bitsandbytes.optim.AdamW8bit",
    "paged_adamw_8bit": "bitsandbytes.optim.PagedAdamW8bit",
    "paged_adamw_32bit": "bitsandbytes.optim.PagedAdamW",
}
"""The component by a name that the planner has for it."""

CHUNKED = ("LinearCrossEntropyLoss", "CEWithChunkedOutputLoss", "ChunkedCrossEntropyLoss")
"""Losses that make logits chunk by chunk, and keep all chunks (``torchtune/modules/loss``)."""

_MODULES: Mapping[str, tuple[str, ...]] = {
    "q_proj": ("q_proj",),
    "k_proj": ("k_proj",),
    "v_proj": ("v_proj",),
    "output_proj": ("o_proj",),
}
_MLP = ("gate_proj", "up_proj", "down_proj", "gate_up_proj")
_FUSED = ("qkv_proj",)
"""What transformers' Phi-3 and Phi-4 keep in one projection and torchtune in three."""


class Builder(NamedTuple):
    """A model's builder: its name without a prefix, whether it adapts, and whether the base is in four bits."""

    name: str
    adapts: bool
    quantizes: bool

    @property
    def model(self) -> str | None:
        """The checkpoint that it is for; None for a builder of any shape (``llama2.llama2``)."""
        if self.name in MODELS:
            return MODELS[self.name]
        # ``qwen2_5_7b`` of older configs; a reward model has a score in the place of the head.
        return MODELS.get(f"{self.name}_base") or MODELS.get(self.name.replace("_reward", ""))

    @property
    def scores(self) -> bool:
        """Whether it gives one score a sequence."""
        return "_reward_" in self.name


def builder(component: Any) -> Builder | None:
    """A model's component by its parts; None for one that is not torchtune's."""
    if not isinstance(component, str) or not component.startswith(_IN_MODULE):
        return None
    name = component.rpartition(".")[2]
    bare = name.removeprefix("q").removeprefix("lora_") if name.startswith(("lora_", "qlora_")) else name
    return Builder(bare, bare != name, name.startswith("qlora_"))


def fits(folder: str, known: str | None) -> bool:
    """Whether a folder is named after a checkpoint of the shape that the builder makes, as far as that is known."""
    if known is None:
        return True
    from lintfit.catalog import models

    named, made = models.find(folder), models.find(known)
    return named is not None and made is not None and named.parameters == made.parameters


def quantizing(component: str) -> str | None:
    """The builder with its base in four bits (``qlora_…``); None where there is none by that name."""
    module, _, name = component.rpartition(".")
    return f"{module}.q{name}" if name.startswith("lora_") else None


def adapted(attention: Iterable[Any], mlp: bool, output: bool) -> tuple[str, ...]:
    """transformers' names of the modules that are adapted (``modules/peft/_utils.py:get_lora_module_names``)."""
    named = [module for name in attention for module in _MODULES.get(str(name), ())]
    fused = _FUSED if {"q_proj", "k_proj", "v_proj"} & set(named) else ()
    return (*named, *fused, *(_MLP if mlp else ()), *(("lm_head",) if output else ()))
