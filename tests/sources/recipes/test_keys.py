"""Keys of a front end, over each other and written back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import UNKNOWN
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.keys import Keys, Stated, of_flag, scalar, spelled

COMMAND = "litgpt finetune_lora m --lora_r 8"
CONFIG = "lora_r: 4\ntrain:\n  micro_batch_size: 2\n"
Read = Callable[[str], ShellDocument]


@pytest.fixture
def keys(shell_document: Read) -> Keys:
    (launch,) = read_launches(shell_document(COMMAND))
    found = Keys(launch)
    found.read(read_yaml(FileText(Path("c.yaml"), CONFIG)), ("lora_r", "train.micro_batch_size", "precision"))
    for flag in launch.flags:
        found.put(flag.name, Stated(int(flag.value or 0), of_flag(flag), flag))
    return found


def test_what_comes_later_stands_over_what_was_there(keys: Keys) -> None:
    rank = keys.get("lora_r")
    assert rank is not None
    setting = rank.setting("lora_rank", rank.value)
    assert setting.value == 8
    assert [beaten.value for beaten in setting.overrode] == [4]
    assert "precision" not in keys


@pytest.mark.parametrize(
    ("key", "value", "changed", "text"),
    [
        ("lora_r", 16, COMMAND, "litgpt finetune_lora m --lora_r 16"),
        ("train.micro_batch_size", 1, CONFIG, "lora_r: 4\ntrain:\n  micro_batch_size: 1\n"),
        ("precision", "bf16-true", CONFIG, "lora_r: 4\ntrain:\n  micro_batch_size: 2\nprecision: bf16-true\n"),
    ],
)
def test_a_key_is_written_where_it_is_stated(keys: Keys, key: str, value: Any, changed: str, text: str) -> None:
    edits = keys.write(key, value)
    assert edits is not None
    assert apply(changed, [edit.edit for edit in edits]).rstrip() == text.rstrip()


def test_without_a_config_a_flag_is_added(shell_document: Read) -> None:
    (launch,) = read_launches(shell_document(COMMAND))
    edits = Keys(launch).write("train.micro_batch_size", 1)
    assert edits is not None
    assert "--train.micro_batch_size 1" in apply(COMMAND, [edit.edit for edit in edits])


@pytest.mark.parametrize(("value", "words"), [(True, "true"), (None, "null"), (0.5, "0.5"), ("nf4", "nf4")])
def test_the_words_of_a_value(value: Any, words: str) -> None:
    assert spelled(value) == words
    assert spelled(None, none="None") == "None"


@pytest.mark.parametrize(("text", "said"), [("True", True), ("null", None), ("1e-5", 1e-5), ("8", 8), ("bf16", "bf16")])
def test_a_flag_as_a_yaml_scalar(text: str, said: Any) -> None:
    assert scalar(text) == said and type(scalar(text)) is type(said)


def test_defaults_stand_below_all_and_are_not_known_beside_a_missing_file(shell_document: Read) -> None:
    (launch,) = read_launches(shell_document("litgpt finetune_lora m --lora_r 8 --config gone.yaml"))
    found = Keys(launch, defaults={"lora_r": 4, "devices": 2}, whose="its default")
    assert (found.found("devices").value, found.found("devices").provenance.detail) == (2, "its default")
    found.read_in_order(lambda name: None, ("devices",))
    assert found.missing is not None and found.missing.value == "gone.yaml"
    assert (found.count("lora_r"), found.count("devices")) == (8, None)
    assert found.number("gpus", "devices").value is UNKNOWN
