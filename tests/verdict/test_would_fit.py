"""Which of the usual GPUs would do, where nobody names one: each answer is that of a check on that GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog.gpus import gpus
from lintfit.verdict.would_fit import USUAL
from tests.support import lintfit

SCRIPT = """\
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("meta-llama/Meta-Llama-3-8B", torch_dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1)
Trainer(model=model, args=args, train_dataset=data).train()
"""
CHECKPOINTING = [{"setting": "gradient_checkpointing", "to": True}]


def run(folder: Path, script: str, *flags: str) -> Any:
    (folder / "train.py").write_text(script)
    command = ("check", "train.py", "--seq-len", "2048", "--output-format", "json", *flags)
    return lintfit(*command, cwd=folder).json["runs"][0]


def test_the_usual_gpus_are_known_the_largest_first() -> None:
    sizes = [gpus()[name].vendor_gb for name in USUAL]
    assert sizes == sorted(sizes, reverse=True)


def test_each_answer_is_that_of_a_check(tmp_path: Path) -> None:
    answers = run(tmp_path, SCRIPT)["would_fit"]
    assert [answer["fits"] for answer in answers].count(True) >= 3
    assert [answer["with"] for answer in answers][:2] == [None, None]
    assert CHECKPOINTING in [answer["with"] for answer in answers]
    for answer in answers:
        script = SCRIPT
        if answer["with"] == CHECKPOINTING:
            assert run(tmp_path, SCRIPT, "--gpu", answer["gpu"], "--gpus", "1")["verdict"] != "fits"
            script = SCRIPT.replace("size=1", "size=1, gradient_checkpointing=True")
        verdict = run(tmp_path, script, "--gpu", answer["gpu"], "--gpus", str(answer["gpus"]))["verdict"]
        assert (verdict == "fits") is answer["fits"], answer


def test_it_ends_where_nothing_does(tmp_path: Path) -> None:
    full = SCRIPT.replace("model = get_peft_model", "unused = get_peft_model")
    assert run(tmp_path, full.replace("3-8B", "3-70B"))["would_fit"] == [
        {"gpu": "NVIDIA H200", "gpu_memory_gib": 139.7, "gpus": 1, "with": None, "fits": False}
    ]
    shown = lintfit("check", "train.py", "--seq-len", "2048", cwd=tmp_path).out
    assert "\n  fits on no usual GPU (up to 141 GB)\n" in shown


def test_the_fewest_gpus_where_their_number_is_open(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}')
    script = (
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1, '
        'gradient_checkpointing=True, deepspeed="ds.json")\n'
        'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "run.sh").write_text("deepspeed train.py\n")
    command = ("check", "run.sh", "--seq-len", "1024", "--output-format", "json")
    answers = lintfit(*command, cwd=tmp_path).json["runs"][0]["would_fit"]
    counts = [answer["gpus"] for answer in answers if answer["fits"]]
    assert counts == sorted(counts) and counts[-1] > counts[0]
    for answer in answers:
        if answer["fits"] and answer["gpus"] > 1:
            flags = ("--gpu", answer["gpu"], "--gpus")
            for count, fits in ((answer["gpus"], True), (answer["gpus"] // 2, False)):
                found = lintfit(*command, *flags, str(count), cwd=tmp_path).json["runs"][0]["verdict"]
                assert (found == "fits") is fits, (answer, count)


@pytest.mark.parametrize(
    ("script", "flags"),
    [
        (SCRIPT, ("--gpu", "A100-80")),
        (SCRIPT.replace('"meta-llama/Meta-Llama-3-8B"', "pick()"), ()),
        (SCRIPT.replace("size=1", "size=int(open('n').read())"), ()),
    ],
)
def test_where_a_gpu_is_known_or_more_is_missing_there_is_nothing(
    tmp_path: Path, script: str, flags: tuple[str, ...]
) -> None:
    assert "would_fit" not in run(tmp_path, script, *flags)


def test_what_is_open_on_the_largest_gpu_too_is_a_reason(tmp_path: Path) -> None:
    """Images decide, whatever the GPU: nothing would fit, and the run says why."""
    script = (
        "from transformers import AutoModelForImageTextToText, Trainer, TrainingArguments\n"
        'args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=4)\n'
        'model = AutoModelForImageTextToText.from_pretrained("Qwen/Qwen2.5-VL-3B-Instruct", dtype="bfloat16")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    found = run(tmp_path, script)
    assert "would_fit" not in found
    gpu, *others = found["unknown"]
    assert gpu.startswith("the GPU (")
    assert others == run(tmp_path, script, "--gpu", "H200", "--gpus", "1")["unknown"] != []
