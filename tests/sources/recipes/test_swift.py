from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog import models, swift
from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, FileText, Kind
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import AUTO, UNKNOWN, Setting
from lintfit.settings.values import Adapters, FourBits, Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.forms import front_end_of
from lintfit.sources.recipes.swift import SwiftRecipe, read_recipe, usual_command

Read = Callable[[str], ShellDocument]
QWEN = "--model Qwen/Qwen2.5-7B-Instruct"


def recipe(
    read: Read, command: str, versions: Mapping[str, str] | None = None, file: str = "", gpus: int | None = None
) -> SwiftRecipe:
    (launch,) = read_launches(read(command))
    document = read_yaml(FileText(Path("sft.yaml"), file))

    def world(own: Setting | None) -> Setting | None:
        if own is not None and own.value is UNKNOWN and gpus is not None:
            return Setting("gpus", gpus, own.provenance)
        return own

    found = read_recipe(launch, lambda name: document if name == "sft.yaml" and file else None, world, versions)
    assert found is not None
    return found


def values(found: SwiftRecipe) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


def test_defaults_of_the_newest(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"CUDA_VISIBLE_DEVICES=0 swift sft {QWEN}"))
    assert (found["model"], found["method"], found["lora_rank"]) == ("Qwen/Qwen2.5-7B-Instruct", "lora", 8)
    assert (found["weights_dtype"], found["bf16"], found["fp16"]) == (AUTO, True, False)
    assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == (1, 16)
    assert (found["gpus"], found["engine"], found["gradient_checkpointing"]) == (1, "single", True)
    assert (found["lora_targets"], found["attention"], found["quantization"]) == ("all-linear", "sdpa", None)
    assert "seq_len" not in found  # samples may be as long as the model allows
    assert "pipeline_parallel" not in found


@pytest.mark.parametrize(
    ("before", "flags", "steps"),
    [
        ("NPROC_PER_NODE=4", "", 4),
        ("NPROC_PER_NODE=4", "--per_device_train_batch_size 3", 2),
        ("NPROC_PER_NODE=8 NNODES=4", "", 1),
        ("", "--per_device_train_batch_size 32", 1),
        ("", "--gradient_accumulation_steps 5", 5),
        ("n=2\nNPROC_PER_NODE=$n", "--gradient_accumulation_steps $(expr 16 / $n)", 8),
        ("NPROC_PER_NODE=$1", "", UNKNOWN),
    ],
)
def test_accumulation_fills_up_sixteen_samples(shell_document: Read, before: str, flags: str, steps: Any) -> None:
    found = values(recipe(shell_document, f"{before} swift sft {QWEN} {flags}"))
    assert found["gradient_accumulation_steps"] == steps


def test_grpo_does_not_accumulate(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo {QWEN} --max_length 1024"))
    assert (found["trainer"], found["gradient_accumulation_steps"]) == ("grpo", 1)
    assert (found["max_prompt_length"], found["max_completion_length"]) == (1024, 512)
    assert "seq_len" not in found


@pytest.mark.parametrize(
    ("flags", "length"),
    [
        ("--use_vllm true --vllm_max_model_len 4096", 4096),
        ("--use_vllm true --vllm_max_model_len 16384", None),
        ("--vllm_max_model_len 4096", None),
        ("--use_vllm true", None),
    ],
)
def test_vllm_generates_no_longer_samples_than_it_may(shell_document: Read, flags: str, length: int | None) -> None:
    rlhf = f"swift rlhf --rlhf_type grpo {QWEN} --max_length 4096 --max_completion_length 4096"
    found = values(recipe(shell_document, f"{rlhf} --vllm_mode colocate {flags}"))
    assert found.get("seq_len") == length


@pytest.mark.parametrize(
    ("before", "gpus", "engine", "stages"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1,2,3", 4, "single", 4),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4", 4, None, None),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2", 4, None, 2),
        ("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 NNODES=3", 6, None, None),
        ("SWIFT_SINGLE_DEVICE_MODE=1 CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2", 2, None, None),
        ("", UNKNOWN, "single", None),
    ],
)
def test_processes_and_device_map(shell_document: Read, before: str, gpus: Any, engine: Any, stages: Any) -> None:
    found = values(recipe(shell_document, f"{before} swift sft {QWEN}"))
    assert (found["gpus"], found.get("engine"), found.get("pipeline_parallel")) == (gpus, engine, stages)


