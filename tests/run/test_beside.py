"""A config that lies beside the only script that takes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

LOOP = """\
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(data, batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    loss = model(**batch).loss
    accelerator.backward(loss)
    optimizer.step()
"""
PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", dtype="bfloat16")
Trainer(model=model, args=args).train()
"""
FIXED = PARSED.replace(
    "HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()", '[TrainingArguments("o")]'
)
YAML = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\nnum_processes: 4\n"
JSON = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}\n'


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def run_of(folder: Path, *names: str) -> dict[str, Any]:
    flags = ("--gpu", "RTX 4090", "--gpus", "4", "--seq-len", "512", "--output-format", "json")
    runs: list[dict[str, Any]] = lintfit("check", *(names or (".",)), *flags, cwd=folder).json["runs"]
    return next(run for run in runs if run["id"].endswith("train.py"))


@pytest.mark.parametrize(
    ("files", "config"),
    [
        ({"train.py": LOOP, "acc.yaml": YAML}, "acc.yaml"),
        ({"train.py": LOOP, "accelerate_configs/zero3.yaml": YAML, "notes.yaml": "a: 1\n"}, "zero3.yaml"),
        ({"train.py": PARSED, "ds.json": JSON}, "ds.json"),
        ({"train.py": PARSED, "configs/ds.json": JSON, "other.py": LOOP}, "ds.json"),
    ],
)
def test_the_only_config_is_the_only_scripts_and_that_is_said(
    tmp_path: Path, files: dict[str, str], config: str
) -> None:
    put(tmp_path, files)
    for names in ((), ("train.py",)):
        run = run_of(tmp_path, *names)
        assert (run["settings"]["engine"]["value"], run["settings"]["zero_stage"]["value"]) == ("deepspeed", 3)
        assert any(Path(name).name == config for name in run["documents"])
        assert f"{config} configures the run" in run["estimate"]["assumptions"][0]


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": LOOP, "acc.yaml": YAML, "configs/other.yaml": YAML},
        {"train.py": LOOP, "other.py": LOOP, "acc.yaml": YAML},
        {"train.py": LOOP, "elsewhere/acc.yaml": YAML},
        {"train.py": PARSED, "acc.yaml": YAML},
        {"train.py": FIXED, "ds.json": JSON},
        {"train.py": PARSED, "ds.json": JSON, "ds2.json": JSON},
        {"train.py": LOOP, "acc.yaml": YAML, "run.sh": "accelerate launch --config_file acc.yaml lib/other_train.py\n"},
    ],
)
def test_nothing_is_joined_where_it_is_not_the_only_one(tmp_path: Path, files: dict[str, str]) -> None:
    put(tmp_path, files)
    run = run_of(tmp_path)
    assert run["settings"]["engine"]["value"] == "ddp"
    assert run["documents"] == ["train.py"]


def test_a_module_that_only_defines_takes_no_config_from_the_script(tmp_path: Path) -> None:
    put(
        tmp_path,
        {"train.py": LOOP, "acc.yaml": YAML, "helper.py": "import torch\n\n\ndef f():\n    return Accelerator()\n"},
    )
    assert run_of(tmp_path)["settings"]["engine"]["value"] == "deepspeed"
