"""The estimate against torch's own count of a training step, and against measured and reported runs.

The recorded totals are facts: bytes that torch counts for real transformers 5.23 training steps under fake CUDA
tensors (torch 2.13). The targets on the whole files hold where ``../shared/data`` is at hand.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared/data"

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "llama2-7b": {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000},
    "llama3-8b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_key_value_heads": 8,
        "vocab_size": 128256,
    },
    "mistral-7b": {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_key_value_heads": 8,
        "vocab_size": 32000, "sliding_window": 4096,
    },
    "qwen2.5-0.5b": {
        "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    },
    "gemma2-9b": {
        "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
        "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 256000, "head_dim": 256,
    },
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
    "opt-6.7b": {
        "model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "vocab_size": 50272,
        "max_position_embeddings": 2048, "word_embed_proj_dim": 4096,
    },
    "phi3-mini": {
        "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32064,
        "sliding_window": 2047,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_key_value_heads": 8,
        "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    },
}  # fmt: skip

RECORDED: list[tuple[str, int, dict[str, Any]]] = [
    (
        "llama2-7b",
        57511695360,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 8,
            "seq_len": 2048,
            "gradient_checkpointing": True,
            "attention": "sdpa",
            "loss": "full",
            "use_reentrant": True,
        },
    ),
    (
        "llama3-8b",
        128492724224,
        {
            "weights_dtype": "fp32",
            "mixed_precision": "bf16",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 1,
            "seq_len": 512,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "loss": "full",
        },
    ),
    (
        "llama3-8b",
        128501116928,
        {
            "weights_dtype": "fp32",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 1,
            "seq_len": 1024,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "loss": "full",
        },
    ),
    (
        "llama3-8b",
        82824130560,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 4,
            "seq_len": 1024,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "padded_batches": True,
            "loss": "full",
        },
    ),
    (
        "mistral-7b",
        59908658176,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 1,
            "seq_len": 8192,
            "gradient_checkpointing": True,
            "attention": "sdpa",
            "loss": "full",
            "use_reentrant": False,
        },
    ),
    (
        "qwen2.5-0.5b",
        18139325952,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 1,
            "seq_len": 2048,
            "gradient_checkpointing": False,
            "attention": "eager",
            "loss": "full",
        },
    ),
    (
        "qwen2.5-7b",
        69339996160,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 2,
            "seq_len": 2048,
            "gradient_accumulation_steps": 2,
            "gradient_checkpointing": True,
            "attention": "sdpa",
            "loss": "full",
            "use_reentrant": False,
        },
    ),
    (
        "qwen2.5-7b",
        76155499520,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch",
            "micro_batch_size": 1,
            "seq_len": 512,
            "gradient_checkpointing": True,
            "attention": "sdpa",
            "loss": "full",
            "use_reentrant": False,
        },
    ),
    (
        "gemma2-9b",
        160031019008,
        {
            "weights_dtype": "fp32",
            "mixed_precision": "bf16",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 4,
            "seq_len": 2048,
            "gradient_checkpointing": True,
            "attention": "eager",
            "loss": "full",
            "use_reentrant": False,
        },
    ),
    (
        "gpt2",
        5869771776,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "no",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 8,
            "seq_len": 1024,
            "gradient_checkpointing": True,
            "attention": "sdpa",
            "loss": "full",
            "use_reentrant": True,
        },
    ),
    (
        "opt-6.7b",
        107393076736,
        {
            "weights_dtype": "fp32",
            "mixed_precision": "bf16",
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 1,
            "seq_len": 2048,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "loss": "full",
        },
    ),
    (
        "phi3-mini",
        16560742912,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "bf16",
            "method": "lora",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 2,
            "seq_len": 1024,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "loss": "full",
            "lora_rank": 8,
            "lora_targets": ["qkv_proj", "o_proj"],
            "lora_dtype": "fp32",
        },
    ),
    (
        "mixtral-8x7b",
        112293833216,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "bf16",
            "method": "lora",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 2,
            "seq_len": 1024,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "loss": "full",
            "lora_rank": 8,
            "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj"],
            "lora_dtype": "fp32",
        },
    ),
    (
        "llama3-8b",
        56503970304,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "bf16",
            "method": "lora",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 2,
            "seq_len": 2048,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            "loss": "full",
            "lora_rank": 16,
            "lora_targets": "all-linear",
            "lora_dtype": "fp32",
            "lora_dropout": 0.05,
        },
    ),
    (
        "llama2-7b",
        18648337920,
        {
            "weights_dtype": "bf16",
            "mixed_precision": "bf16",
            "method": "lora",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": 4,
            "seq_len": 2048,
            "gradient_checkpointing": True,
            "attention": "sdpa",
            "loss": "chunked",
            "use_reentrant": False,
            "lora_rank": 16,
            "lora_targets": "all-linear",
            "lora_dtype": "fp32",
        },
    ),
]


def config(name: str) -> dict[str, Any]:
    """A model's config with the defaults of a 7B Llama."""
    given = dict(CONFIGS[name])
    if "n_embd" not in given:
        for key in ("num_hidden_layers", "num_attention_heads"):
            given.setdefault(key, 32)
    return given


def guess(name: str, **settings: Any) -> Estimate:
    return estimate(spec_from_mapping({"model_config": config(name), "engine": "single", **settings}))


@pytest.mark.parametrize(("name", "expected", "settings"), RECORDED, ids=range(len(RECORDED)))
def test_recorded_totals(name: str, expected: int, settings: dict[str, Any]) -> None:
    assert guess(name, **settings).allocated_bytes == pytest.approx(expected, rel=2e-5)


def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_oracle", ROOT / "bench/oracle.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not here")


@needs_data
def test_fake_tensor_cases_reach_the_target() -> None:
    errors = sorted(abs(error) for error, _ in bench().fake_tensors())
    assert errors[len(errors) // 2] <= 1e-3
    assert errors[int(0.95 * len(errors))] <= 1e-2
    assert errors[-1] <= 3e-2


@needs_data
def test_components_above_a_gibibyte_are_within_two_per_cent() -> None:
    errors = [abs(error) for error, _ in bench().components()]
    assert len(errors) > 300
    assert max(errors) <= 2e-2


@needs_data
def test_no_run_that_died_is_said_to_fit() -> None:
    counts, wrong = bench().outcomes()
    assert counts[("oom", "fits")] == 0, wrong
    ran = sum(count for (had, _), count in counts.items() if had == "fits")
    assert counts[("fits", "does-not-fit")] <= 0.1 * ran, wrong


@needs_data
def test_exactly_allocated_runs_with_transformers_own_loss() -> None:
    """Rows whose loss was a fused kernel are left out: their spec is the same as of those without."""
    errors = sorted(abs(error) for error, _, group, _ in bench().published() if group == "fms")
    assert errors[len(errors) // 2] <= 0.02
    assert errors[int(0.75 * len(errors))] <= 0.05


def test_a_thousand_estimates_need_no_torch_and_no_numpy() -> None:
    code = (
        "import sys, lintfit.memory, lintfit.memory.reading.parse\n"
        "spec = lintfit.memory.reading.parse.spec_from_mapping({'model_config': "
        "{'model_type': 'llama', 'hidden_size': 1024, 'intermediate_size': 2816, 'num_hidden_layers': 8, "
        "'num_attention_heads': 16, 'vocab_size': 32000}})\n"
        "lintfit.memory.estimate(spec)\n"
        "heavy = {'torch', 'numpy', 'libcst', 'rich', 'ruamel', 'jsonschema', 'tree_sitter'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"
