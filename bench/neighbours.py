"""Catalogue models away from the usual, for ``bench.combinations --neighbours``: every family, heads and lengths as
they seldom are.

One token and odd lengths, head widths that are no power of two, ties undone and made, dropout in attention, padded
batches, DoRA and large ranks, several steps of accumulation, every optimizer of torch's and transformers' own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from bench.fake_cases import GC, PRECISIONS, REENTRANT
from lintfit.catalog.attention import has_sdpa
from lintfit.catalog.models import code_of
from lintfit.memory.versions import NEWEST_TRANSFORMERS

Models = dict[str, list[tuple[str, dict[str, Any]]]]

LEFT_OUT = frozenset(
    {"bert", "roberta", "xlm-roberta", "t5", "mt5", "umt5", "qwen", "baichuan", "internlm", "internlm2", "chatglm"}
    | {"bart", "camembert", "electra", "marian", "mbart", "modernbert", "pegasus"}
    | {"minicpm", "minicpm3", "orion", "deepseek", "xverse", "kimi_k2", "deepseek_v32", "gemma3n"}
)
"""Model types without a causal language model, or without a class in transformers."""
OWN_KERNELS = frozenset({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"})
"""Model types whose kernels are a package of their own, which torch does not count."""
OPTIMIZERS = ("adamw_torch_fused", "adamw_torch", "sgd", "adafactor", "adagrad", "rmsprop")
OWN_HEAD_DIM = ("llama", "mistral", "qwen3", "gemma", "granite", "cohere")
DROPPING = (*OWN_HEAD_DIM, "olmo", "phi3", "stablelm")
LENGTHS = (1, 2, 7, 31, 64, 129, 500, 513, 999, 1500, 2047, 3001, 4100)
MOST_TOKENS = 16_000
"""Of a micro-batch: what a laptop's memory holds the log of."""

BOTH = ["embed_tokens", "lm_head"]
PLAIN = {"gradient_checkpointing": False, "use_reentrant": False}
COPIED: tuple[tuple[str, str, int, int, list[str], str | list[str], dict[str, Any]], ...] = (
    ("llama", "bf16 + autocast", 2, 1000, BOTH, "all-linear", GC),
    ("llama", "bf16", 2, 513, ["lm_head"], ["q_proj", "v_proj"], PLAIN),
    ("qwen2", "bf16 + autocast", 1, 2048, ["embed_tokens"], "all-linear", REENTRANT),
    ("gemma", "fp32 + autocast", 2, 700, ["embed_tokens"], ["gate_proj", "down_proj"], PLAIN),
    ("gpt2", "fp32", 2, 512, ["wte", "lm_head"], ["c_attn"], PLAIN),
    ("mistral", "bf16", 1, 1500, [*BOTH, "norm"], ["o_proj"], GC),
    ("qwen3", "fp32", 1, 777, ["lm_head"], "all-linear", PLAIN),
    ("opt", "bf16", 3, 700, ["embed_tokens"], ["q_proj", "v_proj"], PLAIN),
    ("gemma2", "bf16 + autocast", 1, 1000, ["lm_head"], "all-linear", {**PLAIN, "attention": "eager"}),
)
"""Adapters beside modules that PEFT copies and trains whole, of tied and of untied models, two layers each."""


def copied(models: Models, small: Any) -> Iterator[dict[str, Any]]:
    """The cases of :data:`COPIED`: their names and lintfit's specs of them."""
    for index, (kind, precision, batch, length, modules, targets, more) in enumerate(COPIED):
        spec = {
            "model_config": small(models[kind][0][1], 2, None),
            "gpu_memory_gib": 1000,
            **PRECISIONS[precision],
            "method": "lora",
            "lora_rank": 16,
            "lora_targets": targets,
            "lora_dropout": 0.05,
            "lora_dtype": "fp32",
            "lora_modules_to_save": modules,
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": batch,
            "seq_len": length,
            "attention": "sdpa",
            **more,
        }
        yield {"name": f"copied {index}, {kind}", "spec": spec}


def draw(seed: str, count: int, models: Models, small: Any) -> Iterator[dict[str, Any]]:
    """``count`` cases: their names and lintfit's specs of them. ``small``: see :func:`.combinations.small`."""
    kinds = [kind for kind, found in models.items() if kind not in LEFT_OUT and not sees(found)]
    for index in range(count):
        rng = random.Random(f"neighbour {seed}.{index}")
        kind = rng.choice(kinds)
        _, config = rng.choice(models[kind])
        if kind in OWN_KERNELS:
            continue
        changed = small(config, rng.choice([1, 2, 3]), rng.choice([None, 1000, 32003, 50257]))
        yield {"name": f"neighbour {seed}.{index}, {kind}", "spec": _spec(rng, kind, _odd(rng, kind, changed))}


def sees(models: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether any of these models has an image encoder."""
    return any("vision_config" in config for _, config in models)


def _odd(rng: random.Random, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    found = dict(config)
    if (rng.random() < 0.3 and "tie_word_embeddings" in found) or rng.random() < 0.15:
        found["tie_word_embeddings"] = rng.random() < 0.5
    if kind in OWN_HEAD_DIM and rng.random() < 0.4:
        found["head_dim"] = rng.choice([32, 40, 72, 96, 104, 160, 192, 256])
    if rng.random() < 0.2 and kind in DROPPING:
        found["attention_dropout"] = 0.1
    return found


def _spec(rng: random.Random, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    precision = PRECISIONS[rng.choice(list(PRECISIONS))]
    eager = not has_sdpa(code_of(kind), NEWEST_TRANSFORMERS) or rng.random() < 0.2
    length, batch = rng.choice(LENGTHS), rng.choice([1, 1, 2, 3, 5, 8, 17])
    if eager:
        length, batch = min(length, 1500), min(batch, 3)
    while batch * length > MOST_TOKENS:
        batch = max(1, batch // 2)
    checkpoints = rng.random() < 0.5
    found: dict[str, Any] = {
        "model_config": config,
        "gpu_memory_gib": 1000,
        **precision,
        "method": "full",
        "optimizer": rng.choice(OPTIMIZERS),
        "micro_batch_size": batch,
        "seq_len": length,
        "gradient_accumulation_steps": rng.choice([1, 1, 1, 2, 4]),
        "gradient_checkpointing": checkpoints,
        "use_reentrant": checkpoints and rng.random() < 0.4,
        "attention": "eager" if eager else "sdpa",
        "padded_batches": rng.random() < 0.3,
    }
    if rng.random() < 0.4:
        found |= {"method": "lora", "lora_rank": rng.choice([2, 8, 32, 256]), "lora_targets": "all-linear"}
        found["lora_dropout"] = rng.choice([0.0, 0.1])
        found["lora_dtype"] = rng.choice(["fp32", "fp32", "bf16"]) if precision["weights_dtype"] == "bf16" else "fp32"
        found |= {"use_dora": True} if rng.random() < 0.2 else {}
    return found
