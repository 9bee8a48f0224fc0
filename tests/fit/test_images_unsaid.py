"""What fits only without images is not written where nobody says whether a sample has any."""

from __future__ import annotations

from pathlib import Path

from tests.support import lintfit

RECIPE = """\
model_name_or_path: Qwen/Qwen2-VL-7B-Instruct
dataset_name: trl-lib/ultrafeedback_binarized
output_dir: out
learning_rate: 1.0e-5
bf16: true
torch_dtype: bfloat16
use_peft: true
per_device_train_batch_size: 8
gradient_checkpointing: true
max_length: 2048
use_liger_kernel: true
beta: 0.1
loss_type: sigmoid
max_prompt_length: 512
"""
COMMAND = ("check", "dpo.yaml", "--gpu", "rtx-3090", "--gpus", "1", "--versions", "trl=0.19.0")


def test_it_is_shown_with_what_has_to_be_said(tmp_path: Path) -> None:
    (tmp_path / "dpo.yaml").write_text(RECIPE)
    (run,) = lintfit(*COMMAND, "--output-format", "json", cwd=tmp_path).json["runs"]
    assert run["plan"]["applicability"] == "display" and "--images" in run["plan"]["by_hand"]
    (run,) = lintfit(*COMMAND, "--images", "0", "--output-format", "json", cwd=tmp_path).json["runs"]
    assert run["plan"] is None or run["plan"]["applicability"] != "display"
