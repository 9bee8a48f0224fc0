"""Models that nobody has made, for ``bench.combinations --invented``: odd widths, head counts, vocabularies, lengths.

Beside what the catalogue's models are drawn with: every optimizer of torch's and transformers' own that the Trainer
knows, batches with a padding mask, half-precision adapters, DoRA.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.fake_cases import PRECISIONS

KINDS = (
    *("llama", "qwen2") * 4, *("mistral",) * 2, "gemma", "qwen3", "gemma2", "gpt2", "opt", "gpt_neox", "phi3",
    "mixtral",
)  # fmt: skip
OPTIMIZERS = (*("adamw_torch_fused",) * 5, "adamw_torch", "sgd", "adafactor", "adagrad", "rmsprop")
LENGTHS = (333, 511, 777, 1000, 1023, 1025, 1536, 2048, 2049, 3000, 4096)
MOST_TOKENS = 24_000
"""Of a micro-batch: what a laptop's memory holds the log of."""
FUSED: Mapping[str, list[str]] = {"gpt2": ["c_attn"], "gpt_neox": ["query_key_value"], "phi3": ["qkv_proj", "o_proj"]}
MLP: Mapping[str, list[str]] = {
    "opt": ["fc1", "fc2"],
    "gpt2": ["c_fc", "c_proj"],
    "gpt_neox": ["dense_h_to_4h", "dense_4h_to_h"],
    "phi3": ["gate_up_proj", "down_proj"],
    "mixtral": ["q_proj", "k_proj", "v_proj", "o_proj"],
}


def draw(seed: str, count: int) -> Iterator[dict[str, Any]]:
    """``count`` cases: their names and lintfit's specs of them. Some are of no shape that transformers takes."""
    for index in range(count):
        rng = random.Random(f"{seed}.{index}")
        kind = rng.choice(KINDS)
        yield {"name": f"invented {seed}.{index}, {kind}", "spec": _spec(rng, kind, _config(rng, kind))}


def _config(rng: random.Random, kind: str) -> dict[str, Any]:
    shared = rng.choice([1, 2, 3, 4, 5, 6, 8])
    heads, width = shared * rng.choice([1, 1, 2, 3, 4, 5, 7, 8]), rng.choice([32, 48, 64, 80, 96, 128, 128, 64])
    numbers = {
        "heads": heads,
        "shared": shared,
        "width": width,
        "hidden": heads * width if rng.random() < 0.7 else rng.choice([512, 640, 1152, 1536, 2304, 3072, 2000]),
        "inner": rng.choice([1408, 2816, 5000, 8192, 6912, 11264, 3000, 4864]),
        "vocab": rng.choice([32000, 50257, 32003, 128256, 151936, 99999, 8192, 64001, 256000]),
        "layers": rng.choice([2, 3, 4, 6, 9, 12]),
    }
    tied = rng.random() < 0.5
    return {"model_type": kind, **_MAKERS.get(kind, _llama_like)(rng, kind, numbers, tied)}


def _llama_like(rng: random.Random, kind: str, n: Mapping[str, int], tied: bool) -> dict[str, Any]:
    fixed = kind in ("qwen2", "phi3", "mixtral")
    found: dict[str, Any] = {
        "hidden_size": n["heads"] * n["width"] if fixed else n["hidden"],
        "intermediate_size": n["inner"],
        "num_hidden_layers": n["layers"],
        "num_attention_heads": n["heads"],
        "num_key_value_heads": n["shared"],
        "vocab_size": n["vocab"],
        "max_position_embeddings": 8192,
        "tie_word_embeddings": tied,
    }
    if not fixed and (kind != "llama" or n["hidden"] != n["heads"] * n["width"]):
        found["head_dim"] = n["width"]
    if kind == "phi3":
        found["pad_token_id"] = 0
    if kind == "mixtral":
        found |= {"num_local_experts": rng.choice([4, 8]), "num_experts_per_tok": rng.choice([1, 2, 3])}
        found |= {"num_hidden_layers": min(n["layers"], 4), "sliding_window": None}
    if kind == "llama":
        found |= {key: True for key in ("attention_bias", "mlp_bias") if rng.random() < 0.2}
    if kind == "qwen2" and rng.random() < 0.3:
        found |= {"use_sliding_window": True, "sliding_window": 512, "max_window_layers": 1}
    if kind == "mistral":
        found["sliding_window"] = rng.choice([None, 4096, 512])
    if kind in ("gemma", "gemma2"):
        found["tie_word_embeddings"] = True
    if kind == "gemma2":
        found |= {"sliding_window": rng.choice([512, 4096]), "query_pre_attn_scalar": n["width"]}
    return found


