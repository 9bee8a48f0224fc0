"""``lintfit estimate PATHS`` with flags of a spec: before and after, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
args = TrainingArguments("out", per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True)
Trainer(model, args, train_dataset=data).train()
"""
HARDWARE = ("--gpu", "A100-80GB", "--seq-len", "2048")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 4 train.py\n")
    (tmp_path / "lintfit.toml").write_text("seq-len = 2048\n")
    return tmp_path


def _asked(folder: Path, *flags: str) -> Any:
    outcome = lintfit("estimate", "run.sh", "--gpu", "A100-80GB", *flags, "--output-format", "json", cwd=folder)
    assert outcome.status == 0, outcome.err
    (run,) = outcome.json["runs"]
    return run


def test_before_and_after(folder: Path) -> None:
    plain, asked = _asked(folder), _asked(folder, "--zero", "3")
    assert "what_if" not in plain
    assert asked["what_if"]["changes"] == {"zero_stage": 3}
    assert asked["what_if"]["before"] == plain["estimate"]
    assert asked["what_if"]["verdict_before"] == plain["verdict"]
    was, now = plain["estimate"]["phases"]["load"], asked["estimate"]["phases"]["load"]
    assert now["parameters"] < was["parameters"]


def test_why_it_shrank_and_why_the_rest_did_not(folder: Path) -> None:
    effects = " | ".join(_asked(folder, "--zero", "3")["what_if"]["effects"])
    assert "ZeRO-3 shards parameters, gradients and optimizer states over 4 GPUs: " in effects
    assert "do not shrink: every GPU has those of its own micro-batch" in effects
    assert "nvidia-smi shows" in effects


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--zero", "2"), "parameters stay whole on every GPU"),
        (("--lora=16",), "the frozen weights stay in memory: 14."),
        (("--lora=16",), "backward still goes through every layer to reach the adapters"),
        (("--lora=16", "--zero", "3"), "adapters alone are trained (0.04"),
        (("--qlora=16",), "the frozen weights are stored in four bits: −"),
        (("--batch", "1"), "(8,192 → 2,048): −"),
        (("--batch", "1"), "are the same for any batch"),
        (("--offload-optimizer", "cpu"), "the optimizer goes to the host: −"),
        (("--gradient-checkpointing", "off"), "layers keep all that backward needs: activations"),
        (("--grad-accum", "8"), "accumulation changes how often the optimizer steps"),
    ],
)
def test_what_each_change_does(folder: Path, flags: tuple[str, ...], said: str) -> None:
    assert said in " | ".join(_asked(folder, *flags)["what_if"]["effects"])


def test_what_follows_from_a_change_is_there(folder: Path) -> None:
    outcome = lintfit("estimate", "run.sh", "--gpu", "A100-80GB", "--offload-param", "cpu", cwd=folder)
    assert "ZeRO-3, parameters offloaded" in outcome.out.replace("\n", " ")


def test_other_numbers_of_gpus_are_a_question(folder: Path) -> None:
    run = _asked(folder, "--gpus", "2", "--zero", "3")
    assert run["settings"]["gpus"]["value"] == 2
    assert run["what_if"]["before"] == _asked(folder)["estimate"]


def test_what_the_files_leave_open_is_no_question(folder: Path) -> None:
    (folder / "lintfit.toml").unlink()
    (folder / "run.sh").write_text("accelerate launch train.py\n")
    run = _asked(folder, "--gpus", "4", "--seq-len", "1024")
    assert "what_if" not in run and run["settings"]["gpus"]["value"] == 4


def test_the_report_has_both(folder: Path) -> None:
    out = lintfit("estimate", "run.sh", "--gpu", "A100-80GB", "--zero", "3", cwd=folder).out
    lines = out.splitlines()
    assert "  what if --zero-stage 3" in lines
    assert any(line.split()[:3] == ["GiB", "before", "after"] for line in lines)
    assert any(line.startswith("  backward") for line in lines) and "  why" in lines
    assert len(lines) <= 45


def test_a_contradiction_is_one_line(folder: Path) -> None:
    outcome = lintfit("estimate", "run.sh", "--engine", "ddp", "--zero", "3", cwd=folder)
    assert outcome.status == 2
    assert outcome.err == "lintfit: run.sh:1: --zero-stage: 3 needs engine 'deepspeed', the flags say 'ddp'\n"


