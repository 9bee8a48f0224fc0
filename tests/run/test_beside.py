"""A config that lies beside the only script that takes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.workspace import Workspace
from lintfit.run import beside
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


RECIPE = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: x\n"
    "template: qwen\ncutoff_len: 512\nper_device_train_batch_size: 1\nbf16: true\noutput_dir: o\n"
)
FSDP = (
    "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"
    "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\nmixed_precision: bf16\nnum_processes: 4\n"
)


MAIN = "from llamafactory.train.tuner import run_exp\n\nrun_exp()\n"


def started(*recipes: str, config: str = "fsdp.yaml") -> str:
    lines = (f"accelerate launch --config_file {config} src/train.py recipes/{name}\n" for name in recipes)
    return "".join(lines)


def alone(folder: Path) -> dict[str, Any]:
    flags = ("--gpu", "RTX 4090", "--gpus", "4", "--output-format", "json")
    said = lintfit("check", ".", *flags, cwd=folder).json
    run: dict[str, Any] = next(run for run in said["runs"] if run["id"] == "recipes/alone.yaml")
    run["at"] = {finding["path"] for finding in said["findings"] if finding["rule"] == "does-not-fit"}
    return run


def test_a_recipe_is_started_as_all_others_of_its_folder(tmp_path: Path) -> None:
    files = {"src/train.py": MAIN} | {f"recipes/{name}.yaml": RECIPE for name in ("one", "two", "alone")}
    put(tmp_path, {**files, "fsdp.yaml": FSDP, "train.sh": started("one.yaml", "two.yaml")})
    run = alone(tmp_path)
    assert run["settings"]["engine"]["value"] == "fsdp"
    assert "starts the other recipes of the folder" in str(run)
    assert "recipes/alone.yaml" in run["at"]


def test_a_recipe_is_not_started_as_others_that_differ(tmp_path: Path) -> None:
    files = {"src/train.py": MAIN} | {f"recipes/{name}.yaml": RECIPE for name in ("one", "two", "alone")}
    lines = started("one.yaml") + started("two.yaml", config="ddp.yaml")
    put(tmp_path, {**files, "fsdp.yaml": FSDP, "ddp.yaml": "distributed_type: MULTI_GPU\n", "train.sh": lines})
    assert alone(tmp_path)["settings"]["engine"]["value"] == "ddp"


OPEN_R1 = (
    "model_name_or_path: Qwen/Qwen2.5-1.5B\ntorch_dtype: bfloat16\ndataset_name: x\nsystem_prompt: hello\nbf16: true\n"
    "per_device_train_batch_size: 1\nmax_seq_length: 512\noutput_dir: o\n"
)
SFT = """\
from transformers import AutoModelForCausalLM
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

script, args, model = TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()
SFTTrainer(model=AutoModelForCausalLM.from_pretrained(model.model_name_or_path), args=args).train()
"""


def test_the_config_of_the_folder_takes_the_place_of_the_usual_one(tmp_path: Path) -> None:
    recipes = {f"recipes/{name}.yaml": OPEN_R1 for name in ("sft_one", "alone")}
    line = "accelerate launch --config_file zero2.yaml src/sft.py --config recipes/sft_one.yaml\n"
    put(tmp_path, {**recipes, "src/sft.py": SFT, "zero2.yaml": YAML.replace("stage: 3", "stage: 2"), "train.sh": line})
    run = alone(tmp_path)
    assert "starts the other recipes of the folder" in str(run)
    assert run["settings"]["zero_stage"]["value"] == 2
    assert "zero3.yaml" not in str(run)


def test_the_usual_config_stays_where_no_line_starts_the_folder(tmp_path: Path) -> None:
    put(tmp_path, {"recipes/alone.yaml": OPEN_R1, "zero2.yaml": YAML.replace("stage: 3", "stage: 2")})
    assert alone(tmp_path)["settings"]["zero_stage"]["value"] == 3


def test_a_folder_of_many_scripts_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a.yaml": YAML, "b.json": JSON, **{f"t{index}.py": LOOP for index in range(5)}, "p.py": PARSED})
    listed: list[Path] = []
    listing = beside._listed
    monkeypatch.setattr(beside, "_listed", lambda folder, space: listed.append(folder) or listing(folder, space))
    workspace = Workspace(tmp_path)
    here = beside.Beside(workspace)
    found = [here.config_of(workspace.read(Path(f"t{index}.py"))) for index in range(5)]
    assert found == [None] * 5 and len(listed) == 1
    assert here.config_of(workspace.read(Path("p.py"))) == Path("b.json")