def _gpt2(rng: random.Random, kind: str, n: Mapping[str, int], tied: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"n_embd": n["heads"] * n["width"], "n_layer": n["layers"], "n_head": n["heads"]}
    found |= {"vocab_size": n["vocab"], "n_positions": 4096}
    share = rng.choice([0.1, 0.1, 0.0])
    if rng.random() < 0.5:
        found |= {"attn_pdrop": share, "resid_pdrop": share, "embd_pdrop": share}
    if rng.random() < 0.3:
        found["n_inner"] = n["inner"]
    return found


def _opt(rng: random.Random, kind: str, n: Mapping[str, int], tied: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"hidden_size": n["heads"] * n["width"], "ffn_dim": n["inner"]}
    found |= {"num_hidden_layers": n["layers"], "num_attention_heads": n["heads"], "vocab_size": n["vocab"]}
    found["max_position_embeddings"] = 4096
    if rng.random() < 0.5:
        found["dropout"] = rng.choice([0.0, 0.1])
    if rng.random() < 0.2:
        found |= {"word_embed_proj_dim": 512, "do_layer_norm_before": rng.random() < 0.5}
    if rng.random() < 0.3:
        found["tie_word_embeddings"] = False
    return found


def _gpt_neox(rng: random.Random, kind: str, n: Mapping[str, int], tied: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"hidden_size": n["heads"] * n["width"], "intermediate_size": n["inner"]}
    found |= {"num_hidden_layers": n["layers"], "num_attention_heads": n["heads"], "vocab_size": n["vocab"]}
    found |= {"max_position_embeddings": 4096, "use_parallel_residual": rng.random() < 0.7}
    found |= {"rotary_pct": rng.choice([0.25, 1.0, 0.5]), "tie_word_embeddings": tied and rng.random() < 0.3}
    if rng.random() < 0.4:
        found |= {"hidden_dropout": 0.1, "attention_dropout": rng.choice([0.0, 0.1])}
    return found


_MAKERS: Mapping[str, Callable[[random.Random, str, Mapping[str, int], bool], dict[str, Any]]] = {
    "gpt2": _gpt2,
    "opt": _opt,
    "gpt_neox": _gpt_neox,
}


def _spec(rng: random.Random, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    precision = PRECISIONS[rng.choice(["fp32", "fp32 + autocast", "bf16", "bf16 + autocast"])]
    eager = kind == "gemma2" or rng.random() < 0.15
    batch, length = rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 12, 16]), rng.choice(LENGTHS)
    if eager:
        batch, length = min(batch, 4), min(length, 1536)
    while batch * length > MOST_TOKENS:
        batch //= 2
    checkpoints = rng.random() < 0.5
    found: dict[str, Any] = {
        "model_config": config,
        "gpu_memory_gib": 1000,
        **precision,
        "method": "full",
        "optimizer": rng.choice(OPTIMIZERS),
        "micro_batch_size": batch,
        "seq_len": length,
        "gradient_accumulation_steps": rng.choice([1, 1, 1, 1, 1, 2, 3]),
        "gradient_checkpointing": checkpoints,
        "use_reentrant": checkpoints and rng.random() < 0.4,
        "attention": "eager" if eager else "sdpa",
        "padded_batches": rng.random() < 0.2,
    }
    return {**found, **(_adapters(rng, kind, precision["weights_dtype"]) if rng.random() < 0.35 else {})}


def _adapters(rng: random.Random, kind: str, weights: str) -> dict[str, Any]:
    out = "out_proj" if kind == "opt" else "o_proj"
    modules: str | list[str] = {
        "all-linear": "all-linear",
        "attention": FUSED.get(kind, ["q_proj", "k_proj", "v_proj", out]),
        "query and value": FUSED.get(kind, ["q_proj", "v_proj"]),
        "mlp": MLP.get(kind, ["gate_proj", "up_proj", "down_proj"]),
    }[rng.choice(["all-linear", "all-linear", "attention", "query and value", "mlp"])]
    found: dict[str, Any] = {"method": "lora", "lora_rank": rng.choice([1, 4, 8, 16, 64, 128]), "lora_targets": modules}
    found["lora_dropout"] = rng.choice([0.0, 0.0, 0.05])
    found["lora_dtype"] = rng.choice(["fp32", "fp32", "fp32", "bf16"]) if weights == "bf16" else "fp32"
    return {**found, **({"use_dora": True} if rng.random() < 0.15 else {})}
