"""Which code reads a key: by every way that configs are read, and nothing that only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.workspace import Workspace
from lintfit.run import key_reads
from lintfit.run.key_reads import KeyReads, Read

CONFIG = Path("configs/ds.json")


def found(tmp_path: Path, files: dict[str, str], *path: str, config: Path = CONFIG) -> Read | None:
    for name, text in {CONFIG.as_posix(): "{}", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return KeyReads(Workspace(tmp_path)).of(config, path or ("my_section",))


@pytest.mark.parametrize(
    "line",
    [
        'config["my_section"]',
        "ds_config['my_section']['x']",
        'config.get("my_section", {})',
        'self.cfg.get(\n    "my_section")',
        'json.load(open(args.deepspeed))["my_section"]',
        'if "my_section" in config:',
        'getattr(config, "my_section")',
        "EasyDict(config).my_section.x",
        "cfg.my_section",
        'OmegaConf.select(cfg, "my_section.x")',
        'data = json.load(file)\nprint(data["my_section"])',
        'data = yaml.safe_load(file)\nprint(data["my_section"])',
        'config["my_section"]["x"] = 1',
    ],
)
def test_code_that_reads_a_key(line: str, tmp_path: Path) -> None:
    read = found(tmp_path, {"src/train.py": f"import json\n{line}\n"})
    assert read is not None
    assert read.sure
    assert not read.takes
    assert read.where == f"src/train.py:{2 + line.count(chr(10))}"


@pytest.mark.parametrize(
    "line", ['config.pop("my_section")', 'ds_config.pop("my_section", None)', 'del cfg["my_section"]']
)
def test_code_that_takes_a_key_out(line: str, tmp_path: Path) -> None:
    read = found(tmp_path, {"train.py": f'config["my_section"]\n{line}\n'})
    assert read is not None
    assert read.takes
    assert read.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "jq .my_section configs/ds.json\n",
        "N=$(jq -r '.my_section.x' configs/ds.json)\n",
        "jq '.a\n  | .my_section' configs/ds.json\n",
        "jq '.[\"my_section\"]' configs/ds.json\n",
        "grep -q my_section configs/ds.json\n",
        "python -c \"import json; print(json.load(open('configs/ds.json'))['my_section'])\"\n",
    ],
)
def test_shell_that_reads_a_key(text: str, tmp_path: Path) -> None:
    read = found(tmp_path, {"run.sh": text})
    assert read is not None
    assert read.sure


def test_a_notebook_that_reads_a_key(tmp_path: Path) -> None:
    cell = '{"cells": [{"cell_type": "code", "source": [\n"config[\\"my_section\\"]"]}]}'
    assert found(tmp_path, {"train.ipynb": cell}) == Read(Path("train.ipynb"), 2)


@pytest.mark.parametrize(
    "line",
    [
        'SECTION = "my_section"',
        'for name in ("a", "my_section"): print(config[name])',
        'data["my_section"]',
        'read(config, "my_section")',
    ],
)
def test_a_name_in_a_file_that_opens_configs_may_be_read(line: str, tmp_path: Path) -> None:
    read = found(tmp_path, {"train.py": f"config = json.load(file)\n{line}\n"})
    assert read is not None
    assert not read.sure
    assert found(tmp_path, {"train.py": line.replace("config", "table")}) is None


@pytest.mark.parametrize(
    "line",
    [
        '# config["my_section"]',
        'config["my_section"] = 1',
        'config = {"my_section": 1}',
        'parser.add_argument("--my_section")',
        'json.load(open("my_section.json"))',
        'config["my_section_too"]',
        "torch.my_section",
        "config.my_section()",
        "model.config.my_section",
        "my_section = 1",
    ],
)
def test_what_reads_no_key(line: str, tmp_path: Path) -> None:
    assert found(tmp_path, {"train.py": f"import json\n{line}\n"}) is None


def test_a_key_of_a_section_is_read_through_the_section(tmp_path: Path) -> None:
    files = {"train.py": 'config["stage"]\n'}
    assert found(tmp_path, files, "zero_optimization", "stage") is None
    files = {"train.py": 'zero = config["zero_optimization"]\n', "zero.py": 'zero_config["stage"]\n'}
    read = found(tmp_path, files, "zero_optimization", "stage")
    assert read is not None
    assert read.where == "zero.py:1"


def test_the_tree_is_the_repository_around_the_file(tmp_path: Path) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    config = Path("one/configs/ds.json")
    files = {"one/configs/ds.json": "{}", "two/train.py": 'config["my_section"]\n'}
    assert found(tmp_path, files, config=config) is None
    read = found(tmp_path, {**files, "one/src/train.py": 'config["my_section"]\n'}, config=config)
    assert read is not None
    assert read.where == "one/src/train.py:1"


@pytest.mark.parametrize("folder", [".venv", "node_modules", "tests"])
def test_folders_that_are_not_searched(folder: str, tmp_path: Path) -> None:
    assert found(tmp_path, {f"{folder}/train.py": 'config["my_section"]\n'}) is None


def test_code_of_tests_reads_the_configs_of_tests(tmp_path: Path) -> None:
    for name in ("ds.json", "tests/ds.json", "tests/test_train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('config["my_section"]')
    reads = KeyReads(Workspace(tmp_path))
    assert reads.of(Path("ds.json"), ("my_section",)) is None
    assert reads.of(Path("tests/ds.json"), ("my_section",)) is not None


def test_the_nearest_code_is_searched_first_and_not_all_of_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_reads, "MAX_FILES", 3)
    for name in [CONFIG.as_posix(), *(f"a{number}.py" for number in range(4)), "configs/read.py"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "configs/read.py").write_text('config["my_section"]')
    reads = KeyReads(Workspace(tmp_path))
    read = reads.of(CONFIG, ("my_section",))
    assert read is not None
    assert read.where == "configs/read.py:1"
    assert not reads.whole(CONFIG)
    monkeypatch.setattr(key_reads, "MAX_FILES", 5)
    assert KeyReads(Workspace(tmp_path)).whole(CONFIG)
