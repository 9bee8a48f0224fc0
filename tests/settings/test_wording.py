"""Every change that a plan may make is said in a person's words, true to the values on both sides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from lintfit.settings.kinds import DEVICE, DTYPE, Choice, Count
from lintfit.settings.registry import SETTINGS, ZERO_SECTION
from lintfit.settings.said import SAID
from lintfit.settings.values import AS_LOADED, Fsdp
from lintfit.settings.wording import phrase, phrases, zero
from tests.support import ROOT

BEFORE: dict[str, Any] = {
    "method": "full",
    "lora_rank": 8,
    "lora_targets": None,
    "engine": "ddp",
    "zero_stage": 0,
    "offload_optimizer": "none",
    "offload_param": "none",
    "fsdp": None,
}
BY_NAME: dict[str, tuple[Any, ...]] = {
    "lora_targets": ("all-linear", ("q_proj", "v_proj"), None),
    "weights_dtype": ("fp32", "bf16", "fp16", AS_LOADED),
    "fsdp": (Fsdp(), Fsdp(2, "SHARD_GRAD_OP", cpu_offload=True), None),
    "eval_predictions": ("none", "kept"),
    "zero3_init": (True, False),
    "reference_model": (True, False),
    "whole_state_dict": (True, False),
    "optimizer": ("adamw_8bit", "paged_adamw_32bit"),
}
TYPED = {*ZERO_SECTION, "adamw_torch", *BY_NAME["optimizer"], "q_proj", "v_proj"}
"""Words with an underscore that a person writes into a file as they are."""


def _values(name: str) -> tuple[Any, ...]:
    kind = SETTINGS[name].kind
    if name in BY_NAME:
        return BY_NAME[name]
    if isinstance(kind, Choice):
        return kind.values
    assert isinstance(kind, Count) or name in ZERO_SECTION or name.startswith("eval_") or kind in (DEVICE, DTYPE)
    return (1, 2, 512)


CHANGES = [(name, value) for name in SAID for value in _values(name)]


@pytest.mark.parametrize(("name", "after"), CHANGES)
def test_every_change_has_a_phrase_without_spec_words(name: str, after: Any) -> None:
    was: Any = {"optimizer": "adamw_torch", "fsdp": Fsdp()}.get(name, BEFORE.get(name, 64))
    said = phrase(name, after, {**BEFORE, name: was}, {name: after})
    assert re.match(r"[a-z]+ \w", said), said
    assert "{" not in said
    allowed = {*TYPED, "FULL_SHARD", "SHARD_GRAD_OP"}
    assert {word.strip(",") for word in said.split() if "_" in word} <= allowed, said


@pytest.mark.parametrize("name", SAID)
def test_different_values_are_said_differently(name: str) -> None:
    said = [phrase(name, value, {**BEFORE, name: 64}, {name: value}) for value in _values(name)]
    assert len(set(said)) == len(said)


def test_all_that_the_axes_change_is_said() -> None:
    """The keys of settings in the planner's axes, and what follows from the micro-batch."""
    changed = {"gradient_accumulation_steps"}
    for module in (ROOT / "lintfit" / "fit" / "axes").glob("*.py"):
        changed |= set(_keys(ast.parse(module.read_text()))) & set(SETTINGS)
    assert {"zero3_init", "loop_outputs", "method", "sub_group_size", "nodes"} <= changed
    assert changed <= set(SAID)


def _keys(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Dict):
            yield from (key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)


def test_what_is_said_is_a_setting() -> None:
    assert SAID.keys() <= SETTINGS.keys()
    assert all(SETTINGS[name].said is said for name, said in SAID.items())


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("gradient_checkpointing", False, True, "turn on gradient checkpointing"),
        ("micro_batch_size", 8, 2, "lower the micro-batch from 8 to 2"),
        ("micro_batch_size", 2, 8, "raise the micro-batch from 2 to 8"),
        ("gradient_accumulation_steps", 4, 16, "accumulate 16 steps instead of 4"),
        ("gradient_accumulation_steps", 4, 1, "accumulate 1 step instead of 4"),
        ("weights_dtype", "fp32", "bf16", "load the weights in bf16"),
        ("offload_optimizer", "none", "cpu", "move the optimizer to the host"),
        ("seq_len", 2048, 1024, "cut sequences at 1024 tokens instead of 2048"),
        ("eval_accumulation_steps", None, 1, "move the evaluation's logits to the host after every batch"),
        ("fsdp", Fsdp(strategy="NO_SHARD"), Fsdp(), "switch from FSDP 1 NO_SHARD to FSDP 1 FULL_SHARD"),
    ],
)
def test_a_change_by_itself(name: str, before: Any, after: Any, expected: str) -> None:
    assert [each.text for each in phrases({name: after}, {name: before})] == [expected]


def test_adapters_are_one_thing_to_do() -> None:
    """Who trains all weights has no rank of adapters that could be raised."""
    changes = {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear", "weights_dtype": "bf16"}
    said = list(phrases(changes, {**BEFORE, "weights_dtype": "fp32"}))
    assert [each.text for each in said] == [
        "train LoRA adapters of rank 16 on all linear layers in place of all weights",
        "load the weights in bf16",
    ]
    assert said[0].settings == ("method", "lora_rank", "lora_targets")


def test_another_engine_is_one_thing_to_do() -> None:
    zero3 = {"engine": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "fsdp": None}
    (said,) = phrases(zero3, {**BEFORE, "engine": "fsdp", "fsdp": Fsdp()})
    assert said.text == "shard with DeepSpeed: ZeRO-3 with the optimizer on the host"
    (said,) = phrases({"engine": "fsdp", "fsdp": Fsdp(2)}, BEFORE)
    assert said.text == "shard with FSDP 2 FULL_SHARD"


@pytest.mark.parametrize(
    ("optimizer", "param", "expected"),
    [
        ("none", "none", "ZeRO-3"),
        ("cpu", "cpu", "ZeRO-3 with the optimizer and the parameters on the host"),
        ("nvme", "cpu", "ZeRO-3 with the parameters on the host, the optimizer on NVMe"),
    ],
)
def test_zero(optimizer: str, param: str, expected: str) -> None:
    assert zero({"zero_stage": 3, "offload_optimizer": optimizer, "offload_param": param}) == expected


def test_modules_of_the_same_layers_are_said_in_short() -> None:
    names = tuple(f"model.language_model.layers.{{}}.self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj"))
    said = phrase("method", "lora", BEFORE, {"method": "lora", "lora_rank": 8, "lora_targets": names})
    assert "on q_proj, k_proj and v_proj in the layers of model.language_model in place" in said
    mixed = ("model.language_model.layers.{}.q_proj", "model.visual.layers.{}.q_proj")
    said = phrase("method", "lora", BEFORE, {"method": "lora", "lora_rank": 8, "lora_targets": mixed})
    assert all(name in said for name in mixed)
