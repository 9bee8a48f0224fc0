"""A plan that does not come out as claimed is not offered, and is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Applicability
from lintfit.fit import planner
from lintfit.options.model import Options
from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
args = TrainingArguments(output_dir="out", per_device_train_batch_size=8, bf16=True, optim="adafactor")
Trainer(model=model, args=args).train()
"""


def _options() -> Options:
    stated: dict[str, Any] = {"gpu": "A100-SXM4-80GB", "gpus": 1, "seq_len": 4096}
    return Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))


def test_what_cannot_be_carried_out_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    before = check([tmp_path], _options())
    assert before.runs[0].plan is not None
    assert before.runs[0].plan.applicability is not Applicability.DISPLAY
    assert before.refused_fixes == 0
    monkeypatch.setattr(planner, "apply_changes", lambda *_: "not today")
    after = check([tmp_path], _options())
    assert after.runs[0].plan is None or after.runs[0].plan.applicability is Applicability.DISPLAY
    assert after.refused_fixes == after.runs[0].refused_plans > 0


MAPPED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16"{placed})
Trainer(model=model, args=args).train()
"""
LAUNCH = """\
torchrun --nproc_per_node 8 train.py --output_dir out --bf16 True --gradient_checkpointing True \\
    --per_device_train_batch_size 1 --deepspeed ds.json
"""


@pytest.mark.parametrize("placed", ["", ', device_map={"": args.device.index}', ", **placed"])
def test_a_plan_brings_no_error_that_was_not_there(tmp_path: Path, placed: str) -> None:
    script = MAPPED.format(placed=placed)
    if "**" in placed:
        script = script.replace("model =", 'placed = {"device_map": {"": args.device.index}}\nmodel =')
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "run.sh").write_text(LAUNCH)
    (tmp_path / "ds.json").write_text('{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}')
    flags = ("--gpu", "3090", "--seq-len", "1024", "--host-memory", "512", "--output-format", "json")
    report = lintfit("check", "run.sh", *flags, cwd=tmp_path).json
    (run,) = report["runs"]
    assert run["plan"]["steps"][0]["to"] == 3
    by_hand = run["plan"].get("by_hand", "")
    assert by_hand.startswith("once written, device_map under ZeRO-3: ") is ("**" in placed)
    (message,) = (each["fix"]["message"] for each in report["findings"] if each["rule"] == "does-not-fit")
    assert ('delete device_map={"": args.device.index}' in message) is placed.startswith(", device_map")
