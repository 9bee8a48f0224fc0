"""A run of which parts are frozen takes no more than the same run with all of it trained: verdicts rest on that.

Not so under ZeRO 1 and 2, where a rank has the gradients whole that touch its part: which these are changes with what
is trained.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lintfit.memory import estimate
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping

MODELS = ("meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-7B", "gpt2", "google/gemma-2-2b", "mistralai/Mixtral-8x7B-v0.1")
PATTERNS = ("{0}[:4]", "{0}[-2:]", "{0}", "*", "!{0}[3]", "!{0}[-1]", "*embed*", "*norm.weight", "!*lm_head*", "wte")
ENGINES: tuple[dict[str, Any], ...] = (
    {"gpus": 1},
    {"gpus": 4, "engine": "ddp"},
    {"gpus": 4, "zero_stage": 3},
    {"gpus": 4, "zero_stage": 3, "offload_optimizer": "cpu"},
    *({"gpus": 4, "engine": "fsdp", "fsdp": {"version": version, "strategy": "FULL_SHARD"}} for version in (1, 2)),
)


@settings(max_examples=100)
@given(
    st.sampled_from(MODELS),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3),
    st.sampled_from(ENGINES),
    st.sampled_from(({"weights_dtype": "bf16"}, {"mixed_precision": "bf16"}, {"weights_dtype": "fp32"})),
    st.fixed_dictionaries(
        {
            "gradient_checkpointing": st.booleans(),
            "use_reentrant": st.booleans(),
            "micro_batch_size": st.sampled_from((1, 8)),
            "gradient_accumulation_steps": st.sampled_from((1, 4)),
            "optimizer": st.sampled_from(("adamw_torch", "adamw_8bit", "sgd", "adafactor")),
        }
    ),
)
def test_frozen_takes_no_more(
    model: str, patterns: list[str], engine: dict[str, Any], dtype: dict[str, Any], how: dict[str, Any]
) -> None:
    run = {"model": model, "seq_len": 1024, "gpu": "A100-80GB", **engine, **dtype, **how}
    layers = "h" if model == "gpt2" else "layers"
    frozen = {**run, "frozen_modules": [pattern.format(layers) for pattern in patterns]}
    try:
        less = estimate(spec_from_mapping(frozen))
    except SpecError:
        return
    whole = estimate(spec_from_mapping(run))
    padding = 1.0001
    assert less.allocated_bytes <= whole.allocated_bytes * padding
    assert less.peak.high <= whole.peak.high * padding
    assert less.host.peak <= whole.host.peak * padding