def test_one_process_takes_all_gpus_of_the_machine(shell_document: Read) -> None:
    found = recipe(shell_document, f"swift sft {QWEN}", gpus=8)
    assert values(found)["pipeline_parallel"] == 8
    assert not found.adjustable & {"zero_stage", "loss"}


@pytest.mark.parametrize(
    ("flags", "versions", "expected"),
    [
        ("--deepspeed zero2", {}, (2, "none", "none")),
        ("--deepspeed zero3_offload", {}, (3, "cpu", "cpu")),
        ("--deepspeed zero3-offload", {"ms-swift": "2.6.1"}, (3, "none", "cpu")),
        ("--deepspeed default-zero3", {"ms-swift": "2.6.1"}, (3, "none", "none")),
        ('--deepspeed \'{"zero_optimization": {"stage": 1}}\'', {}, (1, "none", "none")),
    ],
)
def test_deepspeed_by_name(shell_document: Read, flags: str, versions: Mapping[str, str], expected: Any) -> None:
    found = values(recipe(shell_document, f"NPROC_PER_NODE=2 swift sft {QWEN} {flags}", versions))
    assert tuple(found[name] for name in ("zero_stage", "offload_optimizer", "offload_param")) == expected
    assert isinstance(found["deepspeed"], Mapping)


def test_the_buckets_of_the_packages_configs(shell_document: Read) -> None:
    command = f"NPROC_PER_NODE=2 swift sft {QWEN} --deepspeed zero2"
    newest = values(recipe(shell_document, command))["deepspeed"]["zero_optimization"]
    assert (newest["reduce_bucket_size"], newest["overlap_comm"]) == (200_000_000, False)
    older = values(recipe(shell_document, command, {"ms-swift": "3.1.0"}))["deepspeed"]["zero_optimization"]
    assert older["overlap_comm"] is True


def test_a_deepspeed_file_is_handed_on_by_name(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"NPROC_PER_NODE=2 swift sft {QWEN} --deepspeed ds.json"))
    assert found["deepspeed"] == "ds.json"
    assert "zero_stage" not in found


def test_fsdp_2_of_the_package(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"NPROC_PER_NODE=2 swift sft {QWEN} --fsdp fsdp2 --gradient_checkpointing 0"))
    assert (found["engine"], found["fsdp"]) == ("fsdp", Fsdp(2, "FULL_SHARD", False))
    assert found["gradient_checkpointing"] is True


@pytest.mark.parametrize(
    ("flags", "weights", "half"),
    [
        ("--torch_dtype bfloat16", "bf16", "bf16"),
        ("--torch_dtype float16", "fp16", "fp16"),
        ("--torch_dtype float32", "fp32", "fp16"),
        ("--torch_dtype float32 --bf16 true --fp16 false", "fp32", "bf16"),
        ("--model_id_or_path m --sft_type lora --dtype AUTO", "bf16", "bf16"),
        ("--model_id_or_path m --sft_type full --dtype fp16", "fp32", "fp16"),
    ],
)
def test_mixed_precision_follows_the_models_dtype(shell_document: Read, flags: str, weights: str, half: str) -> None:
    found = values(recipe(shell_document, f"swift sft {QWEN} {flags}"))
    assert (found["weights_dtype"], found[half]) == (weights, True)
    assert found[{"bf16": "fp16", "fp16": "bf16"}[half]] is False


def test_nothing_is_known_of_the_precision_of_an_unknown_model(shell_document: Read) -> None:
    found = values(recipe(shell_document, "swift sft --model nobody/knows-7b"))
    assert (found["weights_dtype"], found["bf16"]) == (AUTO, UNKNOWN)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--quant_method bnb --quant_bits 4", "nf4-double"),
        ("--quant_method bnb --quant_bits 4 --bnb_4bit_use_double_quant false", "nf4"),
        ("--quant_method bnb --quant_bits 8", "int8"),
        ("--quant_method hqq --quant_bits 4", UNKNOWN),
        ("--quant_bits 4", None),
        ("--model_id_or_path m --sft_type lora --quantization_bit 4", "nf4-double"),
    ],
)
def test_quantization(shell_document: Read, flags: str, expected: Any) -> None:
    assert values(recipe(shell_document, f"swift sft {QWEN} {flags}"))["quantization"] == expected


