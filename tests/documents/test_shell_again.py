"""A script whose text was read a moment ago is not followed again, unless it takes something from other files."""

from pathlib import Path

import pytest

from lintfit.documents import shell_reader
from lintfit.documents.model import FileText
from lintfit.documents.shell_reader import read_shell
from lintfit.documents.shell_walk import Walk

PATH = Path("run.sh")


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were followed, in order."""
    found: list[str] = []

    def walk(file: FileText, *rest: object) -> Walk:
        found.append(file.text)
        return Walk(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(shell_reader, "Walk", walk)
    return found


def test_the_same_text_is_followed_once(followed: list[str]) -> None:
    text = "deepspeed train.py --once 1\n"
    files = FileText(PATH, text), FileText(PATH, text)
    opens = [lambda _: None, lambda _: None]
    first, second = (read_shell(file, open_text) for file, open_text in zip(files, opens, strict=True))
    assert followed == [text]
    assert first.commands == second.commands
    assert first is not second
    assert (first.file, second.file) == files
    assert first.file is files[0]
    assert second.file is files[1]
    assert [first.open_text, second.open_text] == opens


def test_a_text_by_another_name_is_followed_by_itself(followed: list[str]) -> None:
    text = "python $0 --named 1\n"
    names = [read_shell(FileText(Path(name), text)).path.name for name in ("a.sh", "b.sh")]
    assert names == ["a.sh", "b.sh"]
    assert len(followed) == 2


def test_what_sources_a_file_is_followed_each_time() -> None:
    text = "source common.sh\npython train.py --rate $RATE\n"
    found = []
    for rate in ("1", "2"):
        common = FileText(Path("common.sh"), f"RATE={rate}\n")
        document = read_shell(FileText(PATH, text), lambda path, common=common: common)  # type: ignore[misc]
        found.append(document.commands[-1].words[-1].value)
    assert found == ["1", "2"]


def test_what_looks_for_a_file_in_vain_is_followed_each_time() -> None:
    text = "source later.sh\npython train.py --size $SIZE\n"
    common = FileText(Path("later.sh"), "SIZE=2\n")
    found = [
        read_shell(FileText(PATH, text), open_text).commands[-1].words[-1].value
        for open_text in (lambda _: None, lambda _: common)
    ]
    assert found == [None, "2"]
