"""lintfit against a recording of bench/ranks/zero.py: per case, phase and kind, the largest rank's bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.recordings import Row, kinds_table
from lintfit.catalog.models import from_config
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.result import Components
from lintfit.memory.spec import Dtype, Spec

LORA_TARGETS = ["q_proj", "v_proj"]


def spec_of(model: Mapping[str, Any], case: Mapping[str, Any]) -> Spec:
    """The recorded case as lintfit's spec."""
    zero = case["config"]["zero_optimization"]
    dtype: Dtype = case["precision"]
    return Spec(
        facts=from_config(model),
        gpus=case["ranks"],
        engine="deepspeed",
        zero_stage=zero["stage"],
        offload_optimizer=zero.get("offload_optimizer", {}).get("device", "none"),
        offload_param=zero.get("offload_param", {}).get("device", "none"),
        deepspeed_config=case["config"],
        weights_dtype=dtype,
        mixed_precision="bf16" if dtype == "bf16" else "no",
        gradient_accumulation_steps=case["config"]["gradient_accumulation_steps"],
        versions={"deepspeed": "0.19.8"},
        method="lora" if "lora_rank" in case else "full",
        lora_rank=case.get("lora_rank", 8),
        lora_targets=tuple(LORA_TARGETS),
    )


def name(case: Mapping[str, Any]) -> str:
    """A case in one line."""
    config, zero = case["config"], case["config"]["zero_optimization"]
    parts = [f"stage {zero['stage']}", f"{case['ranks']} ranks", case["precision"]]
    parts += [f"{key} {zero[key]['device']}" for key in ("offload_optimizer", "offload_param") if key in zero]
    if config["gradient_accumulation_steps"] > 1:
        parts.append(f"accumulation {config['gradient_accumulation_steps']}")
    if "data_types" in config:
        parts.append(f"gradients accumulate in {config['data_types']['grad_accum_dtype']}")
    if config["bf16"].get("bf16_master_weights_and_grads"):
        parts.append("bf16 masters")
    if "zero_hpz_partition_size" in zero:
        parts.append(f"hpZ over {zero['zero_hpz_partition_size']}")
    if "lora_rank" in case:
        parts.append(f"LoRA rank {case['lora_rank']}")
    return ", ".join(parts)


def rows(recording: Mapping[str, Any]) -> Iterator[Row]:
    """Every figure of a recording beside lintfit's, the largest rank's of each kind.

    Without offload, kind by kind. Under offload the one CPU stands for GPU and host, so that the sum of all is
    compared with the rank's GPU states and its share of the host's before page-locking rounds it.
    """
    for case in recording["cases"]:
        spec = spec_of(recording["model"], case)
        held = states(spec)
        offloads = spec.offload_optimizer != "none"
        second = "zero_hpz_partition_size" in case["config"]["zero_optimization"]
        for phase in case["phases"][0]:
            if phase == "step" and second:
                continue  # it drops the second shard, which the next forward or save makes again
            ranks = [rank[phase] for rank in case["phases"]]
            expected = _lasting(held, phase)
            if offloads and phase != "initialize":
                recorded = max(sum(rank.values()) for rank in ranks)
                yield name(case), phase, "all", recorded, sum(expected.values()) + held.rank_host.bytes
            elif not offloads:
                yield from _kinds(name(case), phase, ranks, expected, _lazy(spec))


def _kinds(
    case: str, phase: str, ranks: Sequence[Mapping[str, int]], expected: Components, lazy: bool
) -> Iterator[Row]:
    for kind, parts in KINDS.items():
        if phase == "initialize" and kind == "optimizer_states" and lazy:
            continue
        recorded = max(sum(rank.get(part, 0) for part in parts) for rank in ranks)
        if recorded or expected.get(kind):
            yield case, phase, kind, recorded, expected.get(kind, 0)


def _lazy(spec: Spec) -> bool:
    """Whether the states come with the first step: all but stage 0's half-precision wrapper, which steps at once."""
    return spec.zero_stage > 0 or spec.mixed_precision == "no"


KINDS: Mapping[str, tuple[str, ...]] = {
    "parameters": ("parameters",),
    "master_weights": ("master_weights",),
    "optimizer_states": ("optimizer_states",),
    "gradients": ("gradients", "fp32_gradients"),
    "communication_buffers": ("buckets", "second_shard"),
}


def _lasting(held: States, phase: str) -> Components:
    """What lasts beyond a phase; a recording sees nothing that comes and goes inside it."""
    parts = held.reduced if phase == "backward" else held.save
    return {kind: size for kind, size in parts.items() if kind != "temporaries"}


def table(recording: Mapping[str, Any]) -> str:
    """A Markdown table of all rows with the difference in per cent."""
    return kinds_table(rows(recording), "DeepSpeed")
