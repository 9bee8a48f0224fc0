"""Runs made by hypothesis, as specs and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec

MODELS = ("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-1.5B", "mistralai/Mistral-7B-v0.1", "gpt2-xl")
CARDS = ("RTX 3090", "A100-SXM4-40GB", "A100-SXM4-80GB", "V100-SXM2-32GB")

described = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "gpu": st.sampled_from(CARDS),
        "gpus": st.sampled_from([1, 2, 4, 8]),
        "host_memory_gib": st.sampled_from([64, 256, 1024]),
        "weights_dtype": st.sampled_from(["fp32", "bf16"]),
        "mixed_precision": st.sampled_from(["no", "bf16"]),
        "method": st.sampled_from(["full", "full", "lora"]),
        "micro_batch_size": st.sampled_from([1, 2, 4, 6, 8]),
        "gradient_accumulation_steps": st.sampled_from([1, 2, 3]),
        "seq_len": st.sampled_from([512, 1024]),
        "gradient_checkpointing": st.booleans(),
        "attention": st.sampled_from(["eager", "sdpa"]),
        "padded_batches": st.booleans(),
        "engine": st.sampled_from(["plain", "deepspeed", "fsdp"]),
        "zero_stage": st.sampled_from([1, 2, 3]),
    }
)


def spec_of(described: dict[str, Any]) -> Spec:
    """The spec of one of them."""
    mapping = dict(described)
    if mapping["engine"] != "deepspeed":
        del mapping["zero_stage"]
    if mapping["engine"] == "plain":
        mapping["engine"] = "ddp" if mapping["gpus"] > 1 else "single"
    return spec_from_mapping(mapping)


specs = described.map(spec_of)