def test_the_version_follows_from_the_flags(shell_document: Read) -> None:
    for flags, version in (("--tuner_type lora", swift.versions()[-1]), ("--train_type lora", "4.0.4")):
        assert recipe(shell_document, f"swift sft {QWEN} {flags}").arguments.version == version, flags
    older = recipe(shell_document, "swift sft --model_type qwen2-7b-instruct --sft_type lora")
    assert older.arguments.version == "2.6.1"
    stated = recipe(shell_document, f"swift sft {QWEN}", {"ms-swift": "3.5.1"})
    assert stated.arguments.version == "3.5.3"
    assert recipe(shell_document, f"swift sft {QWEN}", {"ms-swift": "<4"}).arguments.version == "3.12.6"


def test_models_by_the_types_of_ms_swift_2(shell_document: Read) -> None:
    found = values(recipe(shell_document, "swift sft --model_type qwen2-7b-instruct --sft_type lora"))
    assert (found["model"], found["seq_len"]) == ("Qwen/Qwen2-7B-Instruct", 2048)
    assert found["lora_targets"] is UNKNOWN  # by the model's type, which has a table of its own


@pytest.mark.parametrize(("model", "expected"), [("qwen2-7b-instruct", True), ("cogvlm2-19b-chat", False)])
def test_ms_swift_2_checkpoints_where_the_model_can(shell_document: Read, model: str, expected: bool) -> None:
    command = f"swift sft --model_type {model} --sft_type lora"
    assert values(recipe(shell_document, command))["gradient_checkpointing"] is expected
    assert (
        values(recipe(shell_document, f"{command} --gradient_checkpointing false"))["gradient_checkpointing"] is False
    )


def test_a_command_for_each_loss_of_ms_swift_2(shell_document: Read) -> None:
    found = recipe(shell_document, "swift orpo --model_type qwen2-7b-instruct --sft_type full --beta 0.2")
    assert (values(found)["trainer"], found.arguments.version, found.refused) == ("orpo", "2.6.1", ())


def test_models_that_modelscope_calls_otherwise(shell_document: Read) -> None:
    found = values(recipe(shell_document, "swift sft --model iic/gte_Qwen2-1.5B-instruct"))
    assert found["model"] == "Alibaba-NLP/gte-Qwen2-1.5B-instruct"
    kept = values(recipe(shell_document, "swift sft --model LLM-Research/Meta-Llama-3-8B-Instruct"))
    assert kept["model"] == "LLM-Research/Meta-Llama-3-8B-Instruct"


@pytest.mark.parametrize(
    ("flags", "trainer", "reference"),
    [
        ("--rlhf_type dpo --tuner_type full", "dpo", True),
        ("--rlhf_type dpo --tuner_type full --ref_model Qwen/Qwen2.5-7B", "dpo", True),
        ("--rlhf_type dpo --tuner_type lora", "dpo", False),
        ("--rlhf_type simpo --tuner_type full", "cpo", False),
        ("--rlhf_type rm --tuner_type full", "reward", False),
        ("--rlhf_type grpo --tuner_type full", "grpo", True),
        ("--rlhf_type grpo --tuner_type full --beta 0", "grpo", False),
        ("--rlhf_type gkd --tuner_type full --teacher_model Qwen/Qwen2.5-14B", "causal-lm", False),
    ],
)
def test_rlhf(shell_document: Read, flags: str, trainer: str, reference: bool) -> None:
    found = values(recipe(shell_document, f"swift rlhf {QWEN} {flags}"))
    assert (found["trainer"], found["reference_model"]) == (trainer, reference)


def test_answers_of_ppo(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"swift rlhf --rlhf_type ppo {QWEN} --reward_model Qwen/Qwen2.5-0.5B"))
    assert (found["response_length"], found["reward_model"]) == (512, "Qwen/Qwen2.5-0.5B")


