from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.settings.values import Fsdp
from lintfit.sources.accelerate import AccelerateSource, read_accelerate

Read = Callable[[str], DataDocument]

DEEPSPEED = """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  gradient_accumulation_steps: auto
  gradient_clipping: 1.0
  offload_optimizer_device: cpu
  offload_param_device: none
  zero3_init_flag: true
  zero_stage: 2
mixed_precision: 'no'   # quoted on purpose
num_machines: 2
num_processes: 16
"""

FSDP = """\
distributed_type: FSDP
fsdp_config:
  fsdp_version: 1
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_offload_params: true
  fsdp_activation_checkpointing: true
mixed_precision: bf16
num_processes: 4
"""


def values(source: AccelerateSource) -> dict[str, Any]:
    return {name: setting.value for name, setting in source.settings.items()}


def test_deepspeed(yaml_document: Read) -> None:
    source = read_accelerate(yaml_document(DEEPSPEED))
    assert values(source) == {
        "engine": "deepspeed",
        "gpus": 16,
        "nodes": 2,
        "mixed_precision": "no",
        "zero_stage": 2,
        "offload_optimizer": "cpu",
        "offload_param": "none",
        "gradient_accumulation_steps": AUTO,
        "max_grad_norm": 1.0,
        "zero3_init_flag": True,
    }
    assert str(source.settings["zero_stage"].provenance) == "accelerate.yaml:9"
    assert source.engine == "deepspeed"


def test_devices_in_any_case(yaml_document: Read) -> None:
    said = DEEPSPEED.replace("device: cpu", "device: None").replace("device: none", "device: CPU")
    found = values(read_accelerate(yaml_document(said)))
    assert (found["offload_optimizer"], found["offload_param"]) == ("none", "cpu")


def test_fsdp(yaml_document: Read) -> None:
    assert values(read_accelerate(yaml_document(FSDP))) == {
        "engine": "fsdp",
        "gpus": 4,
        "mixed_precision": "bf16",
        "fsdp": Fsdp(version=1, strategy="SHARD_GRAD_OP", cpu_offload=True),
        "gradient_checkpointing": True,
    }


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("", Fsdp()),
        ("fsdp_config:\n  fsdp_sharding_strategy: 2\n", Fsdp(strategy="SHARD_GRAD_OP")),
        ("fsdp_config:\n  sharding_strategy: NO_SHARD\n", Fsdp(strategy="NO_SHARD")),
        # Version 1 never sees this key: the launcher always exports a sharding strategy.
        ("fsdp_config:\n  fsdp_reshard_after_forward: SHARD_GRAD_OP\n", Fsdp()),
        ("fsdp_config:\n  fsdp_version: '2'\n", Fsdp(version=2)),
        ("fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n", Fsdp(2, "SHARD_GRAD_OP")),
        ("fsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: true\n", Fsdp(2, cpu_offload=True)),
    ],
)
def test_forms_of_fsdp(yaml_document: Read, section: str, expected: Fsdp) -> None:
    assert values(read_accelerate(yaml_document("distributed_type: FSDP\n" + section)))["fsdp"] == expected


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("MULTI_GPU", "ddp"),
        ("NO", "single"),
        ("'NO'", "single"),
        ("MEGATRON_LM", UNKNOWN),
        ("XLA", UNKNOWN),
        ("deepspeed", UNKNOWN),
        ("null", UNKNOWN),
    ],
)
def test_engines(yaml_document: Read, kind: str, engine: Any) -> None:
    assert read_accelerate(yaml_document(f"distributed_type: {kind}\n")).engine == engine


def test_no_distribution_is_one_process_whatever_the_file_says(yaml_document: Read) -> None:
    source = read_accelerate(yaml_document("distributed_type: 'NO'\nnum_processes: 8\n"))
    assert source.settings["gpus"].value == 1
    assert [old.value for old in source.settings["gpus"].overrode] == [8]


