"""The defaults of config keys: a file that a tool writes, of the architectures that the catalogue has."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pytest

from lintfit.catalog import architectures, config_defaults
from lintfit.catalog.config import Config
from tools import update_architectures as tool

FILE: dict[str, Any] = json.loads(config_defaults.DATA.read_text(encoding="utf-8"))


def test_the_file_says_where_it_is_from() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", FILE["transformers"])
    assert datetime.date.fromisoformat(FILE["date"]).year >= 2026


def test_a_line_is_read_as_the_whole_file_has_it() -> None:
    assert config_defaults.types() == tuple(sorted(FILE["defaults"]))
    for name, row in FILE["defaults"].items():
        assert config_defaults.defaults(name) == row


def test_what_a_type_states_itself_stands_over_its_class() -> None:
    assert config_defaults.defaults("llama")["vocab_size"] == 32000
    assert (
        config_defaults.defaults("llama", vocab_size=64000, bias=True).items()
        >= {"vocab_size": 64000, "bias": True}.items()
    )
    assert config_defaults.defaults("llama")["vocab_size"] == 32000


def test_every_row_is_of_an_architecture_and_every_key_one_that_is_read() -> None:
    assert set(FILE["defaults"]) <= {*architectures.names(), *tool.parts_asked()}
    keys = {key for row in FILE["defaults"].values() for key in row}
    assert keys <= tool.words_read()


@pytest.mark.parametrize("name", sorted(FILE["defaults"]))
def test_defaults_are_what_a_config_may_say(name: str) -> None:
    for value in FILE["defaults"][name].values():
        assert tool.plain(value)


def test_a_spelling_that_the_file_states_counts_before_the_default_of_another() -> None:
    config = Config({"num_local_experts": 8}, {"num_experts": 128}, "config.json")
    assert config.size("num_experts", "num_local_experts", kind="experts") == 8
    assert Config({}, {"num_experts": 128}, "config.json").size("num_local_experts", "num_experts") == 128


def test_a_config_inside_another_has_defaults_of_its_own() -> None:
    inner = config_defaults.defaults("qwen2_vl.vision_config")
    assert (inner["depth"], inner["embed_dim"], inner["patch_size"]) == (32, 1280, 14)
    assert "embed_dim" not in config_defaults.defaults("qwen2_vl")
    assert {"qwen2_vl.vision_config", "idefics2.perceiver_config"} <= set(tool.parts_asked())
    assert set(tool.parts_asked()) <= set(FILE["defaults"])


def test_strings_of_code_are_taken_for_keys_and_prose_is_not() -> None:
    assert tool.words("hidden_size") == ["hidden_size"]
    assert tool.words("\n  use_bias\n  use_cache\n") == ["use_bias", "use_cache"]
    assert tool.words("must be a whole number, at least 1") == []


@pytest.mark.peers
def test_the_file_is_what_the_tool_writes() -> None:
    transformers = pytest.importorskip("transformers")
    if transformers.__version__ != FILE["transformers"]:
        pytest.skip("written from another version")
    written = tool.text(tool.rows(), FILE["transformers"], datetime.date.fromisoformat(FILE["date"]))
    assert written == config_defaults.DATA.read_text(encoding="utf-8")