def test_vllm_on_the_trainers_gpus(shell_document: Read) -> None:
    flags = "--use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.4 --sleep_level 1"
    found = values(recipe(shell_document, f"NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo {QWEN} {flags}"))
    assert (found["use_vllm"], found["vllm_mode"], found["vllm_gpu_memory_utilization"]) == (True, "colocate", 0.4)
    assert found["vllm_enable_sleep_mode"] is True


@pytest.mark.parametrize(("workers", "mode"), [(1, "server"), (4, "colocate")])
def test_vllm_on_gpus_of_its_own(shell_document: Read, workers: int, mode: str) -> None:
    flags = f"--use_vllm true --num_infer_workers {workers} --vllm_gpu_memory_utilization 0.4"
    found = values(recipe(shell_document, f"NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo {QWEN} {flags}"))
    assert found["vllm_mode"] == mode


def test_what_is_frozen_of_a_model_that_sees(shell_document: Read) -> None:
    command = "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type full"
    assert values(recipe(shell_document, command))["frozen_modules"] == ("visual",)
    trained = values(recipe(shell_document, f"{command} --freeze_aligner false"))
    assert trained["frozen_modules"] == ("visual", "!visual.merger")
    assert "frozen_modules" not in values(
        recipe(shell_document, f"{command} --freeze_vit false --freeze_aligner false")
    )


def test_adapters_of_a_model_that_sees_stand_in_its_language_model(shell_document: Read) -> None:
    targets = values(recipe(shell_document, "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct"))["lora_targets"]
    assert targets
    assert not [name for name in targets if "visual" in name]
    assert any(name.endswith("q_proj") for name in targets)


def test_pixels_of_images(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"MAX_PIXELS=1003520 swift sft {QWEN}"))
    assert found["image_max_pixels"] == 1_003_520
    fewer = values(recipe(shell_document, f"IMAGE_MAX_TOKEN_NUM=1024 swift sft {QWEN} --max_pixels 2000000"))
    assert fewer["image_max_pixels"] == 1024 * 1024
    handed = values(recipe(shell_document, f"swift sft {QWEN} --model_kwargs '{{\"max_pixels\": 602112}}'"))
    assert handed["image_max_pixels"] == 602_112


@pytest.mark.parametrize(
    ("flags", "length", "kind"),
    [
        ("--max_length 4096", 4096, "file"),
        ("--max_length 4096 --packing true --packing_length 8192 --attn_impl flash_attn", 8192, "file"),
        ("--max_length 4096 --padding_free true --per_device_train_batch_size 4", 4096, "file"),
        ("--max_length 4096 --padding_free true", 4096, "file"),
    ],
)
def test_lengths(shell_document: Read, flags: str, length: int, kind: str) -> None:
    found = recipe(shell_document, f"swift sft {QWEN} {flags}").settings["seq_len"]
    assert (found.value, found.provenance.kind) == (length, kind)


@pytest.mark.parametrize(
    ("before", "flags", "reentrant"),
    [
        ("", "", True),
        ("NPROC_PER_NODE=2", "", False),
        ("NPROC_PER_NODE=2", "--deepspeed zero2", True),
        ("NPROC_PER_NODE=2", "--deepspeed zero2 --gradient_checkpointing_kwargs '{\"use_reentrant\": false}'", False),
    ],
)
def test_reentrant_checkpointing(shell_document: Read, before: str, flags: str, reentrant: bool) -> None:
    assert values(recipe(shell_document, f"{before} swift sft {QWEN} {flags}"))["use_reentrant"] is reentrant


def test_other_tuners_are_not_taken_for_lora(shell_document: Read) -> None:
    found = values(recipe(shell_document, f"swift sft {QWEN} --tuner_type boft"))
    assert found["method"] is UNKNOWN
    assert "boft" in found["uncounted"]
    adalora = values(recipe(shell_document, f"swift sft {QWEN} --tuner_type adalora"))
    assert (adalora["method"], adalora["lora_rank"]) == ("lora", 12)


