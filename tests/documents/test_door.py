from __future__ import annotations

import os
from pathlib import Path

import pytest

from lintfit.documents.door import read_regular
from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_regular(tmp_path / "a", 3) == b"abc"
    (tmp_path / "link").symlink_to("a")
    assert read_regular(tmp_path / "link", 3) == b"abc"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_file_that_says_nothing_of_its_size() -> None:
    whole = read_regular(Path("/proc/self/status"), 1 << 20)
    assert whole.startswith(b"Name:") and whole.count(b"\n") > 10
    with pytest.raises(OSError, match="larger than"):
        read_regular(Path("/proc/self/status"), 20)


def test_a_file_that_is_larger(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(6 * 2**30)
    with pytest.raises(OSError, match="larger than 4 MiB"):
        read_regular(tmp_path / "a", 4 * 2**20)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "pipe", "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path, "is a directory"),
        (tmp_path / "none", "No such file"),
        (Path("a\0b"), "no file's name"),
        (Path("\ud800"), "no file's name"),
    ):
        with pytest.raises(OSError, match=why):
            read_regular(path, 10)


@pytest.mark.parametrize(
    "flag", ["--model-config=pipe", "--model-config=/dev/zero", "--baseline=pipe", "--baseline=/dev/zero"]
)
def test_flags_that_name_no_file(flag: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "train.py").write_text(SCRIPT)
    outcome = lintfit("check", ".", "--isolated", flag, cwd=tmp_path)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "is not a regular file" in outcome.err


def test_configs_and_requirements_that_are_no_files(tmp_path: Path) -> None:
    """Found beside the files, and nothing that anybody asked for: the check goes on without them."""
    os.mkfifo(tmp_path / "lintfit.toml")
    os.mkfifo(tmp_path / "requirements.txt")
    with (tmp_path / "pyproject.toml").open("wb") as file:
        file.truncate(6 * 2**30)
    (tmp_path / "train.py").write_text(SCRIPT)
    outcome = lintfit("check", ".", "--seq-len", "2048", cwd=tmp_path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "train.py" in outcome.out
