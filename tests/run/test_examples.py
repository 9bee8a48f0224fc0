"""Example scripts of libraries that a launch line names and that are not there: their flags say how they train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check
from lintfit.findings.results import CheckResult
from lintfit.options.model import Options
from lintfit.run.model import Run
from lintfit.settings.model import UNKNOWN

GPU = Options(gpu="A100 80GB", origins={"gpu": "--gpu"})
CLM = "--model_name_or_path gpt2 --dataset_name wikitext --output_dir out --do_train"
SFT = "--model_name_or_path Qwen/Qwen2-0.5B --dataset_name a/b --output_dir out"


def checked(folder: Path, monkeypatch: pytest.MonkeyPatch, launch: str, **files: str) -> CheckResult:
    monkeypatch.chdir(folder)
    for name, text in {"run.sh": launch, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return check([Path()], GPU)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run_of(launch: str, **files: str) -> Run:
        (result,) = checked(tmp_path, monkeypatch, launch, **files).runs
        return result.run

    return run_of


@pytest.mark.parametrize(
    "script",
    [
        "run_clm.py",
        "~/projects/transformers/examples/pytorch/language-modeling/run_clm.py",
        "/opt/transformers/examples/pytorch/language-modeling/run_clm.py",
        "../language-modeling/run_clm.py",
    ],
)
def test_by_name_and_by_path(run: Any, script: str) -> None:
    found = run(f"torchrun --nproc_per_node 2 {script} {CLM} --bf16 --per_device_train_batch_size 4")
    assert (found.missing, found.unknown) == ((), ())
    assert (found.value("model"), found.value("micro_batch_size"), found.value("mixed_precision")) == (
        "gpt2",
        4,
        "bf16",
    )
    assert (found.value("engine"), found.value("gpus"), found.value("seq_len")) == ("ddp", 2, 1024)
    assert found.spec.facts.name == "gpt2"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("sft.py", f"{SFT} --my_own_flag 3"),
        ("run_clm.py", f"{CLM} --lora_dim 8"),
        ("scripts/sft.py", SFT),
        ("recipes/run_clm.py", CLM),
        ("run_clm.py", f"wikitext {CLM}"),
    ],
)
def test_another_script_of_that_name(run: Any, script: str, words: str) -> None:
    found = run(f"torchrun --nproc_per_node 2 {script} {words}")
    assert found.recipe is None
    assert [each.what for each in found.missing] == ["the script that is launched"]


def test_a_script_of_that_name_further_down_is_meant(run: Any) -> None:
    found = run(f"torchrun --nproc_per_node 2 run_clm.py {CLM}", **{"src/run_clm.py": "print()"})
    assert found.recipe is None
    assert found.missing[0].meant == "src/run_clm.py"


def test_the_script_that_is_there_is_read(run: Any) -> None:
    found = run(f"torchrun run_clm.py {CLM}", **{"run_clm.py": "print()"})
    assert found.recipe is None
    assert found.spec is None


def test_what_its_config_is_missing_for(run: Any) -> None:
    found = run(f"deepspeed --num_gpus 2 run_clm.py {CLM} --deepspeed ds.json")
    assert [(each.name, each.certainty) for each in found.missing] == [("ds.json", "elsewhere")]
    assert found.engine_open  # it fits whatever that says


def test_its_config_is_read(run: Any) -> None:
    config = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": "auto"}'
    found = run(f"deepspeed --num_gpus 2 run_clm.py {CLM} --bf16 --deepspeed ds.json", **{"ds.json": config})
    assert (found.value("zero_stage"), found.value("micro_batch_size"), found.unknown) == (3, 8, ())


@pytest.mark.parametrize(
    ("script", "words", "lengths"),
    [
        ("run_mlm.py", "--model_name_or_path roberta-base", (512, None)),
        ("run_mlm.py", "--model_name_or_path bert-base-cased --max_seq_length 2048", (512, None)),
        ("run_glue.py", "--model_name_or_path bert-base-cased", (128, None)),
        ("run_clm.py", "--model_name_or_path meta-llama/Llama-2-7b-hf --block_size 2048", (2048, None)),
        ("run_summarization.py", "--model_name_or_path t5-small", (1024, 128)),
        ("run_translation.py", "--model_name_or_path t5-small --max_source_length 256", (256, 128)),
        ("run_clm_no_trainer.py", "--model_name_or_path gpt2", (1024, None)),
        ("run_glue_no_trainer.py", "--model_name_or_path bert-base-cased --max_length 64", (64, None)),
    ],
)
def test_lengths(run: Any, script: str, words: str, lengths: tuple[int, int | None]) -> None:
    found = run(f"accelerate launch --num_processes 2 {script} {words} --output_dir out")
    assert (found.value("seq_len"), found.value("decoder_seq_len")) == lengths
    assert found.settings["seq_len"].provenance.kind != "assumed"


def test_blocks_of_a_tokenizer_without_a_limit_are_assumed(run: Any) -> None:
    found = run("torchrun --nproc_per_node 2 run_clm.py --model_name_or_path meta-llama/Llama-2-7b-hf --output_dir out")
    length = found.settings["seq_len"]
    assert (length.value, length.provenance.kind) == (1024, "assumed")


def test_a_loop_with_accelerate(run: Any) -> None:
    found = run(
        "accelerate launch --num_processes 2 --mixed_precision bf16 run_clm_no_trainer.py --model_name_or_path gpt2"
    )
    assert (found.recipe.uses_trainer, found.value("engine")) == (False, "ddp")
    assert (found.value("mixed_precision"), found.value("optimizer"), found.value("micro_batch_size")) == (
        "bf16",
        "adamw_torch",
        8,
    )


def test_what_is_loaded_is_of_the_script(run: Any) -> None:
    assert run("torchrun run_glue.py --model_name_or_path bert-base-cased").value("trainer") == "classification"


def test_the_dtype_by_both_names(run: Any) -> None:
    newer, older = (run(f"torchrun run_clm.py {CLM} --{name} float16") for name in ("dtype", "torch_dtype"))
    assert newer.value("weights_dtype") == older.value("weights_dtype") == "fp16"


def test_older_transformers_load_in_float32(run: Any) -> None:
    pinned = {"requirements.txt": "transformers==4.40.0"}
    found = run("torchrun run_clm.py --model_name_or_path meta-llama/Llama-2-7b-hf --block_size 512", **pinned)
    assert found.value("weights_dtype") == "fp32"


def test_a_model_made_from_a_config(run: Any) -> None:
    found = run("torchrun run_clm.py --config_name gpt2 --tokenizer_name gpt2 --output_dir out")
    assert (found.value("model"), found.settings["weights_dtype"].value) == ("gpt2", UNKNOWN)
    changed = run("torchrun run_clm.py --config_name gpt2 --config_overrides n_layer=48 --output_dir out")
    assert changed.lacks_model


def test_arguments_in_a_json(run: Any) -> None:
    words = '{"model_name_or_path": "gpt2", "per_device_train_batch_size": 2, "output_dir": "out", "block_size": 512}'
    found = run("torchrun run_clm.py args.json", **{"args.json": words})
    assert (found.value("model"), found.value("micro_batch_size"), found.value("seq_len")) == ("gpt2", 2, 512)


def test_an_evaluation_of_its_own(run: Any) -> None:
    assert "eval_batch_size" not in run(f"torchrun run_clm.py {CLM}").settings
    found = run(f"torchrun run_clm.py {CLM} --do_eval --per_device_eval_batch_size 3")
    assert (found.value("eval_batch_size"), found.value("eval_predictions")) == (3, "dropped")


@pytest.mark.parametrize("script", ["sft.py", "trl/scripts/sft.py", "~/trl/examples/scripts/sft.py"])
def test_of_trl(run: Any, script: str) -> None:
    found = run(f"accelerate launch --num_processes 2 {script} {SFT} --use_peft --lora_r 8")
    assert (found.missing, found.unknown) == ((), ())
    assert (found.value("method"), found.value("lora_rank"), found.value("weights_dtype")) == ("lora", 8, "fp32")
    assert (found.recipe.kind, found.recipe.program, found.value("mixed_precision")) == ("SFT", "sft.py", "bf16")


@pytest.mark.parametrize(("script", "kind"), [("reward_modeling.py", "Reward"), ("kto.py", "KTO"), ("grpo.py", "GRPO")])
def test_kinds_of_trl(run: Any, script: str, kind: str) -> None:
    assert run(f"accelerate launch --num_processes 2 {script} {SFT}").recipe.kind == kind


def test_a_flag_is_written_on_the_launch_line(run: Any) -> None:
    recipe = run(f"torchrun run_clm.py {CLM} --per_device_train_batch_size 8").recipe
    (edit,) = recipe.write("micro_batch_size", 2)
    assert edit.edit.text == "2"
    assert recipe.write("gradient_checkpointing", True)
    assert recipe.write("zero_stage", 3) is None