def test_optimizers(shell_document: Read) -> None:
    assert values(recipe(shell_document, f"swift sft {QWEN}", {"transformers": "4.57"}))["optimizer"].startswith(
        "adamw"
    )
    assert values(recipe(shell_document, f"swift sft {QWEN} --optim adafactor"))["optimizer"] == "adafactor"
    assert values(recipe(shell_document, f"swift sft {QWEN} --optimizer muon"))["optimizer"] == "muon"
    assert values(recipe(shell_document, f"swift sft {QWEN} --use_galore true"))["optimizer"] == "galore_adamw"
    assert (
        values(recipe(shell_document, "swift sft --model_id_or_path m --sft_type full"))["optimizer"] == "adamw_torch"
    )


def test_it_evaluates_where_there_is_data(shell_document: Read) -> None:
    without = recipe(shell_document, f"swift sft {QWEN} --eval_strategy steps")
    assert "eval_batch_size" not in without.settings
    assert (asked := without.argument("eval_strategy")) is not None
    assert asked.value == "no"
    found = values(recipe(shell_document, f"swift sft {QWEN} --split_dataset_ratio 0.01"))
    assert found["eval_batch_size"] == 1


# -- files ---------------------------------------------------------------------------------------------------------

YAML = """\
model: Qwen/Qwen2.5-7B-Instruct
tuner_type: full
dataset: [data.jsonl]
max_length: 2048
per_device_train_batch_size: 2
deepspeed: zero2
ENV:
  NPROC_PER_NODE: 4
  CUDA_VISIBLE_DEVICES: 0,1,2,3
"""


def test_a_file_in_the_first_place(shell_document: Read) -> None:
    found = recipe(shell_document, "swift sft sft.yaml --max_length 512", file=YAML)
    said = values(found)
    assert (said["method"], said["seq_len"], said["micro_batch_size"]) == ("full", 512, 2)
    assert (said["gpus"], said["gradient_accumulation_steps"], said["zero_stage"]) == (4, 2, 2)
    assert found.settings["seq_len"].overrode[0].value == 2048
    assert found.document.path == Path("sft.yaml")


def test_the_environment_beats_the_file(shell_document: Read) -> None:
    found = values(recipe(shell_document, "NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1 swift sft sft.yaml", file=YAML))
    assert found["gpus"] == 2


def test_the_file_of_config_beats_flags(shell_document: Read) -> None:
    found = recipe(shell_document, "swift sft --config sft.yaml --max_length 512", file=YAML)
    assert values(found)["seq_len"] == 2048
    assert found.arguments.version == "4.0.4"


def test_a_file_that_is_not_there(shell_document: Read) -> None:
    found = recipe(shell_document, "swift sft gone.yaml --max_length 512")
    assert found.missing is not None
    assert values(found)["model"] is UNKNOWN
    assert values(found)["seq_len"] == 512
    assert found.refused == ()


def test_the_usual_command() -> None:
    def command(text: str, name: str = "my sft.yaml") -> str | None:
        document = read_yaml(FileText(Path(name), text))
        assert isinstance(document, DataDocument)
        return usual_command(document)

    assert command(YAML) == "swift sft 'my sft.yaml'"
    assert command(f"{YAML}rlhf_type: dpo\n", "dpo.yaml") == "swift rlhf dpo.yaml"
    assert command(f"{YAML}reward_funcs: [accuracy]\n", "grpo.yaml") == "swift rlhf grpo.yaml"
    assert command(YAML, "pt.yaml") == "swift pt pt.yaml"
    assert command(f"{YAML}infer_backend: vllm\n") is None
    assert command("model: m\ntuner_type: lora\n") is None  # nothing to train on
    assert command(f"{YAML}micro_batch_size: 1\nglobal_batch_size: 8\n") is None  # megatron sft's


def test_layers_that_train_in_turns(shell_document: Read) -> None:
    """LISA trains so many at a time: what trains is less than the whole model."""
    found = recipe(shell_document, f"swift sft {QWEN} --tuner_type full --lisa_activated_layers 2").settings
    assert (found["partly_frozen"].value, found["frozen_modules"].value) == (True, ("*",))
    assert "partly_frozen" not in recipe(shell_document, f"swift sft {QWEN} --tuner_type full").settings


