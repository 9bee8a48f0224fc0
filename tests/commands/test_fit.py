"""``lintfit fit`` as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, lintfit

GIB = 2**30
SPEC = {
    "model": "meta-llama/Llama-3.1-8B",
    "gpu": "A100-SXM4-80GB",
    "gpus": 4,
    "host_memory_gib": 512,
    "engine": "deepspeed",
    "zero_stage": 2,
    "mixed_precision": "bf16",
    "micro_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "seq_len": 2048,
}
LOOP = """\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

loader = DataLoader(torch.load("tokens.pt"), batch_size=1)
accelerator = Accelerator(mixed_precision="bf16")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
model, optimizer = accelerator.prepare(model, optimizer)
for batch in loader:
    accelerator.backward(model(**batch).loss)
    optimizer.step()
"""


@pytest.fixture
def medical(tmp_path: Path) -> Path:
    return shutil.copytree(ROOT / "examples" / "medicalgpt", tmp_path / "medicalgpt")


def _spec(folder: Path, **changes: Any) -> Path:
    file = folder / "spec.json"
    file.write_text(json.dumps({**SPEC, **changes}))
    return file


def test_plans_are_listed_best_first(medical: Path) -> None:
    outcome = lintfit("fit", ".", cwd=medical)
    assert outcome.status == 0, outcome.err
    assert "no forced float32 + ZeRO-3\n" in outcome.out
    assert "2. create ds_zero3.json (ZeRO-3, reduce_bucket_size auto" in outcome.out
    assert "3. run_sft.sh:20: add --deepspeed ds_zero3.json\n" in outcome.out
    assert "other combinations do not fit" in outcome.out
    assert "QLoRA" in outcome.out


def test_json_has_what_the_table_has(medical: Path) -> None:
    outcome = lintfit("fit", ".", "--output-format", "json", cwd=medical)
    (run,) = outcome.json["runs"]
    assert not run["fits"]
    assert [plan["number"] for plan in run["plans"]] == list(range(1, len(run["plans"]) + 1))
    first = run["plans"][0]
    assert first["verdict"] == "fits"
    assert first["estimate"]["peak_bytes"]["high"] <= run["limit_bytes"]
    assert first["files"] == ["run_sft.sh", "supervised_finetuning.py", "ds_zero3.json"]
    assert first["effects"] == ["DeepSpeed trains in fp16 with fp32 master weights"]
    assert first["proof"]
    assert all(not plan["proof"] for plan in run["plans"][1:])


def test_a_diff_writes_nothing_and_apply_writes_what_it_shows(medical: Path) -> None:
    before = {path.name: path.read_bytes() for path in medical.iterdir()}
    name = "no forced float32 + ZeRO-3 with optimizer and parameters offloaded"
    listed = lintfit("fit", ".", "--output-format", "json", cwd=medical).json["runs"][0]["plans"]
    number = next(str(plan["number"]) for plan in listed if plan["name"] == name)
    shown = lintfit("fit", ".", "--diff", number, cwd=medical)
    assert "+++ ds_zero3_offload.json" in shown.out
    assert {path.name: path.read_bytes() for path in medical.iterdir()} == before
    written = lintfit("fit", ".", "--apply", number, cwd=medical)
    assert written.out.startswith(f"Wrote plan {number} ({name}) to ")
    checked = lintfit("check", ".", "--output-format", "json", cwd=medical).json
    assert [run["verdict"] for run in checked["runs"]] == ["fits"]
    assert "it fits as it is" in lintfit("fit", ".", cwd=medical).out


def test_what_cannot_be_written_is_refused(medical: Path) -> None:
    script = medical / "supervised_finetuning.py"
    script.write_text(
        script.read_text().replace("    data = load_dataset(", '    model.to("cuda")\n    data = load_dataset(')
    )
    listed = lintfit("fit", ".", "--output-format", "json", cwd=medical).json["runs"][0]["plans"]
    number, reason = next((plan["number"], plan["by_hand"]) for plan in listed if plan["name"] == "QLoRA")
    assert reason and all(("by_hand" in plan) is (plan["applicability"] == "display") for plan in listed)
    outcome = lintfit("fit", ".", "--apply", str(number), cwd=medical)
    assert outcome.status == 2
    assert outcome.err == f"lintfit: plan {number} (QLoRA) is to be carried out by hand: {reason}\n"
    assert lintfit("fit", ".", "--apply", "99", cwd=medical).err.startswith("lintfit: no plan 99: there are ")


def test_a_margin_stays_free(tmp_path: Path) -> None:
    for margin, size in (("10%", 7.9), ("20GiB", 20)):
        outcome = lintfit("fit", "--spec", _spec(tmp_path), "--margin", margin, "--output-format", "json", cwd=tmp_path)
        (run,) = outcome.json["runs"]
        free = run["estimate"]["capacity_bytes"] - run["plans"][0]["estimate"]["peak_bytes"]["high"]
        assert free >= size * GIB


@pytest.mark.parametrize("flags", [("--maximize", "micro-batch"), ("--maximize", "seq-len"), ("--minimize", "gpus")])
def test_both_sides_of_the_edge_are_told(flags: tuple[str, str], tmp_path: Path) -> None:
    spec = _spec(tmp_path, zero_stage=3, gradient_checkpointing=True, host_memory_gib=64)
    outcome = lintfit("fit", "--spec", spec, *flags, "--output-format", "json", cwd=tmp_path)
    assert outcome.status == 0
    first = outcome.json["runs"][0]["answers"][0]
    limit = outcome.json["runs"][0]["limit_bytes"]
    assert first["best"]["estimate"]["peak_bytes"]["high"] <= limit
    assert first["beyond"]["estimate"]["peak_bytes"]["high"] > limit
    text = lintfit("fit", "--spec", spec, *flags, cwd=tmp_path).out
    assert first["question"] in " ".join(text.split())
    assert "too much" in text


def test_check_lists_the_kinds_where_it_is_asked_to(medical: Path) -> None:
    outcome = lintfit("check", ".", "--show-plans", cwd=medical)
    assert "all kinds that fit, best first" in outcome.out
    listed = lintfit("check", ".", "--show-plans", "--output-format", "json", cwd=medical).json["runs"][0]
    assert len(listed["alternatives"]) > 3
    assert listed["alternatives"][0]["name"] == listed["plan"]["name"]
    assert "alternatives" not in lintfit("check", ".", "--output-format", "json", cwd=medical).json["runs"][0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--maximize", "seq-len", "--minimize", "gpus"), "--maximize and --minimize are two questions"),
        (("--diff", "1", "--apply", "1"), "--diff shows a plan and --apply writes one"),
        (("--margin", "-3"), "--margin -3: expected a share such as"),
        (("--margin", "100%"), '--margin 100%: expected a share from "0%" to below "100%"'),
        (("--spec", "spec.json", "--gpu", "T4"), "--spec says everything itself; --gpu cannot stand next to it"),
        (("nowhere",), "nowhere: no such file"),
    ],
)
def test_bad_usage_is_one_line(arguments: tuple[str, ...], error: str, tmp_path: Path) -> None:
    _spec(tmp_path)
    outcome = lintfit("fit", *arguments, cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.err.startswith(f"lintfit: {error}")
    assert outcome.err.count("\n") == 1


def test_a_run_without_a_card_says_what_to_add(tmp_path: Path) -> None:
    spec = {key: value for key, value in SPEC.items() if key != "gpu"}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    outcome = lintfit("fit", "--spec", "spec.json", cwd=tmp_path)
    assert outcome.status == 1
    assert "no GPU named: add the GPU (gpu or gpu_memory_gib in the spec)" in outcome.out


def test_a_script_whose_flags_nobody_sees_is_not_said_to_fit(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")\n'
        "Trainer(model=model, args=args).train()\n"
    )
    outcome = lintfit("fit", ".", "--gpu", "A100-SXM4-80GB", "--seq-len", "512", cwd=tmp_path)
    assert outcome.status == 1
    assert "it fits" not in outcome.out
    assert "name the launch script as well" in " ".join(outcome.out.split())


def test_without_a_length_there_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\n"
        'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")\n'
        'args = TrainingArguments(output_dir="out", bf16=True, optim="adafactor", per_device_train_batch_size=4)\n'
        "Trainer(model=model, args=args).train()\n"
    )
    outcome = lintfit("fit", ".", "--gpu", "A100-SXM4-40GB", "--gpus", "1", cwd=tmp_path)
    assert "nobody says how long the sequences are" in " ".join(outcome.out.split())
    assert "plan for" in lintfit("fit", ".", "--gpu", "A100-SXM4-40GB", "--seq-len", "2048", cwd=tmp_path).out


def test_smaller_cards_are_held_against_their_own_memory(tmp_path: Path) -> None:
    spec = _spec(tmp_path, zero_stage=3, gradient_checkpointing=True, host_memory_gib=512)
    answers = lintfit("fit", "--spec", spec, "--minimize", "gpus", "--output-format", "json", cwd=tmp_path).json
    smallest = answers["runs"][0]["answers"][-1]["best"]["estimate"]
    assert smallest["capacity_bytes"] < answers["runs"][0]["estimate"]["capacity_bytes"]
    text = " ".join(lintfit("fit", "--spec", spec, "--minimize", "gpus", cwd=tmp_path).out.split())
    high, capacity = smallest["peak_bytes"]["high"] / GIB, smallest["capacity_bytes"] / GIB
    assert f"({high:.1f} of {capacity:.1f} GiB to plan for" in text


def test_changes_of_an_answer_are_settings(tmp_path: Path) -> None:
    """Where a new DeepSpeed would be stated is no setting that somebody could look up."""
    (tmp_path / "run.sh").write_text("accelerate launch --multi_gpu --num_processes 8 train.py\n")
    (tmp_path / "train.py").write_text(LOOP)
    flags = ("--minimize", "sharding", "--gpu", "A100", "--seq-len", "1024", "--output-format", "json")
    (run,) = lintfit("fit", "run.sh", *flags, cwd=tmp_path).json["runs"]
    (answer,) = run["answers"]
    assert answer["best"]["changes"] == {
        "engine": "deepspeed",
        "mixed_precision": "bf16",
        "offload_optimizer": "none",
        "offload_param": "none",
        "zero_stage": 2,
    }
