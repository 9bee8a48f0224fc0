"""LLaMA-Factory's recipes: what they come to, and how they are written back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.config import from_flags
from lintfit.run.model import Run
from lintfit.settings.model import AUTO
from lintfit.settings.values import AS_LOADED, Adapters, FourBits

LORA = """\
### model
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct

### method
stage: sft
do_train: true
finetuning_type: lora
lora_target: all

### dataset
dataset: identity
template: llama3
cutoff_len: 1024

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
output_dir: saves
"""
FULL = LORA.replace("finetuning_type: lora\nlora_target: all", "finetuning_type: full")
ZERO3 = '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def run_of(text: str, name: str = "recipe.yaml", **others: str) -> Run:
        for path, content in {name: text, **others}.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(content)
        (result,) = load_runs([Path(name)], from_flags({}))[1]
        return result.run

    return run_of


def _values(found: Run, *names: str) -> list[Any]:
    return [found.settings[name].value if name in found.settings else None for name in names]


def test_what_it_comes_to(run: Any) -> None:
    found = run(LORA)
    assert found.usual_command == "llamafactory-cli train recipe.yaml"
    assert _values(found, "model", "method", "lora_rank", "lora_targets", "quantization") == [
        "meta-llama/Meta-Llama-3-8B-Instruct", "lora", 8, "all-linear", None,
    ]  # fmt: skip
    assert _values(found, "micro_batch_size", "gradient_accumulation_steps", "seq_len", "packing") == [
        1,
        8,
        1024,
        False,
    ]
    assert _values(found, "mixed_precision", "weights_dtype", "attention", "loss") == ["bf16", "bf16", "sdpa", "full"]
    assert _values(found, "gradient_checkpointing", "use_reentrant", "trainer") == [True, True, "causal-lm"]
    assert found.value("gpus") is None and found.value("engine") == "ddp" and found.spec is not None


@pytest.mark.parametrize(("line", "name", "value"), [
    ("quantization_bit: 4", "quantization", "nf4-double"),
    ("quantization_bit: 4\ndouble_quantization: false", "quantization", "nf4"),
    ("quantization_bit: 8", "quantization", "int8"),
    ("quantization_bit: 4\nquantization_method: hqq", "quantization", None),
    ("quantization_bit: 4\nupcast_layernorm: true", "kbit_upcast", "norms"),
    ("disable_gradient_checkpointing: true", "gradient_checkpointing", False),
    ("use_reentrant_gc: false", "use_reentrant", False),
    ("flash_attn: fa2", "attention", "flash_attention_2"),
    ("flash_attn: disabled", "attention", "eager"),
    ("enable_liger_kernel: true", "loss", "liger"),
    ("packing: true", "packing", True),
    ("neat_packing: true", "packing", True),
    ("use_dora: true", "use_dora", True),
    ("additional_target: embed_tokens,lm_head", "lora_modules_to_save", ("embed_tokens", "lm_head")),
    ("lora_target: q_proj, v_proj", "lora_targets", ("q_proj", "v_proj")),
])  # fmt: skip
def test_what_a_line_changes(run: Any, line: str, name: str, value: Any) -> None:
    key = line.partition(":")[0]
    text = "".join(each for each in LORA.splitlines(True) if not each.startswith(f"{key}:"))
    assert run(f"{text}{line}\n").value(name) == value


@pytest.mark.parametrize(("line", "weights"), [
    ("", "fp32"), ("pure_bf16: true", "bf16"), ("use_badam: true", "bf16"), ("deepspeed: z3.json", "bf16"),
    ("deepspeed: examples/deepspeed/ds_z2_config.json", "fp32"),
])  # fmt: skip
def test_what_trains_is_cast_to_float32(run: Any, line: str, weights: str) -> None:
    assert run(f"{FULL}{line}\n", **{"z3.json": ZERO3}).value("weights_dtype") == weights


@pytest.mark.parametrize(("lines", "trainer", "reference"), [
    ("stage: dpo", "dpo", False),
    ("stage: dpo\npref_loss: orpo", "orpo", False),
    ("stage: dpo\npref_loss: simpo", "cpo", False),
    ("stage: dpo\nfinetuning_type: full", "dpo", True),
    ("stage: kto\nfinetuning_type: full", "kto", True),
    ("stage: rm", "reward", False),
    ("stage: pt", "causal-lm", False),
])  # fmt: skip
def test_stages(run: Any, lines: str, trainer: str, reference: bool) -> None:
    keys = tuple(f"{line.partition(':')[0]}:" for line in lines.splitlines())
    text = "".join(each for each in LORA.splitlines(True) if not each.startswith(keys))
    found = run(f"{text}{lines}\n")
    assert _values(found, "trainer", "reference_model") == [trainer, reference]


def test_parts_of_a_model_that_sees_are_frozen(run: Any) -> None:
    text = FULL.replace("meta-llama/Meta-Llama-3-8B-Instruct", "Qwen/Qwen2-VL-2B-Instruct")
    assert run(text).value("frozen_modules") == ("visual",)
    assert run(f"{text}freeze_multi_modal_projector: false\n").value("frozen_modules") == ("visual", "!visual.merger")
    assert run(text).value("image_max_pixels") == 768 * 768


def test_the_command_line_counts_over_the_file(run: Any, tmp_path: Path) -> None:
    words = "llamafactory-cli train recipe.yaml cutoff_len=512 bf16=false fp16=true"
    found = run(f"FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=4 {words}\n", "go.sh", **{"recipe.yaml": LORA})
    assert _values(found, "seq_len", "mixed_precision", "gpus", "nodes") == [512, "fp16", 8, 2]


def test_flags_of_its_script_under_a_launcher(run: Any) -> None:
    words = "--model_name_or_path meta-llama/Llama-2-7b-hf --finetuning_type lora --lora_target q_proj,v_proj --fp16"
    found = run(f"deepspeed --num_gpus 4 src/train_bash.py --stage sft --do_train {words} --cutoff_len 512\n", "go.sh")
    assert _values(found, "method", "gpus", "seq_len", "mixed_precision") == ["lora", 4, 512, "fp16"]


@pytest.mark.parametrize(("stage", "dtype"), [(2, "fp32"), (3, "fp16")])
def test_its_old_script_casts_what_zero_has_not_partitioned(run: Any, stage: int, dtype: str) -> None:
    words = "--model_name_or_path meta-llama/Llama-2-7b-hf --finetuning_type full --fp16 --deepspeed ds.json"
    files = {"ds.json": f'{{"zero_optimization": {{"stage": {stage}}}, "train_batch_size": "auto"}}'}
    found = run(f"deepspeed --num_gpus 4 src/train_bash.py --stage sft --do_train {words}\n", "go.sh", **files)
    assert _values(found, "weights_dtype", "zero_stage") == [dtype, stage]


def test_the_command_in_the_comment_at_its_head(run: Any) -> None:
    comment = "# accelerate launch \\\n#   --config_file acc.yaml \\\n#   src/train.py examples/recipe.yaml\n"
    config = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 4\n"
    found = run(comment + FULL, **{"acc.yaml": config})
    assert _values(found, "engine", "gpus") == ["fsdp", 4]
    assert found.usual_command == "accelerate launch --config_file acc.yaml src/train.py recipe.yaml"
    assert run(comment.replace("acc.yaml", "no.yaml") + FULL).missing == ()


@pytest.mark.parametrize("line", ["use_kt: true", "tensor_model_parallel_size: 2"])
def test_who_else_trains_is_not_counted(run: Any, line: str) -> None:
    found = run(f"{LORA}{line}\n")
    assert found.spec is None and found.unknown


@pytest.mark.parametrize("lines", ["do_train: false", "export_dir: merged"])
def test_a_file_that_does_not_train(run: Any, tmp_path: Path, lines: str) -> None:
    Path("x.yaml").write_text(LORA.replace("do_train: true", lines))
    assert load_runs([Path("x.yaml")], from_flags({}))[1] == ()


@pytest.mark.parametrize(("name", "value", "before", "after"), [
    ("micro_batch_size", 2, "per_device_train_batch_size: 1", "per_device_train_batch_size: 2"),
    ("seq_len", 512, "cutoff_len: 1024", "cutoff_len: 512"),
    ("gradient_checkpointing", False, None, "disable_gradient_checkpointing: true"),
    ("attention", "flash_attention_2", None, "flash_attn: fa2"),
    ("loss", "liger", None, "enable_liger_kernel: true"),
])  # fmt: skip
def test_what_is_written(run: Any, name: str, value: Any, before: str | None, after: str) -> None:
    found = run(LORA)
    (edit,) = found.recipe.write(name, value)
    text = LORA[: edit.edit.span.start] + edit.edit.text + LORA[edit.edit.span.end :]
    assert after in text.splitlines() and (before is None or before not in text.splitlines())
    assert len(text.splitlines()) == len(LORA.splitlines()) + (before is None)


def test_adapters_and_bits_are_written_key_by_key(run: Any) -> None:
    recipe = run(FULL).recipe
    assert recipe.write("weights_dtype", AS_LOADED) == ()
    (edit,) = recipe.write("weights_dtype", "bf16")
    assert "pure_bf16: true" in edit.edit.text
    (edit,) = recipe.write("method", Adapters(16, "ddp"))
    assert edit.edit.text == "lora"
    (edit,) = run(LORA).recipe.write("quantization", FourBits("nf4-double", 1))
    assert "quantization_bit: 4" in edit.edit.text


def test_zero_is_another_file_of_its_checkout(run: Any) -> None:
    files = {
        f"examples/deepspeed/ds_{each}_config.json": ZERO3.replace("3", each[1])
        for each in ("z0", "z2", "z3", "z2_offload", "z3_offload")
    }
    text = f"{FULL}deepspeed: examples/deepspeed/ds_z2_config.json\n"
    found = run(text, **files)
    assert found.value("zero_stage") == 2
    (edit,) = found.recipe.write("packaged_zero_stage", 3)
    assert edit.edit.text == "examples/deepspeed/ds_z3_config.json"
    for path in files:
        Path(path).unlink()
    # In a checkout of LLaMA-Factory the others lie beside the one that is named.
    (edit,) = run(text).recipe.write("packaged_offload_optimizer", "cpu")
    assert edit.edit.text == "examples/deepspeed/ds_z2_offload_config.json"
    assert run(FULL).recipe.write("packaged_zero_stage", 3) is None


def test_a_file_that_is_not_there(run: Any) -> None:
    found = run("llamafactory-cli train nowhere.yaml\n", "go.sh")
    assert found.recipe.missing is not None and found.spec is None
    assert AUTO not in _values(found, "model", "method")


def test_a_recipe_that_prepares_data_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys = "template: llama3\ntokenized_path: saves/tokens\n"
    training = LORA.replace("template: llama3\n", keys)
    prepares = training.partition("### train")[0] + "output_dir: saves\n"
    Path("prepare.yaml").write_text(prepares)
    Path("train.yaml").write_text(training)
    Path("run.sh").write_text("llamafactory-cli train prepare.yaml\nllamafactory-cli train train.yaml\n")
    results = load_runs([Path("run.sh")], from_flags({}))[1]
    assert [result.run.id for result in results] == ["run.sh:2"]
