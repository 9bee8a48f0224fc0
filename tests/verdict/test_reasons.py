"""Why a run has no verdict: every such run says it, with what would make it known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.config import from_flags
from lintfit.verdict.reasons import CONFIG, LENGTH, family, of_length
from tests.support import ROOT, lintfit

PROJECTS = ROOT / "tests" / "projects"
GPU = "the GPU (--gpu, or gpu in lintfit.toml)"
MODEL = "the model (--model, or model in lintfit.toml)"

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from data import dataset

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=dataset).train()
"""


def runs(folder: Path, files: dict[str, str], *arguments: str) -> list[Any]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    found: list[Any] = lintfit("check", *arguments, "--output-format", "json", cwd=folder).json["runs"]
    return found


def reasons(folder: Path, files: dict[str, str], *arguments: str) -> list[str]:
    (run,) = runs(folder, files, *arguments)
    assert run["verdict"] == "unknown"
    found: list[str] = run["unknown"]
    return found


@pytest.mark.parametrize("flags", [{}, {"gpu": "RTX 3090"}], ids=["no GPU", "a GPU"])
@pytest.mark.parametrize(
    "case",
    [
        "configs-without-a-run",
        "distillation-loop",
        "evaluation-logits-kept",
        "loop-of-megatron",
        "loop-with-ray",
        "missing-config",
        "recipes-not-read",
        "script-branches-and-helpers",
        "script-hf-json-file",
        "trainer-ppo-first",
    ],
)
def test_no_run_is_unknown_for_nothing(case: str, flags: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECTS / case / "input")
    _, found = load_runs([Path()], from_flags(flags, isolated=True))
    assert found
    assert [run.run.id for run in found if run.is_unknown is not bool(run.unknown)] == []


def test_no_gpu(tmp_path: Path) -> None:
    assert reasons(tmp_path, {"train.py": SCRIPT}) == [GPU]


def test_no_gpu_is_said_once_for_all_runs(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(SCRIPT)
    shown = lintfit("check", cwd=tmp_path).out
    assert shown.count("--gpu, or gpu") == 1
    assert f"\n3 runs not judged: {GPU}: a.py, b.py, c.py\n" in shown
    assert shown.splitlines()[-1] == "3 runs: 3 not judged. Nothing was judged (3 info). 3 files read, none skipped."


def test_neither_model_nor_gpu(tmp_path: Path) -> None:
    assert reasons(tmp_path, {"train.py": SCRIPT.replace('"Qwen/Qwen2.5-7B"', "pick()")}) == [MODEL, GPU]


def test_a_config_alone(tmp_path: Path) -> None:
    config = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 2}'
    assert reasons(tmp_path, {"ds.json": config}) == [CONFIG]
    shown = lintfit("check", "ds.json", cwd=tmp_path).out
    passed = "1 run: 1 not judged. All checks passed. 1 file read, none skipped.\n"
    assert shown == passed, "its keys were checked"
    flags = ("ds.json", "--model", "Qwen/Qwen2.5-7B", "--gpu", "4090", "--gpus", "8")
    assert reasons(tmp_path, {}, *flags) == [of_length(None)]
    judged = " ".join(lintfit("check", *flags, cwd=tmp_path).out.split())
    assert judged.startswith("ds.json: not judged ") and f" Not known {LENGTH} " in judged


def test_only_the_length_decides(tmp_path: Path) -> None:
    small = SCRIPT.replace("Qwen2.5-7B", "Qwen2.5-0.5B").replace("size=1, gradient_checkpointing=True", "size=32")
    assert reasons(tmp_path, {"train.py": small}, "train.py", "--gpu", "3090", "--gpus", "1") == [of_length(64)]
    assert family(of_length(64)) == family(of_length(None))
    shown = runs(tmp_path, {}, "train.py", "--gpu", "3090", "--gpus", "1", "--seq-len", "512")
    assert (shown[0]["verdict"], shown[0]["unknown"]) == ("does-not-fit", [])


