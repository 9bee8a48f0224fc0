"""The Trainer's arguments as a front end fills them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.frozen import replace
from lintfit.settings.model import UNKNOWN
from lintfit.settings.values import Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.keys import Keys
from lintfit.sources.recipes.trainer import Arguments, evaluation_of, settings_of
from lintfit.sources.training_defaults import fields_of

TRAINER = "transformers.TrainingArguments"
Fill = Callable[..., Arguments]


@pytest.fixture
def fill(shell_document: Callable[[str], ShellDocument]) -> Fill:
    def filled(text: str, complete: bool = True, **files: str) -> Arguments:
        (launch,) = read_launches(shell_document("trl sft"))
        keys = Keys(launch)
        keys.read(read_yaml(FileText(Path("c.yaml"), text)), fields_of(TRAINER))
        opened = {f"{name}.json": read_json(FileText(Path(f"{name}.json"), said)) for name, said in files.items()}
        return Arguments(keys, (TRAINER,), {"transformers": "4.57.1"}, opened.get, complete)

    return filled


def values(arguments: Arguments) -> dict[str, Any]:
    return {name: setting.value for name, setting in settings_of(arguments).items()}


def test_defaults_stand_below_keys(fill: Fill) -> None:
    found = settings_of(fill("per_device_train_batch_size: 2\ngradient_checkpointing: true\n"))
    assert (found["micro_batch_size"].value, found["optimizer"].value) == (2, "adamw_torch")
    assert found["optimizer"].provenance.detail == "transformers 4.57.1 default"
    assert (found["gradient_checkpointing"].value, found["use_reentrant"].value) == (True, True)
    assert not {"deepspeed", "fsdp"} & found.keys()


@pytest.mark.parametrize(("version", "heeded"), [("4.46.1", True), ("4.57.1", None), ("5.2.0", True)])
def test_whether_every_micro_batch_is_reduced(fill: Fill, version: str, heeded: bool | None) -> None:
    arguments = fill("accelerator_config:\n  gradient_accumulation_kwargs: {sync_each_batch: true}\n")
    found = settings_of(replace(arguments, versions={"transformers": version}))
    assert (found["sync_each_batch"].value if "sync_each_batch" in found else None) is heeded


def test_nothing_is_known_beside_a_file_that_is_not_read(fill: Fill) -> None:
    assert values(fill("bf16: true\n", complete=False)) == {"bf16": True, "gradient_checkpointing": UNKNOWN}


def test_a_mapping_in_the_place_of_deepspeeds_file(fill: Fill) -> None:
    text = "deepspeed:\n  zero_optimization: {stage: 3, offload_optimizer: {device: cpu}, offload_param: true}\n"
    found = settings_of(fill(text))
    assert (found["zero_stage"].value, found["offload_optimizer"].value) == (3, "cpu")
    assert found["offload_param"].value is UNKNOWN
    place = found["zero_stage"].provenance.place
    assert place is not None and place.text == "3"


@pytest.mark.parametrize(
    "config", ["fsdp.json", "{activation_checkpointing: true, reshard_after_forward: shard_grad_op}"]
)
def test_fsdp_by_a_mapping_or_a_file(fill: Fill, config: str) -> None:
    said = '{"activation_checkpointing": true, "reshard_after_forward": "shard_grad_op"}'
    found = values(fill(f"fsdp: offload auto_wrap\nfsdp_config: {config}\n", fsdp=said))
    assert found["fsdp"] == Fsdp(1, "SHARD_GRAD_OP", True)
    assert (found["fsdp_auto_wrap"], found["gradient_checkpointing"]) == (True, True)


def test_switches(fill: Fill) -> None:
    text = "use_liger_kernel: true\ntorch_compile_mode: default\ngradient_checkpointing: null\n"
    found = values(fill(text))
    assert (found["loss"], found["torch_compile"], found["gradient_checkpointing"]) == ("liger", True, False)


def test_evaluation(fill: Fill) -> None:
    found = evaluation_of(fill("per_device_eval_batch_size: 4\n"))
    assert found["eval_batch_size"].value == 4
    assert "eval_accumulation_steps" not in found


def test_a_field_is_written_where_it_is_stated(fill: Fill) -> None:
    text = "per_device_train_batch_size: 4\n"
    arguments = fill(text)
    names = ("per_gpu_train_batch_size", "per_device_train_batch_size")
    (edit,) = arguments.write(names, 1) or ()
    assert apply(text, [edit.edit]) == "per_device_train_batch_size: 1\n"
    assert arguments.write(names, 4) == ()


def test_fields_are_written_one_after_the_other(fill: Fill) -> None:
    arguments = fill("bf16: true\n")
    (edit,) = arguments.write_next(bf16=True, fp16=False, tf32=True) or ()
    assert "tf32: true" in edit.edit.text  # fp16 is off by default


@pytest.mark.parametrize(
    ("line", "resumes"),
    [
        ("resume_from_checkpoint: out/checkpoint-100\n", True),
        ("resume_from_checkpoint: true\n", True),
        ("resume_from_checkpoint: false\n", None),
        ("resume_from_checkpoint: null\n", None),
        ("", None),
    ],
)
def test_a_front_end_hands_the_checkpoint_on(fill: Fill, line: str, resumes: bool | None) -> None:
    assert values(fill(line)).get("resumes") is resumes
