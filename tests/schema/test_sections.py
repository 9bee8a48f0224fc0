from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText, Node
from lintfit.documents.yaml_reader import read_yaml
from lintfit.schema.sections import Older, SchemaName, load, outdated_keys, unknown_keys
from lintfit.versions import before

NAMES: tuple[SchemaName, ...] = ("deepspeed", "accelerate")


def root_of(text: str, name: SchemaName = "deepspeed") -> Node:
    file = FileText(Path("x"), text)
    document: DataDocument = read_json(file) if name == "deepspeed" else read_yaml(file)
    assert document.root is not None
    return document.root


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_valid(name: SchemaName) -> None:
    Draft202012Validator.check_schema(load(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_property_is_described(name: SchemaName) -> None:
    def undescribed(schema: dict[str, object], path: tuple[str, ...]) -> list[tuple[str, ...]]:
        properties = schema.get("properties")
        found = []
        for key, child in properties.items() if isinstance(properties, dict) else ():
            found += [] if child.get("description") else [(*path, key)]
            found += undescribed(child, (*path, key))
        return found

    schema = load(name)
    sections = schema.get("$defs", {"top": schema})
    assert [path for section in sections.values() for path in undescribed(section, ())] == []


def test_misspelt_top_level_key_is_ignored() -> None:
    (found,) = unknown_keys(
        root_of('{"zero_optimisation": {"stage": 3}, "bf16": {"enabled": true}}'), load("deepspeed")
    )
    assert (found.path, found.suggestion, found.forbidden) == (("zero_optimisation",), "zero_optimization", False)


def test_misspelt_nested_key_is_refused() -> None:
    (found,) = unknown_keys(root_of('{"zero_optimization": {"stgae": 3}}'), load("deepspeed"))
    assert (found.path, found.suggestion, found.forbidden) == (("zero_optimization", "stgae"), "stage", True)


def test_key_of_another_section_names_its_home() -> None:
    (found,) = unknown_keys(root_of('{"round_robin_gradients": true}'), load("deepspeed"))
    assert (found.suggestion, found.home) == (None, ("zero_optimization",))


def test_loss_scale_in_bf16_is_refused_since_a_version() -> None:
    (found,) = unknown_keys(root_of('{"bf16": {"enabled": true, "loss_scale": 0}}'), load("deepspeed"))
    assert (found.home, found.forbidden, found.forbidden_since) == (("fp16",), True, "0.17.1")


@pytest.mark.parametrize(
    "text",
    [
        '{"_note": 1, "comment": 2, "$schema": "x", "//": "y"}',
        '{"activation_checkpointing": {"comment": "x"}}',
        '{"optimizer": {"type": "Adam", "params": {"lr": 1, "use_lr_schedule": true}}}',
        '{"autotuning": {"anything": 1}, "msamp": {"enabled": true}, "inference": {}}',
        '{"num-layers": 1, "hidden-size": 2, "seq-length": 3, "zero_optimization": {"stage": 1}}',
        '{"bfloat16": {"enabled": true}}',
    ],
)
def test_known_and_foreign_keys_are_quiet(text: str) -> None:
    assert list(unknown_keys(root_of(text), load("deepspeed"))) == []


def test_nested_typo_of_a_megatron_config_is_found() -> None:
    text = '{"num-layers": 1, "hidden-size": 2, "seq-length": 3, "zero_optimization": {"stagee": 1}}'
    assert [found.suggestion for found in unknown_keys(root_of(text), load("deepspeed"))] == ["stage"]


def test_old_keys() -> None:
    text = '{"amp": {"enabled": false}, "zero_optimization": {"cpu_offload": true, "stage": 2}}'
    found = {
        outdated.path: (outdated.renamed_to, outdated.removed_in)
        for outdated in outdated_keys(root_of(text), load("deepspeed"))
    }
    assert found == {("amp",): (None, "0.19.8"), ("zero_optimization", "cpu_offload"): ("offload_optimizer", None)}


def test_accelerate_refuses_at_the_top_and_ignores_below() -> None:
    text = "distributed_type: DEEPSPEED\nnum_procesess: 2\ndeepspeed_config:\n  zero_stag: 3\n"
    found = list(unknown_keys(root_of(text, "accelerate"), load("accelerate")))
    assert [(one.suggestion, one.forbidden) for one in found] == [("num_processes", True), ("zero_stage", False)]


def test_sagemaker_has_its_own_keys() -> None:
    text = "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: NO\nec2_instance_type: ml.p4d.24xlarge\n"
    assert list(unknown_keys(root_of(text, "accelerate"), load("accelerate"))) == []
    local = text.replace("AMAZON_SAGEMAKER", "LOCAL_MACHINE")
    assert [one.entry.key for one in unknown_keys(root_of(local, "accelerate"), load("accelerate"))] == [
        "ec2_instance_type"
    ]


def test_prefixes_may_be_left_out_where_the_launcher_adds_them() -> None:
    text = "distributed_type: FSDP\nfsdp_config:\n  offload_params: true\nparallelism_config:\n  tp_size: 2\n"
    found = list(unknown_keys(root_of(text, "accelerate"), load("accelerate")))
    assert [one.path for one in found] == [("parallelism_config", "tp_size")]


def test_removed_keys_are_refused_by_the_schema_itself() -> None:
    validator = Draft202012Validator(load("deepspeed"))
    assert not validator.is_valid({"amp": {"enabled": False}})
    assert not validator.is_valid({"zero_optimization": {"mics_shard_size": 4}})


def older_than(version: str) -> Older:
    return lambda bound: before(version, bound)


def test_a_key_newer_than_the_library_is_said_to_be_that() -> None:
    root = root_of('{"zero_optimization": {"zenflow": {"topk_ratio": 0.1}}}')
    (found,) = unknown_keys(root, load("deepspeed"), older_than("0.17.1"))
    assert (found.path, found.since, found.forbidden) == (("zero_optimization", "zenflow"), "0.17.5", True)
    assert list(unknown_keys(root, load("deepspeed"), older_than("0.19.8"))) == []
    assert list(unknown_keys(root, load("deepspeed"))) == []


def test_what_was_not_yet_refused() -> None:
    root = root_of('{"bf16": {"enabled": true, "loss_scale": 0}}')
    (found,) = unknown_keys(root, load("deepspeed"), older_than("0.16.9"))
    assert not found.forbidden
    (found,) = unknown_keys(root, load("deepspeed"), older_than("0.17.1"))
    assert found.forbidden


def test_versions_in_the_schemas_are_versions() -> None:
    def markers(schema: object) -> Iterator[str]:
        if isinstance(schema, dict):
            for key, value in schema.items():
                if key.endswith("-since") or key in ("x-removed-in", "x-version"):
                    yield value
                else:
                    yield from markers(value)

    for name in NAMES:
        assert all(re.fullmatch(r"\d+\.\d+(\.\d+)?", version) for version in markers(load(name)))