def test_how_wide_a_tuner_is(shell_document: Read) -> None:
    flags = f"swift sft {QWEN} --tuner_type"
    assert recipe(shell_document, f"{flags} adapter --adapter_length 64").settings["tuner_width"].value == 64
    assert recipe(shell_document, f"{flags} reft").settings["tuner_width"].value == 4
    assert "tuner_width" not in recipe(shell_document, f"{flags} boft").settings


def test_samples_that_are_joined(shell_document: Read) -> None:
    flags = f"swift sft {QWEN} --max_length 4096 --attn_impl flash_attn"
    assert recipe(shell_document, f"{flags} --padding_free true").settings["joins_samples"].value is True
    assert "joins_samples" not in recipe(shell_document, flags).settings


def test_a_recipe_is_told_by_its_keys() -> None:
    assert front_end_of(YAML, Kind.YAML) == "swift"
    plain = "model: m\ndataset: [a]\nlora_rank: 8\ntorch_dtype: bfloat16\nper_device_train_batch_size: 1\n"
    assert front_end_of(plain, Kind.YAML) == "swift"
    assert front_end_of("model: m\ndataset: [a]\nlearning_rate: 1\n", Kind.YAML) != "swift"


# -- what is refused -----------------------------------------------------------------------------------------------


def test_flags_that_no_version_takes(shell_document: Read) -> None:
    found = recipe(shell_document, f"swift sft {QWEN} --tuner_type lora --max_lenght 512 --per_device_train_batch 2")
    (refused,) = found.refused
    assert (refused.name, refused.error) == ("--max_lenght", "remaining_argv: ['--max_lenght', '512']")
    assert refused.refusal.meant == "--max_length"


def test_flags_of_another_version(shell_document: Read) -> None:
    command = f"swift sft {QWEN} --train_type lora"
    assert recipe(shell_document, command).refused == ()
    (refused,) = recipe(shell_document, command, {"ms-swift": "4.3.0"}).refused
    assert refused.name == "--train_type"
    mixed = recipe(shell_document, f"swift sft {QWEN} --sft_type lora --torch_dtype bfloat16 --tuner_type lora")
    assert [each.name for each in mixed.refused] == ["--sft_type"]


def test_values_that_no_version_takes(shell_document: Read) -> None:
    (refused,) = recipe(shell_document, f"swift sft {QWEN} --torch_dtype bf16").refused
    assert refused.error.startswith("argument --torch_dtype: invalid choice: 'bf16'")
    assert recipe(shell_document, f"swift sft {QWEN} --torch_dtype $DTYPE").refused == ()


def test_flags_of_transformers_and_of_rlhf(shell_document: Read) -> None:
    flags = "--neftune_noise_alpha 5 --predict_with_generate true --optim adamw_torch --learning_rate 1e-5"
    assert recipe(shell_document, f"swift sft {QWEN} {flags}").refused == ()
    assert recipe(shell_document, f"swift rlhf {QWEN} --rlhf_type grpo --num_generations 4").refused == ()
    assert [each.name for each in recipe(shell_document, f"swift sft {QWEN} --num_generations 4").refused] == [
        "--num_generations"
    ]


def test_keys_of_the_file(shell_document: Read) -> None:
    found = recipe(shell_document, "swift sft sft.yaml", file=f"{YAML}warmup_ration: 0.1\n")
    (refused,) = found.refused
    assert (refused.name, refused.key, refused.refusal.meant) == ("--warmup_ration", True, "--warmup_ratio")


def test_errors_may_be_ignored(shell_document: Read) -> None:
    (refused,) = recipe(shell_document, f"swift sft {QWEN} --nonsense 1 --ignore_args_error true").refused
    assert refused.ignored


# -- writing -------------------------------------------------------------------------------------------------------