@pytest.mark.parametrize("processes", ["-1", "null"])
def test_processes_left_to_the_command_line(yaml_document: Read, processes: str) -> None:
    source = read_accelerate(yaml_document(f"distributed_type: MULTI_GPU\nnum_processes: {processes}\n"))
    assert "gpus" not in source.settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mixed_precision: no", "no"),
        ("mixed_precision: fp8", "fp8"),
        ("mixed_precision: float16", UNKNOWN),
        ("fp16: true", "fp16"),
        ("fp16: true\nmixed_precision: bf16", "bf16"),
    ],
)
def test_mixed_precision(yaml_document: Read, text: str, expected: Any) -> None:
    assert values(read_accelerate(yaml_document(f"distributed_type: NO\n{text}\n")))["mixed_precision"] == expected


def test_an_unread_section_states_nothing_unless_the_command_line_asks_for_it(yaml_document: Read) -> None:
    source = read_accelerate(yaml_document(DEEPSPEED.replace("DEEPSPEED", "MULTI_GPU")))
    assert "zero_stage" not in source.settings
    assert source.settings_for("deepspeed")["zero_stage"].value == 2
    assert "engine" not in source.settings_for("deepspeed")


def test_config_file(yaml_document: Read) -> None:
    text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds/zero3.json\n"
    source = read_accelerate(yaml_document(text))
    assert source.settings["deepspeed_config_file"].value == "ds/zero3.json"
    exclusive = {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu", "gradient_accumulation_steps": 2}
    exclusive |= {"max_grad_norm": 1.0, "zero3_save_16bit_model": True, "mixed_precision": "bf16"}
    for name, value in exclusive.items():
        assert source.write(name, value) is None
    assert source.write("gpus", 4) is not None


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n", "distributed_type: [a\n"])
def test_no_mapping_states_nothing(yaml_document: Read, text: str) -> None:
    assert values(read_accelerate(yaml_document(text))) == {}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (DEEPSPEED, {"zero_stage": 3}),
        (DEEPSPEED, {"offload_param": "cpu", "zero_stage": 3, "gradient_accumulation_steps": 4}),
        (DEEPSPEED, {"mixed_precision": "bf16", "gpus": 8, "nodes": 1}),
        ("distributed_type: DEEPSPEED\nnum_processes: 2\n", {"zero_stage": 3, "offload_optimizer": "cpu"}),
        (FSDP, {"fsdp": Fsdp(1, "FULL_SHARD", False)}),
        (FSDP, {"fsdp": Fsdp(2, "FULL_SHARD", True)}),
        ("distributed_type: FSDP\n", {"fsdp": Fsdp(2, "SHARD_GRAD_OP", True), "gradient_checkpointing": True}),
        (DEEPSPEED, {"max_grad_norm": AUTO}),
    ],
)
def test_what_is_written_is_read_back(yaml_document: Read, text: str, changes: dict[str, Any]) -> None:
    document = yaml_document(text)
    source = read_accelerate(document)
    edits = source.write_all(changes)
    assert edits is not None
    new = apply(text, [edit.edit for edit in edits])
    # FSDP without a word on wrapping would gather the whole model at once.
    wraps = {"fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"} if "fsdp" in changes else {}
    assert values(read_accelerate(yaml_document(new))) == {**values(source), **changes, **wraps}


def test_writing_keeps_the_rest_of_the_text(yaml_document: Read) -> None:
    edits = read_accelerate(yaml_document(DEEPSPEED)).write("zero_stage", 3)
    assert edits is not None
    assert apply(DEEPSPEED, [edit.edit for edit in edits]) == DEEPSPEED.replace("zero_stage: 2", "zero_stage: 3")


def test_what_the_file_cannot_say(yaml_document: Read) -> None:
    source = read_accelerate(yaml_document(DEEPSPEED))
    assert source.write("offload_optimizer", "nvme") is None
    assert source.write("fsdp", Fsdp()) is None
    assert source.write("seq_len", 1) is None
    assert read_accelerate(yaml_document("distributed_type: MULTI_GPU\n")).write("zero_stage", 3) is None
    assert read_accelerate(yaml_document("distributed_type: NO\n")).write("gpus", 8) is None
