from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import UNKNOWN
from lintfit.settings.values import Adapters, Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.trl import TRAINERS, TrlRecipe, read_recipe

Read = Callable[[str], ShellDocument]


def recipe(read: Read, command: str, versions: Mapping[str, str] | None = None) -> TrlRecipe:
    (launch,) = read_launches(read(command))
    found = read_recipe(launch, lambda name: None, lambda own: own, versions)
    assert found is not None
    return found


def values(found: TrlRecipe) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


def test_defaults_of_the_newest(shell_document: Read) -> None:
    found = values(recipe(shell_document, "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B"))
    assert (found["model"], found["weights_dtype"], found["bf16"]) == ("Qwen/Qwen2.5-0.5B", "fp32", True)
    assert (found["method"], found["micro_batch_size"], found["gradient_accumulation_steps"]) == ("full", 8, 1)
    assert (found["gradient_checkpointing"], found["seq_len"]) == (True, 1024)
    assert "quantization" not in found


def test_flags(shell_document: Read) -> None:
    command = (
        "trl dpo --model_name_or_path m --dtype bfloat16 --use_peft --lora_r 32 --load_in_4bit --use_bnb_nested_quant"
        " --max_length 512 --per_device_train_batch_size 2 --gradient_checkpointing False"
    )
    found = values(recipe(shell_document, command))
    assert (found["weights_dtype"], found["method"], found["lora_rank"]) == ("bf16", "lora", 32)
    assert (found["quantization"], found["seq_len"], found["micro_batch_size"]) == ("nf4-double", 512, 2)
    assert found["gradient_checkpointing"] is False


@pytest.mark.parametrize(("words", "targets"), [("q_proj v_proj", ["q_proj", "v_proj"]), ("all-linear", "all-linear")])
def test_a_flag_of_several_words(shell_document: Read, words: str, targets: Any) -> None:
    command = f"trl sft --model_name_or_path m --use_peft --lora_target_modules {words} --max_length 512"
    found = values(recipe(shell_document, command))
    assert (found["lora_targets"], found["seq_len"]) == (targets, 512)


def test_the_dtype_of_an_older_trl(shell_document: Read) -> None:
    older = recipe(shell_document, "trl sft --model_name_or_path m --torch_dtype float16", {"trl": "0.19.1"})
    assert values(older)["weights_dtype"] == "fp16"


@pytest.mark.parametrize("action", TRAINERS)
def test_every_command_is_read(shell_document: Read, action: str) -> None:
    found = values(recipe(shell_document, f"trl {action} --model_name_or_path m"))
    assert (found["method"], found["micro_batch_size"]) == ("full", 8)


def test_nothing_points_into_trls_own_script(shell_document: Read) -> None:
    found = recipe(shell_document, "trl kto --model_name_or_path m --use_peft")
    places = [setting.provenance.place for setting in found.settings.values()]
    assert all(place is None or place.document is found.document for place in places)
    assert found.settings["method"].provenance.kind == "derived"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--num_processes 4", {"gpus": 4}),
        ("--accelerate_config zero2", {"gpus": 8, "engine": "deepspeed", "zero_stage": 2, "mixed_precision": "bf16"}),
        ("--accelerate_config zero3 --num_processes 2", {"gpus": 2, "zero_stage": 3, "offload_param": "none"}),
        ("--accelerate_config fsdp2", {"engine": "fsdp", "fsdp": Fsdp(2, "FULL_SHARD", False)}),
        ("--accelerate_config single_gpu", {"gpus": 1}),
        ("--accelerate_config mine.yaml", {"accelerate_config": "mine.yaml"}),
        ("", {"gpus": UNKNOWN}),
    ],
)
def test_what_accelerate_gets(shell_document: Read, flags: str, expected: dict[str, Any]) -> None:
    (launch,) = read_launches(shell_document(f"trl sft --model_name_or_path m {flags}"))
    assert {name: launch.settings[name].value for name in expected} == expected
    assert not {flag.name for flag in launch.flags} & {"num_processes", "accelerate_config"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("micro_batch_size", 1, "trl sft --model_name_or_path m --max_length 2048 --per_device_train_batch_size 1"),
        ("seq_len", 1024, "trl sft --model_name_or_path m --max_length 1024"),
        ("weights_dtype", "bf16", "trl sft --model_name_or_path m --max_length 2048 --dtype bfloat16"),
        ("attention", "sdpa", "trl sft --model_name_or_path m --max_length 2048 --attn_implementation sdpa"),
    ],
)
def test_write(shell_document: Read, name: str, value: Any, expected: str | None) -> None:
    command = "trl sft --model_name_or_path m --max_length 2048"
    edits = recipe(shell_document, command).write(name, value)
    written = apply(command, [edit.edit for edit in edits]) if edits is not None else None
    assert (written.strip() if written is not None else None) == expected