def written(found: SwiftRecipe, name: str, value: Any) -> str:
    edits = found.write(name, value)
    assert edits is not None
    assert edits
    return apply(edits[0].document.text if edits[0].document else "", [edit.edit for edit in edits])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("micro_batch_size", 2, "--per_device_train_batch_size 2"),
        ("gradient_accumulation_steps", 4, "--gradient_accumulation_steps 4"),
        ("seq_len", 1024, "--max_length 1024"),
        ("gradient_checkpointing", True, "--gradient_checkpointing true"),
        ("attention", "flash_attention_2", "--attn_impl flash_attn"),
        ("loss", "liger", "--use_liger_kernel true"),
        ("weights_dtype", "bf16", "--torch_dtype bfloat16"),
        ("optimizer", "adafactor", "--optim adafactor"),
        ("method", Adapters(16, "ddp"), "--tuner_type lora"),
        ("quantization", FourBits("nf4-double", 1), "--quant_bits 4"),
    ],
)
def test_a_flag_is_added(shell_document: Read, name: str, value: Any, expected: str) -> None:
    found = recipe(shell_document, f"NPROC_PER_NODE=2 swift sft {QWEN} --tuner_type full --gradient_checkpointing 0")
    assert expected in written(found, name, value)


def test_the_words_of_older_versions(shell_document: Read) -> None:
    older = recipe(shell_document, "NPROC_PER_NODE=2 swift sft --model_id_or_path m --sft_type full --batch_size 4")
    assert "--batch_size 1" in written(older, "micro_batch_size", 1)
    assert "--sft_type lora" in written(older, "method", Adapters(8, "ddp"))
    assert "--use_flash_attn true" in written(older, "attention", "flash_attention_2")


def test_zero_by_its_name(shell_document: Read) -> None:
    found = recipe(shell_document, f"NPROC_PER_NODE=2 swift sft {QWEN} --deepspeed zero2")
    assert written(found, "zero_stage", 3).endswith("--deepspeed zero3")
    assert written(found, "offload_optimizer", "cpu").endswith("--deepspeed zero2_offload")
    whole = {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"}
    assert found.zero_config(whole) == "zero3_offload"
    assert found.zero_config({**whole, "offload_param": "none"}) is None


def test_a_key_of_the_file_is_changed(shell_document: Read) -> None:
    found = recipe(shell_document, "swift sft sft.yaml", file=YAML)
    assert "max_length: 1024\n" in written(found, "seq_len", 1024)
    assert "deepspeed: zero3\n" in written(found, "zero_stage", 3)
    assert "attn_impl: flash_attn\n" in written(found, "attention", "flash_attention_2")


# -- the table -----------------------------------------------------------------------------------------------------


def test_the_table_has_every_minor_version() -> None:
    minors = {tuple(map(int, each.split(".")[:2])) for each in swift.versions()}
    assert {(2, 0), (2, 6), (3, 0), (3, 12), (4, 0), (4, 5)} <= minors
    newest = len(swift.versions()) - 1
    assert swift.fields("sft", newest)["quant_bits"].kind == "=1|2|3|4|8|float8"
    assert swift.fields("sft", newest)["tuner_type"].default == "lora"
    assert "num_generations" not in swift.fields("sft", newest)
    assert swift.fields("rlhf", newest)["num_generations"].default == 8
    assert swift.inherits("sft", 0) is None
    assert swift.inherits("sft", newest) == "Seq2SeqTrainingArguments"


@pytest.mark.parametrize(
    ("version", "transformers", "multimodal", "flags", "left_out"),
    [
        ("3.4.1", "4.51.3", False, "", False),
        ("3.5.3", "4.52.4", False, "", True),
        ("4.6.0", "4.57.3", True, "", False),
        ("4.1.3", "5.2.0", True, "", False),
        ("4.6.0", "5.2.0", True, "", True),
        ("4.6.0", "5.2.0", True, "--use_logits_to_keep false", False),
        ("4.6.0", "4.57.3", True, "--use_logits_to_keep true", True),
        ("4.6.0", "5.2.0", False, "--sequence_parallel_size 2", False),
        ("4.6.0", "5.2.0", False, "--loss_scale all", False),
    ],
)
def test_logits_of_labelled_tokens_alone(
    shell_document: Read, version: str, transformers: str, multimodal: bool, flags: str, left_out: bool
) -> None:
    versions = {swift.PACKAGE: version, "transformers": transformers}
    model = "Qwen/Qwen3-VL-4B-Instruct" if multimodal else "Qwen/Qwen2.5-7B-Instruct"
    found = recipe(shell_document, f"swift sft --model {model} {flags}", versions)
    facts = models.find(model)
    assert facts is not None
    assert found.leaves_logits_out(facts) is left_out
