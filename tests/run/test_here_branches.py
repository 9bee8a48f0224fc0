"""A DeepSpeed JSON that a launch script writes in several branches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.test_what_runs import ALWAYS, runs_of

SCRIPT = """\
KIND=%s
if [ "$KIND" = full ]; then
cat > ds.json <<EOF
{"zero_optimization": {"stage": 3, "overlap_comm": true}, "bf16": {"enabled": true}}
EOF
else
cat > ds.json <<EOF
{"zero_optimization": {"stage": %d}, "bf16": {"enabled": true}}
EOF
fi
torchrun --nproc_per_node 4 train.py --deepspeed ds.json --output_dir out --per_device_train_batch_size 1
"""


@pytest.mark.parametrize(
    ("kind", "other", "stage"),
    [("$1", 3, 3), ("$1", 2, None), ("full", 2, 3), ("lora", 2, 2)],
)
def test_what_all_branches_write_is_known(tmp_path: Path, kind: str, other: int, stage: int | None) -> None:
    (tmp_path / "train.py").write_text(ALWAYS)
    (tmp_path / "run.sh").write_text(SCRIPT % (kind, other))
    (run,) = runs_of(tmp_path, "run.sh")
    assert run["settings"]["engine"]["value"] == "deepspeed"
    assert run["settings"]["zero_stage"]["value"] == stage
