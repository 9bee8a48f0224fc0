"""``zero_optimization`` in the form of 2020, a bare boolean, read as DeepSpeed reads it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("zero", "refused"), [(False, True), (True, False), ({"stage": 0}, True)])
def test_a_value_of_certain_stages_beside_it(tmp_path: Path, zero: object, refused: bool) -> None:
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": zero,
        "bf16": {"enabled": True, "bf16_master_weights_and_grads": True},
    }
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps(config, indent=2))
    command = [sys.executable, "-m", "lintfit", "check", str(path), "--select", "LF009"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert printed.returncode in (0, 1), printed.stderr
    assert ("LF009" in printed.stdout) is refused