def test_a_range_that_crosses_the_card(tmp_path: Path) -> None:
    """A full fine-tune whose command line is not known may take far more than the GPU, or be LoRA."""
    parsed = SCRIPT.replace(
        'args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1, '
        "gradient_checkpointing=True)",
        "from transformers import HfArgumentParser\n(args,) = HfArgumentParser(TrainingArguments)"
        ".parse_args_into_dataclasses()",
    )
    assert parsed != SCRIPT
    (reason,) = reasons(tmp_path, {"train.py": parsed}, "train.py", "--gpu", "4090")
    assert "which a command line decides, and no launch line is known" in reason
    shown = lintfit("check", "train.py", "--gpu", "4090", cwd=tmp_path).out
    assert "All checks passed" not in shown


def test_a_file_that_is_not_there_is_the_one_cause(tmp_path: Path) -> None:
    launch = (
        "torchrun --nproc_per_node 8 train.py --deepspeed ds_missing.json --bf16 True --per_device_train_batch_size 1\n"
    )
    parsed = (
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    (first,) = reasons(tmp_path, {"run.sh": launch, "train.py": parsed}, "run.sh", "--gpu", "4090", "--seq-len", "512")
    assert first.startswith("the DeepSpeed config (ds_missing.json, which was not found)")


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        ("python3 -m verl.trainer.main_ppo data.train_batch_size=4", "what the module verl.trainer.main_ppo trains"),
        ("composer -n 8 train.py conf.yaml", "the settings that `composer train.py` reads itself"),
        ("composer train/train.py train/yamls/mpt.yaml", "the settings that `composer train/train.py` reads itself"),
        ("autotrain llm --train --model x/y", "the settings that `autotrain llm` reads itself"),
        ("autotrain --config conf.yml", "the settings that `autotrain --config` reads itself"),
        ("NPROC_PER_NODE=2 megatron sft --model x/y", "the settings that `megatron sft` reads itself"),
        ("oumi train -c conf.yaml", "the settings that `oumi train` reads itself"),
        ("ilab model train --device cuda", "the settings that `ilab model train` reads itself"),
        ("nemo llm pretrain --factory llama3_8b", "the settings that `nemo llm pretrain` reads itself"),
        ("ludwig train --config conf.yaml", "the settings that `ludwig train` reads itself"),
        (
            "ray job submit --address x -- python3 -m openrlhf.cli.train_ppo_ray --pretrain x/y",
            "what the module openrlhf.cli.train_ppo_ray trains",
        ),
        ("torchrun nope_train.py", "the script that is launched (nope_train.py, which was not found)"),
    ],
)
def test_launches_of_front_ends_are_runs_that_say_why(launch: str, reason: str, tmp_path: Path) -> None:
    named = {word: "" for word in launch.split() if word.endswith((".yaml", ".yml")) or "train.py" in word}
    there = {name: text for name, text in named.items() if "nope" not in name}
    (only,) = reasons(tmp_path, {"run.sh": f"{launch}\n", **there}, "run.sh")
    assert only.startswith(reason)
    assert only.endswith(("takes the run as flags, or a --spec)", "or put the file there)"))
    shown = lintfit("check", "run.sh", cwd=tmp_path).out
    assert "All checks passed" not in shown
    assert reason in " ".join(shown.split())


@pytest.mark.parametrize(
    "command", ["composer install", "autotrain app", "oumi infer -c x.yaml", "ludwig serve", "ray start --head"]
)
def test_other_commands_of_these_names_are_no_runs(command: str, tmp_path: Path) -> None:
    assert runs(tmp_path, {"run.sh": f"{command}\n"}, "run.sh") == []


def test_the_longest_samples_that_fit_are_told(tmp_path: Path) -> None:
    small = SCRIPT.replace("Qwen2.5-7B", "Qwen2.5-0.5B").replace("size=1, gradient_checkpointing=True", "size=4")
    (reason,) = reasons(tmp_path, {"train.py": small}, "train.py", "--gpu", "3090", "--gpus", "1")
    assert reason.startswith(LENGTH)
    length = re.search(r": it fits while none has more than ([\d,]+) tokens", reason)
    assert length is not None
    tokens = int(length[1].replace(",", ""))
    for seq_len, fits in ((tokens, True), (tokens + 128, False)):
        flags = ("train.py", "--gpu", "3090", "--gpus", "1", "--seq-len", str(seq_len))
        assert (runs(tmp_path, {}, *flags)[0]["verdict"] == "fits") is fits
