"""TOML within bounds of time: what tomllib would take hours over is refused in a line, all else read as ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lintfit.documents.toml import MOST_PARTS, TomlError, parse
from tests.support import ROOT, lintfit

CHAIN = "a" + ".b" * MOST_PARTS


def test_what_is_read() -> None:
    assert parse('a.b = 1\n["x".y]\nz = "1.2.3.4.5.6.7.8.9.10.11.12.13"\n')["x"]["y"]["z"].count(".") == 12
    assert parse((ROOT / "pyproject.toml").read_text())["project"]["name"] == "lintfit"


@pytest.mark.parametrize(
    "quoted", [f'"{CHAIN}"', f"'{CHAIN}'", f'"""\n{CHAIN}\n"""', f"'''\n{CHAIN}\n'''", f"1 # {CHAIN}"]
)
def test_texts_and_comments_are_no_keys(quoted: str) -> None:
    assert set(parse(f"k = {quoted}\nn = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5]\n")) == {
        "k",
        "n",
    }


@pytest.mark.parametrize(
    "text", [f"{CHAIN} = 1", f"[{CHAIN}]", f"[[{CHAIN}]]", f"x = {{{CHAIN} = 1}}", CHAIN.replace(".", " . ")]
)
def test_a_key_of_many_parts(text: str) -> None:
    with pytest.raises(TomlError, match="more than 10 parts") as found:
        parse(f"# one\n{text}\n")
    assert found.value.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".b" * 200_000 + "=1",
        '"\\' * 300_000,
        '"""' * 200_000,
        "'" * 600_000,
        '"' * 600_001,
        "a" * 600_000,
        "a. " * 200_000,
    ],
    ids=range(7),
)
def test_nothing_takes_long(text: str) -> None:
    before = time.process_time()
    with pytest.raises(TomlError):
        parse(text)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("name", ["lintfit.toml", "pyproject.toml"])
def test_a_config_of_such_a_key_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("[tool.lintfit]\n" * (name != "lintfit.toml") + "a" + ".b" * 100_000 + " = 1\n")
    outcome = lintfit("check", ".", cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.err.startswith(f"lintfit: {name}:{1 if name == 'lintfit.toml' else 2}: not TOML that can be read")
