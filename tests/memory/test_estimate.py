"""The estimate against torch's own count of a training step, and against measured and reported runs.

The recorded totals are facts: bytes that torch counts for real transformers 5.23 training steps under fake CUDA
tensors (torch 2.13). The targets on the whole files hold where ``../shared/data`` is at hand.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared/data"


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
