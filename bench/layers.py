"""Every family where its layers decide, for ``bench.combinations --layers``: a catalogue model of each at its real
width, as few layers as have one of each kind, 1000 words, and many tokens.

A vocabulary of the usual size hides what layers get wrong behind the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.fake_cases import GC, PRECISIONS, REENTRANT
from bench.neighbours import LEFT_OUT, OWN_KERNELS, Models, sees
from lintfit.catalog.attention import has_sdpa
from lintfit.catalog.models import code_of
from lintfit.memory.versions import NEWEST_TRANSFORMERS

WORDS = 1000

PLAIN: dict[str, Any] = {"gradient_checkpointing": False, "use_reentrant": False, "attention": "sdpa"}
LORA = {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear", "lora_dropout": 0.0, "lora_dtype": "fp32"}
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bf16", PLAIN),
    ("fp32 + autocast", PLAIN),
    ("bf16", {**PLAIN, "attention": "eager"}),
    ("bf16", {**PLAIN, **GC}),
    ("bf16 + autocast", {**PLAIN, **LORA}),
    ("fp32", PLAIN),
    ("bf16", {**PLAIN, **REENTRANT}),
    ("bf16 + autocast", {**PLAIN, **LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dropout": 0.05}),
    ("bf16", {**PLAIN, "padded_batches": True}),
    ("fp32 + autocast", {**PLAIN, **LORA, **GC, "micro_batch_size": 3, "seq_len": 999}),
)
"""Precision, and what else a spec says."""

DEPTH = {"cohere2": 4, "exaone4": 4, "gemma3_text": 6, "lfm2": 3, "olmo3": 4, "afmoe": 4}
"""Layers of a model type that has other kinds of them later than in its second."""


def draw(seed: int, models: Models, small: Any, targets: Any) -> Iterator[dict[str, Any]]:
    """Two cases of every family: their names and lintfit's specs of them; five seeds have all variants.

    ``small`` and ``targets``: see :mod:`.combinations`.
    """
    kinds = [kind for kind, found in models.items() if kind not in LEFT_OUT | OWN_KERNELS and not sees(found)]
    for index, kind in enumerate(kinds):
        for variant in ((index + seed) % len(VARIANTS), (index + seed + len(VARIANTS) // 2) % len(VARIANTS)):
            spec = _spec(kind, small(few(models[kind][0][1]), DEPTH.get(kind, 2), WORDS), *VARIANTS[variant])
            if isinstance(spec.get("lora_targets"), list):
                spec["lora_targets"] = targets(kind, "qv")
            yield {"name": f"layers {variant}, {kind}", "spec": spec}


def few(config: dict[str, Any]) -> dict[str, Any]:
    """The config with one layer first of each kind that it names."""
    found = dict(config)
    if isinstance(found.get("layer_types"), list):
        found["layer_types"] = list(dict.fromkeys(found["layer_types"])) * 2
    if "hybrid_override_pattern" in found:
        found["hybrid_override_pattern"] = "".join(dict.fromkeys(found["hybrid_override_pattern"]))
    if found.get("attention_types"):
        found["attention_types"] = [[kinds, 1] for kinds, _ in found["attention_types"]]
    if found.get("attn_layer_period"):
        found |= {"attn_layer_period": 2, "attn_layer_offset": 1}
    for key in ("first_k_dense_replace", "num_dense_layers"):
        if found.get(key):
            found[key] = 1
    return found


def _spec(kind: str, config: dict[str, Any], precision: str, more: dict[str, Any]) -> dict[str, Any]:
    found = {
        "model_config": config,
        "gpu_memory_gib": 1000,
        **PRECISIONS[precision],
        "method": "full",
        "optimizer": "sgd",
        "micro_batch_size": 8,
        "seq_len": 1024,
        **more,
    }
    if not has_sdpa(code_of(kind), NEWEST_TRANSFORMERS):
        found["attention"] = "eager"
    return found