def test_a_config_file(shell_document: Read) -> None:
    text = "model_name_or_path: m\nper_device_train_batch_size: 2\nuse_peft: true\n"
    config = read_yaml(FileText(Path("sft.yaml"), text))
    (launch,) = read_launches(shell_document("trl sft --config sft.yaml --max_length 512"))
    found = read_recipe(launch, {"sft.yaml": config}.get, lambda own: own)
    assert found is not None
    assert (found.settings["model"].value, found.settings["seq_len"].value) == ("m", 512)
    assert found.settings["method"].value == "lora"
    (edit,) = found.write("micro_batch_size", 1) or ()
    assert edit.document is config and apply(text, [edit.edit]) == text.replace("size: 2", "size: 1")


def test_an_evaluation_has_a_batch_where_a_strategy_asks_for_it(shell_document: Read) -> None:
    command = "trl dpo --model_name_or_path m --per_device_eval_batch_size 16"
    assert "eval_batch_size" not in values(recipe(shell_document, command))
    found = recipe(shell_document, f"{command} --eval_strategy steps")
    assert values(found)["eval_batch_size"] == 16
    (edit,) = found.write("eval_batch_size", 2) or ()
    assert apply(f"{command} --eval_strategy steps", [edit.edit]).count("--per_device_eval_batch_size 2 ") == 1


@pytest.mark.parametrize("key", ["max_length", "max_seq_length"])
def test_a_length_is_changed_where_it_is_stated(shell_document: Read, key: str) -> None:
    text = f"model_name_or_path: m\n{key}: 4096\n"
    config = read_yaml(FileText(Path("sft.yaml"), text))
    (launch,) = read_launches(shell_document("trl sft --config sft.yaml"))
    found = read_recipe(launch, {"sft.yaml": config}.get, lambda own: own)
    assert found is not None
    (edit,) = found.write("seq_len", 1024) or ()
    assert edit.document is config and apply(text, [edit.edit]) == text.replace("4096", "1024")


def test_a_new_switch_stands_alone_where_the_others_do(shell_document: Read) -> None:
    command = "trl sft --model_name_or_path m --push_to_hub --max_steps 1"
    edits = recipe(shell_document, command).write("gradient_checkpointing", True)
    assert edits is not None
    assert apply(command, [edit.edit for edit in edits]).strip() == f"{command} --gradient_checkpointing"


def test_an_older_recipe_that_nobody_dates_gets_no_dtype(shell_document: Read) -> None:
    command = "trl sft --model_name_or_path m --max_seq_length 2048"
    assert recipe(shell_document, command).write("weights_dtype", "bf16") is None


@pytest.mark.parametrize(("line", "loss"), [("use_liger: true", "liger"), ("use_liger: false", None)])
def test_ligers_switch_of_older_releases_is_read_and_written(line: str, loss: str | None, shell_document: Read) -> None:
    text = f"model_name_or_path: m\nmax_length: 512\n{line}\n"
    config = read_yaml(FileText(Path("sft.yaml"), text))
    (launch,) = read_launches(shell_document("trl sft --config sft.yaml"))
    found = read_recipe(launch, {"sft.yaml": config}.get, lambda own: own)
    assert found is not None and (values(found).get("loss") == "liger") is (loss == "liger")
    edits = found.write("loss", "liger")
    assert edits is not None and apply(text, [edit.edit for edit in edits]) == text.replace("false", "true")


def test_a_new_key_of_a_sorted_recipe_stands_in_its_order(shell_document: Read) -> None:
    keys = ["bf16", "do_eval", "eval_strategy", "gradient_accumulation_steps", "gradient_checkpointing"]
    keys += ["learning_rate", "logging_steps", "num_train_epochs", "output_dir", "seed", "warmup_ratio"]
    text = "model_name_or_path: m\n" + "".join(f"{key}: 1\n" for key in keys)
    for whole, before in ((text, "warmup_ratio"), (text.replace("eval_strategy", "train_strategy"), "learning_rate")):
        config = read_yaml(FileText(Path("sft.yaml"), whole))
        (launch,) = read_launches(shell_document("trl sft --config sft.yaml"))
        found = read_recipe(launch, {"sft.yaml": config}.get, lambda own: own)
        assert found is not None and (edits := found.write("loss", "liger")) is not None
        assert f"use_liger_kernel: true\n{before}:" in apply(whole, [edit.edit for edit in edits])
        edits = found.write("method", Adapters(16, "ddp"))
        assert edits is not None, "what is said of the model stands with it"
        assert apply(whole, [edit.edit for edit in edits]).startswith("model_name_or_path: m\nuse_peft: true\nbf16:")
