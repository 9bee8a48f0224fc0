"""What people write for a value where a spec has another word."""

from __future__ import annotations

import pytest

from lintfit.settings.registry import SETTINGS
from lintfit.settings.spellings import is_switch, spelled, takes_no_value


@pytest.mark.parametrize(
    ("name", "text", "meant"),
    [
        ("seq_len", "4k", "4096"),
        ("seq_len", "1.5K", "1536"),
        ("seq_len", "4096", "4096"),
        ("weights_dtype", "bfloat16", "bf16"),
        ("mixed_precision", "float16", "fp16"),
        ("mixed_precision", "no", "no"),
        ("quantization", "4bit", "nf4"),
        ("quantization", "8-bit", "int8"),
        ("quantization", "gptq-int4", "gptq-int4"),
        ("attention", "Flash", "flash_attention_2"),
        ("gradient_checkpointing", "yes", "true"),
        ("gradient_checkpointing", "selective", "selective"),
        ("use_cache", "off", "false"),
        ("zero_stage", "1", "1"),
        ("micro_batch_size", "4k", "4k"),
    ],
)
def test_spellings(name: str, text: str, meant: str) -> None:
    assert spelled(name, text) == meant


def test_switches() -> None:
    assert takes_no_value("gradient_checkpointing") and takes_no_value("use_cache")
    assert not takes_no_value("zero_stage"), "1 is a stage, not a switch"
    assert is_switch("True") and is_switch("selective") and not is_switch("train.py")


def test_other_names_of_flags_are_nobody_elses() -> None:
    named = [name for record in SETTINGS.values() for name in (record.option, *record.aliases)]
    assert len(named) == len(set(named))
