"""Configs that Hydra composes for a script's function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.workspace import Workspace
from lintfit.settings.model import UNKNOWN
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.script.source import ScriptSource, read_script
from tests.sources.scripts import values

TRAIN = """
import hydra
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

@hydra.main(config_path="conf", config_name="config.yaml", version_base=None)
def main(config):
    steps = config.run.steps
    made = TrainingArguments("o", per_device_train_batch_size=config.batch, gradient_accumulation_steps=steps)
    Trainer(model=AutoModelForCausalLM.from_pretrained(config.model.name), args=made).train()

if __name__ == "__main__":
    main()
"""
FILES = {
    "train.py": TRAIN,
    "conf/config.yaml": "defaults:\n  - model: small\n  - run: short\nbatch: 4\n",
    "conf/other.yaml": "defaults:\n  - config\n  - _self_\nbatch: 16\n",
    "conf/model/small.yaml": "name: s\n",
    "conf/model/large.yaml": "name: l\n",
    "conf/run/short.yaml": "steps: 2\n",
    "conf/run/long.yaml": "defaults:\n  - short\nsteps: 8\n",
    "conf/bare.yaml": "run:\n  steps: 2\nbatch: 4\n",
    "conf/extra/whole.yaml": "# @package _global_\nbatch: 32\nrun:\n  steps: 64\n",
}


def read(folder: Path, line: str, files: Mapping[str, str] = FILES) -> ScriptSource:
    for name, text in {**files, "run.sh": f"torchrun train.py {line}\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text))
    workspace = Workspace(folder)
    document, launch = workspace.read(Path("train.py")), read_launches(workspace.read(Path("run.sh")))[0]
    assert isinstance(document, PythonDocument)

    def opened(path: Path) -> Document | None:
        return workspace.read(path) if workspace.exists(path) else None

    def data(name: str, kind: Kind) -> DataDocument | None:
        found = opened(Path(name))
        return found if isinstance(found, DataDocument) else None

    return read_script(
        document,
        launch.flags,
        has_launch=True,
        positional=launch.positional,
        overrides=launch.overrides,
        open_file=opened,
        open_data=data,
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ("s", 4, 2)),
        ("model=large run.steps=3", ("l", 4, 3)),
        ("run=long batch=1", ("s", 1, 8)),
        ("--config-name other", ("s", 16, 2)),
        ("--config-name=other model=large batch=2", ("l", 2, 2)),
        ("+extra=whole", ("s", 32, 64)),
        ("--config-name bare +model=large", ("l", 4, 2)),
        ("++batch=5", ("s", 5, 2)),
        ("model=missing", (UNKNOWN, 4, 2)),
        ("--config-name missing", (UNKNOWN, UNKNOWN, UNKNOWN)),
        ("batch=$B", ("s", UNKNOWN, 2)),
    ],
)
def test_what_the_command_line_makes_of_the_files(tmp_path: Path, line: str, expected: tuple[object, ...]) -> None:
    found = values(read(tmp_path, line))
    names = ("model", "micro_batch_size", "gradient_accumulation_steps")
    assert tuple(found.get(name, UNKNOWN) for name in names) == expected


def test_files_that_name_each_other_end(tmp_path: Path) -> None:
    files = {**FILES, "conf/config.yaml": "defaults:\n  - other\nbatch: 4\n"}
    assert values(read(tmp_path, "", files))["micro_batch_size"] == 4


def test_a_value_points_to_its_file_or_word(tmp_path: Path) -> None:
    found = read(tmp_path, "model=large batch=2").settings
    places = [found[name].provenance.place for name in ("model", "micro_batch_size")]
    assert [place.document.path.as_posix() for place in places if place] == ["conf/model/large.yaml", "run.sh"]


def test_a_word_of_a_sourced_file_counts_and_is_not_edited(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "common.sh").write_text('WORDS="model=large batch=2"\n')
    (tmp_path / "run.sh").write_text("source common.sh\ntorchrun train.py $WORDS\n")
    workspace = Workspace(tmp_path)
    launch = read_launches(workspace.read(Path("run.sh")))[0]
    assert [(word.name, word.value, word.value_place) for word in launch.overrides] == [
        ("model", "large", None),
        ("batch", "2", None),
    ]


OVERRIDES = {
    **FILES,
    "conf/config.yaml": "defaults:\n  - model: small\n  - run: short\n  - experiment: null\n  - _self_\nbatch: 4\n",
    "conf/experiment/big.yaml": "# @package _global_\ndefaults:\n  - override /model: large\n  - override /run: long\n",
    "conf/inner/size.yaml": "steps: 7\n",
    "conf/nested.yaml": "defaults:\n  - model: small\n  - outer\nbatch: 4\n",
    "conf/outer.yaml": "# @package run\ndefaults:\n  - inner@_here_: size\n",
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ("s", 4, 2)),
        ("experiment=big", ("l", 4, 8)),
        ("experiment=big.yaml run=short", ("l", 4, 2)),
        ("experiment=$WHICH", (UNKNOWN, 4, UNKNOWN)),
        ("run=$RUN", ("s", 4, UNKNOWN)),
        ("--config-name nested", ("s", 4, 7)),
    ],
)
def test_choices_of_other_files_and_of_nobody(tmp_path: Path, line: str, expected: tuple[object, ...]) -> None:
    found = values(read(tmp_path, line, OVERRIDES))
    names = ("model", "micro_batch_size", "gradient_accumulation_steps")
    assert tuple(found.get(name, UNKNOWN) for name in names) == expected
