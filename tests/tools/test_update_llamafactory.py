"""What is read of LLaMA-Factory's source: from a repository of one release and a newer commit that is made here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lintfit.sources.recipes.llamafactory_arguments import SEQ2SEQ
from tools.update_llamafactory import DATA, SCHEMA, schema, table
from tools.update_swift import Repository

CONSTANTS = """
from enum import Enum

class QuantizationMethod(str, Enum):
    BNB = "bnb"
    HQQ = "hqq"
"""
MODEL = """
from dataclasses import dataclass, field
from ..extras.constants import QuantizationMethod

@dataclass
class ProcessorArguments:
    image_max_pixels: int = field(default=768 * 768)

@dataclass
class ModelArguments(ProcessorArguments):
    quantization_method: QuantizationMethod = field(default=QuantizationMethod.BNB)
    cutoff_len: int = field(default=1024)
    compute_dtype: str = field(default=None, init=False)
    vllm_config: dict | str | None = field(default=None)
    lora_target: str = field(default="all")

    def __post_init__(self):
        self.lora_target = split_arg(self.lora_target)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A release with one length by default, and a commit with another."""
    source = tmp_path / "src" / "llamafactory"
    texts = {
        "hparams/model_args.py": MODEL,
        "extras/constants.py": CONSTANTS,
        "extras/env.py": 'VERSION = "0.9.6.dev0"\n',
    }
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    config = tmp_path / "examples" / "deepspeed" / "ds_z2_config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"zero_optimization": {"stage": 2}}')

    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    git("tag", "v0.9.0")
    (source / "hparams/model_args.py").write_text(MODEL.replace("1024", "2048"))
    git("commit", "-am", "two")
    return Repository(tmp_path)


def test_fields_by_version(repository: Repository) -> None:
    made = table(repository)
    assert made["versions"] == ["0.9.0", "0.9.6.dev0"]
    assert made["fields"]["cutoff_len"] == [[0, "int", 1024], [1, "int", 2048]]
    assert made["fields"]["quantization_method"] == [[0, "=bnb|hqq", "bnb"]]
    assert made["fields"]["image_max_pixels"] == [[0, "int", 768 * 768]]
    assert "compute_dtype" not in made["fields"]
    assert made["deepspeed"] == {"ds_z2_config.json": {"zero_optimization": {"stage": 2}}}


def test_the_schema_has_the_newest_keys(repository: Repository) -> None:
    made = schema(table(repository))
    assert made["properties"]["cutoff_len"] == {"type": ["integer", "null"], "default": 2048}
    assert made["properties"]["quantization_method"]["enum"] == ["bnb", "hqq", None]
    assert "per_device_train_batch_size" in made["properties"]
    assert made["additionalProperties"] is False


def test_a_file_may_have_lists_and_mappings(repository: Repository) -> None:
    made = schema(table(repository))["properties"]
    assert made["lora_target"] == {"type": ["string", "array", "null"], "default": "all"}
    assert made["vllm_config"]["type"] == ["string", "object", "null"]
    assert made["gradient_checkpointing_kwargs"]["type"] == ["string", "object", "null"]
    assert "array" in made["report_to"]["type"]


def test_transformers_own_fields(repository: Repository) -> None:
    made = schema(table(repository))["properties"]
    assert set(made) >= SEQ2SEQ
    assert "_n_gpu" not in made  # no argument of the constructor


def test_the_schema_that_comes_along_is_that_of_the_table() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(json.loads(DATA.read_text(encoding="utf-8")))
