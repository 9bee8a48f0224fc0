"""The report of what the schemas lack: nothing today, and something as soon as a key, a word or a default is gone."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lintfit.schema.sections import load

pytestmark = pytest.mark.peers

TOOL = Path(__file__).parents[1] / "tools" / "update_schemas.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    pytest.importorskip("deepspeed")
    pytest.importorskip("accelerate")
    specification = importlib.util.spec_from_file_location("update_schemas", TOOL)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    import sys

    sys.modules["update_schemas"] = module
    specification.loader.exec_module(module)
    return module


def test_nothing_is_lacking(tool: ModuleType) -> None:
    assert list(tool.differences(["deepspeed", "accelerate"])) == []


def test_what_is_taken_out_is_missed(tool: ModuleType) -> None:
    schema: dict[str, Any] = copy.deepcopy(dict(load("deepspeed")))
    zero = schema["properties"]["zero_optimization"]["properties"]
    del zero["overlap_comm"], zero["offload_optimizer"]["properties"]["ratio"]
    del (
        schema["properties"]["gradient_allreduce_op"],
        schema["properties"]["activation_checkpointing"]["properties"]["profile"],
    )
    zero["sub_group_size"]["default"] = 7
    zero["stage"]["enum"] = [0, 1]
    zero["made_up"] = {"type": "boolean"}
    lines = "\n".join(tool.deepspeed(schema))
    for part in (
        "zero_optimization.overlap_comm is missing",
        "zero_optimization.offload_optimizer.ratio is missing",
        "gradient_allreduce_op is read and missing",
        "activation_checkpointing.profile is read and missing",
        "zero_optimization.sub_group_size: default is 7",
        "zero_optimization.stage: words 2, 3 are missing",
        "zero_optimization.made_up is no longer a field",
    ):
        assert part in lines


def test_accelerates_keys_are_missed(tool: ModuleType) -> None:
    schema: dict[str, Any] = copy.deepcopy(dict(load("accelerate")))
    cluster = schema["$defs"]["cluster"]["properties"]
    del cluster["num_machines"], cluster["fsdp_config"]["properties"]["fsdp_version"]
    lines = "\n".join(tool.accelerate(schema))
    assert "num_machines is a field of ClusterConfig and missing" in lines
    assert "fsdp_config.fsdp_version is an argument of accelerate launch and missing" in lines