def test_a_sweep_is_a_table(folder: Path) -> None:
    outcome = lintfit("estimate", "run.sh", "--gpu", "A100-80GB", "--sweep", "batch=1,2,seq-len=1k,2k", cwd=folder)
    assert outcome.status == 0
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["micro", "batch", "size", "1,024", "2,048"] in rows
    assert [row[0] for row in rows if row and row[0] in ("1", "2") and len(row) == 3] == ["1", "2"]


def test_a_sweep_of_pixels_says_how_many_tokens_they_are(folder: Path) -> None:
    flags = ("--model", "Qwen/Qwen2-VL-7B-Instruct", "--images", "1", "--sweep", "image-max-pixels=602112,12845056")
    outcome = lintfit("estimate", *flags, "--gpu", "A100-80GB", cwd=folder)
    assert "an image of 602,112 pixels has 768 tokens beside the text" in outcome.out


def test_a_sweep_in_json(folder: Path) -> None:
    flags = ("--sweep", "zero-stage=2,3,gpus=1,2,4", "--output-format", "json")
    (swept,) = lintfit("estimate", "run.sh", "--gpu", "A100-80GB", *flags, cwd=folder).json["sweeps"]
    assert swept["settings"] == ["zero_stage", "gpus"]
    peaks = {tuple(cell["values"].values()): cell["peak_bytes"]["likely"] for cell in swept["cells"]}
    assert len(peaks) == 6 and peaks[3, 4] < peaks[3, 2] < peaks[3, 1]


def test_what_cannot_be_is_said_below_the_table(folder: Path) -> None:
    outcome = lintfit("estimate", "run.sh", "--sweep", "quantization=none,4bit,method", cwd=folder)
    assert outcome.status == 0 and "cannot be trained with method 'full'" in outcome.out


def test_the_usual_ways_to_train(tmp_path: Path) -> None:
    outcome = lintfit("estimate", "--model", "Qwen/Qwen2.5-7B", "--gpu", "4090", cwd=tmp_path)
    lines = outcome.out.splitlines()
    assert lines[0] == "Qwen/Qwen2.5-7B (7.6 B) on NVIDIA GeForce RTX 4090: GiB on each GPU"
    rows = {line[:18].strip(): line[18:].split() for line in lines[6:] if ", " in line[:18]}
    assert set(rows) == {
        f"{m}, {e}" for m in ("full", "LoRA", "QLoRA") for e in ("plain", "ZeRO-2", "ZeRO-3", "offload")
    }
    assert all(len(row) == 4 for row in rows.values())
    assert all(figure.endswith("✗") for figure in rows["full, plain"])
    assert all(not figure.endswith("✗") for figure in rows["QLoRA, plain"])


def test_json_stays_one_estimate(tmp_path: Path) -> None:
    outcome = lintfit("estimate", "--model", "gpt2", "--gpu", "4090", "--output-format", "json", cwd=tmp_path)
    assert "peak_bytes" in outcome.json


def test_an_open_number_of_gpus_is_the_same_before_and_after(folder: Path) -> None:
    (folder / "lintfit.toml").unlink()
    (folder / "run.sh").write_text("accelerate launch train.py\n")
    run = _asked(folder, "--gpu", "A100-80GB", "--zero", "3")
    assert run["what_if"]["before"]["peak_bytes"]["likely"] > 0
    outcome = lintfit("estimate", "run.sh", "--gpu", "A100-80GB", "--zero", "3", cwd=folder)
    assert outcome.out.count("1 × A100-SXM4-80GB") == 2


def test_what_flags_say_of_an_open_batch_holds_for_both(folder: Path) -> None:
    """A length that nobody states is no question beside another one."""
    stated = _asked(folder, "--zero", "3", "--seq-len", "4096")["what_if"]
    assert stated["before"] == _asked(folder, "--zero", "3")["what_if"]["before"], "lintfit.toml states it"
    (folder / "lintfit.toml").unlink()
    asked = _asked(folder, "--zero", "3", "--seq-len", "4096")["what_if"]
    alone = _asked(folder, "--zero", "3", "--seq-len", "512")["what_if"]
    assert asked["before"]["peak_bytes"]["likely"] > alone["before"]["peak_bytes"]["likely"]
