"""The model that the measurements of parallel ranks train: small, but a Llama in structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MODEL: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 2048,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}


def config_of(changes: Mapping[str, Any]) -> Any:
    """transformers' config of the model with some keys changed."""
    from transformers import AutoConfig

    given = {**MODEL, **changes}
    kind = given.pop("model_type")
    given.pop("architectures")
    return AutoConfig.for_model(kind, **given)


def made(case: Mapping[str, Any]) -> Any:
    """The model of a case with random weights, in training, in the dtype and with the attention of its spec."""
    import torch
    from transformers import AutoModelForCausalLM

    spec = case["spec"]
    dtype = torch.bfloat16 if spec["weights_dtype"] == "bf16" else torch.float32
    config = config_of(case.get("model", {}))
    return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=spec["attention"]).train()


def adapted(model: Any, spec: Mapping[str, Any]) -> Any:
    """The model with PEFT's adapters of a spec."""
    from peft import get_peft_model

    return get_peft_model(model, lora_of(spec))


def lora_of(spec: Mapping[str, Any]) -> Any:
    """PEFT's config of the adapters of a spec."""
    from peft import LoraConfig

    return LoraConfig(r=spec["lora_rank"], target_modules=list(spec["lora_targets"]), task_type="CAUSAL_LM")


def batch_of(case: Mapping[str, Any], shards: int = 1) -> Any:
    """Random token ids, of a ``shards``-th of each sequence."""
    import torch

    spec = case["spec"]
    return torch.randint(0, MODEL["vocab_size"], (spec["micro_batch_size"], spec["seq_len"] // shards))
