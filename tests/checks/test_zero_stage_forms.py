"""``zero_optimization`` in the form of 2020, a bare boolean, read as DeepSpeed reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import lintfit


@pytest.mark.parametrize(("zero", "refused"), [(False, True), (True, False), ({"stage": 0}, True)])
def test_a_value_of_certain_stages_beside_it(tmp_path: Path, zero: object, refused: bool) -> None:
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": zero,
        "bf16": {"enabled": True, "bf16_master_weights_and_grads": True},
    }
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps(config, indent=2))
    printed = lintfit("check", path, "--select", "LF009", cwd=tmp_path)
    assert printed.status in (0, 1), printed.err
    assert ("key-inactive-at-stage" in printed.out) is refused
