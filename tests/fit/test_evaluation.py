"""The planner lowers the evaluation's batch first: no update of the training changes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.fit.axes import evaluation as batches
from lintfit.fit.axes import micro_batch, predictions
from lintfit.fit.options import Effect, Subject, run_of
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.options.model import Options
from lintfit.run.change import changed_spec
from tests.support import lintfit

BASE: dict[str, Any] = {"model": "Qwen/Qwen2.5-1.5B", "gpu": "RTX 4090", "micro_batch_size": 1, "seq_len": 4096}


def spec(evaluation: dict[str, Any] | None, **more: Any) -> Spec:
    return spec_from_mapping({**BASE, "evaluation": evaluation, **more})


def names(of: Spec) -> list[str]:
    subject = Subject(run_of(of), of)
    return [option.name for axis in (batches, predictions) for option in axis.options(subject)]


def test_halves_down_to_one_sequence() -> None:
    assert names(spec({"batch_size": 12})) == ["evaluation batch 6", "evaluation batch 3", "evaluation batch 1"]
    assert names(spec(None)) == names(spec({"batch_size": 1})) == names(spec({"batch_size": 0})) == []


def test_grpo_evaluates_whole_groups_on_any_number_of_ranks_where_no_launch_says_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from trl import GRPOConfig, GRPOTrainer\n"
        "args = GRPOConfig('out', bf16=True, per_device_eval_batch_size=32, eval_strategy='steps', num_generations=8)\n"
        "GRPOTrainer(model='Qwen/Qwen2.5-1.5B', args=args, train_dataset=d, eval_dataset=d, reward_funcs=f).train()\n"
    )
    options = Options(gpu="RTX 4090", gpus=8, isolated=True, origins={"gpu": "--gpu", "gpus": "--gpus"})
    (judged,) = load_runs([tmp_path / "train.py"], options)[1]
    assert judged.run.unlaunched and judged.run.spec is not None
    assert list(batches.smaller(judged.run, judged.run.spec)) == [16, 8]


@pytest.mark.parametrize(("trl", "sizes"), [("0.16.0", [16]), ("0.18.0", [1, 2, 4, 16])])
def test_an_old_trl_gets_whole_groups_on_any_number_of_ranks_where_no_launch_says_one(
    tmp_path: Path, trl: str, sizes: list[int]
) -> None:
    (tmp_path / "train.py").write_text(
        "from trl import GRPOConfig, GRPOTrainer\n"
        "args = GRPOConfig('out', bf16=True, gradient_accumulation_steps=2, num_generations=8)\n"
        "GRPOTrainer(model='Qwen/Qwen2.5-1.5B', args=args, train_dataset=d, reward_funcs=f).train()\n"
    )
    (tmp_path / "requirements.txt").write_text(f"trl=={trl}\n")
    options = Options(gpu="RTX 4090", gpus=8, isolated=True, origins={"gpu": "--gpu", "gpus": "--gpus"})
    (judged,) = load_runs([tmp_path / "train.py"], options)[1]
    assert judged.run.spec is not None
    found = micro_batch.options(Subject(judged.run, judged.run.spec))
    assert sorted(each.changes["micro_batch_size"] for each in found) == sizes


@pytest.mark.parametrize(("gpus", "sizes"), [(1, [16, 8]), (4, [16, 8, 4, 2]), (8, [16, 8, 4, 2, 1])])
def test_grpo_evaluates_whole_groups(gpus: int, sizes: list[int]) -> None:
    of = spec({"batch_size": 32}, trainer="grpo", gpus=gpus)
    assert list(batches.smaller(run_of(of), of)) == sizes


def test_logits_go_to_the_host_before_metrics_are_given_up() -> None:
    assert names(spec({"batch_size": 1, "predictions": "kept"})) == ["evaluation logits to the host"]
    assert names(spec({"batch_size": 1, "predictions": "kept", "accumulation_steps": 1})) == []
    assert names(spec({"batch_size": 1, "predictions": "kept", "generates": True})) == []
    many = spec({"batch_size": 1, "predictions": "kept", "accumulation_steps": 1}, gpus=32)
    (given_up,) = predictions.options(Subject(run_of(many), many))
    assert (given_up.changes, given_up.effect) == ({"eval_predictions": "none"}, Effect.NUMERICS)


def test_a_change_of_the_evaluation_leaves_the_training_as_it_is() -> None:
    own = {"loss": "full", "fused_kernels": []}
    before = spec({"batch_size": 8, "predictions": "kept"}, mixed_precision="bf16", gradient_checkpointing=True, **own)
    after = changed_spec(before, {"eval_batch_size": 1, "eval_accumulation_steps": 1})
    assert after.evaluation is not None and after.effective_batch == before.effective_batch
    assert (after.eval_batch_size, after.eval_accumulation_steps, after.eval_predictions) == (1, 1, "kept")
    assert estimate(before).verdict is Verdict.DOES_NOT_FIT
    assert estimate(after).verdict is Verdict.FITS


SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype=torch.bfloat16)
args = TrainingArguments(
    output_dir="out",
    bf16=True,
    per_device_train_batch_size=1,
    per_device_eval_batch_size=16,
    gradient_checkpointing=True,
    eval_strategy="steps",
)
Trainer(model=model, args=args, train_dataset=data, eval_dataset=held_out).train()
"""


def test_the_plan_is_one_change_that_is_read_again_and_fits(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "lintfit.toml").write_text('gpu = "RTX 4090"\ngpus = 1\nseq-len = 2048\n')
    (run,) = lintfit("check", ".", "--output-format", "json", cwd=tmp_path).json["runs"]
    assert run["verdict"] == "does-not-fit"
    assert run["estimate"]["peak_phase"] == "evaluate"
    (step,) = run["plan"]["steps"]
    assert (step["setting"], step["from"], step["to"]) == ("eval_batch_size", 16, 2)
    assert (run["plan"]["applicability"], run["plan"]["verdict"]) == ("safe", "fits")
    lintfit("check", ".", "--fix", cwd=tmp_path)
    assert (tmp_path / "train.py").read_text() == SCRIPT.replace("eval_batch_size=16", "eval_batch_size=2")
    (fixed,) = lintfit("check", ".", "--output-format", "json", cwd=tmp_path).json["runs"]
    assert fixed["verdict"] == "fits"
    assert fixed["estimate"]["peak_bytes"] == run["plan"]["estimate"]["peak_bytes"]


def test_no_rule_about_the_training_speaks_of_a_run_that_only_its_evaluation_breaks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "lintfit.toml").write_text('gpu = "RTX 4090"\ngpus = 1\nseq-len = 2048\n')
    found = lintfit("check", ".", "--output-format", "json", cwd=tmp_path).json["findings"]
    assert {each["rule"] for each in found} == {"does-not-fit", "eval-batch-default"}


RECIPE = """\
base_model: NousResearch/Llama-3.2-1B
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
val_set_size: 0.1
evals_per_epoch: 1
sequence_len: 4096
sample_packing: true
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
bf16: true
gradient_checkpointing: true
optimizer: adamw_torch
output_dir: out
gradient_accumulation_steps: 1
micro_batch_size: 8
"""


@pytest.mark.parametrize(
    ("stated", "after"),
    [
        ("", "gradient_accumulation_steps: 8\nmicro_batch_size: 1\n"),
        ("eval_batch_size: 8\n", "gradient_accumulation_steps: 8\nmicro_batch_size: 1\neval_batch_size: 2\n"),
    ],
)
def test_a_batch_that_follows_the_training_is_not_written(tmp_path: Path, stated: str, after: str) -> None:
    (tmp_path / "a.yaml").write_text(RECIPE + stated)
    asked = ("check", "a.yaml", "--gpu", "RTX 3090", "--gpus", "1")
    (run,) = lintfit(*asked, "--output-format", "json", cwd=tmp_path).json["runs"]
    assert run["verdict"] == "does-not-fit"
    lintfit(*asked, "--fix", "--unsafe-fixes", cwd=tmp_path)
    assert (tmp_path / "a.yaml").read_text().endswith(f"output_dir: out\n{after}")


def test_a_flag_for_both_batches_is_changed_once(tmp_path: Path) -> None:
    flag = 'parser = argparse.ArgumentParser()\nparser.add_argument("--batch_size", type=int, default=1)\n'
    script = SCRIPT.replace("import torch\n", f"import argparse\n\nimport torch\n\n{flag}").replace("=16", "=batch")
    script = script.replace("batch_size=1,", "batch_size=batch,").replace("args = ", "batch = ", 1)
    script = script.replace("batch = Tr", "batch = parser.parse_args().batch_size\nargs = Tr")
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "run.sh").write_text("python train.py --batch_size 16\n")
    asked = ("check", "run.sh", "--gpu", "RTX 4090", "--gpus", "1", "--seq-len", "2048")
    (run,) = lintfit(*asked, "--output-format", "json", cwd=tmp_path).json["runs"]
    assert run["verdict"] == "does-not-fit"
    lintfit(*asked, "--fix", "--unsafe-fixes", cwd=tmp_path)
    assert (tmp_path / "run.sh").read_text() == "python train.py --batch_size 1\n"
    assert "eval_batch_size=batch" in (tmp_path / "train.py").read_text()
