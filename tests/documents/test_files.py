"""Reading and writing files: bad input in one line, the same bytes back, all files or none."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.documents import files
from lintfit.documents.files import ReadError, WriteError, encode, kind_of, read_text, write_files, write_whole
from lintfit.documents.model import FileText, Kind
from lintfit.documents.workspace import Workspace
from lintfit.errors import LintfitError


def reason(path: Path) -> str:
    with pytest.raises(ReadError) as caught:
        read_text(path)
    message = str(caught.value)
    assert message.startswith(path.as_posix() + ": ") and "\n" not in message
    return caught.value.reason


def test_what_is_no_file_is_said_in_one_line(tmp_path: Path) -> None:
    assert reason(tmp_path / "missing.json") == "no such file"
    (tmp_path / "x.json").mkdir()
    assert reason(tmp_path / "x.json") == "is a directory, not a file"
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    assert reason(tmp_path / "a.json") == "its symbolic links lead in a circle"
    assert reason(tmp_path / "x.json" / "y.json") == "no such file"
    os.mkfifo(tmp_path / "pipe.json")
    assert reason(tmp_path / "pipe.json") == "is not a regular file"
    assert "too long" in reason(tmp_path / ("x" * 300 + ".json"))
    assert "NUL" in reason(Path("a\0.json"))


def test_no_permission_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert reason(path) == "no permission to read it"


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:9e57d60e\nsize 502\n"


def test_a_text_that_begins_like_a_pointer_and_is_longer_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_bytes(POINTER + b"# " + b"x" * 1024)
    assert read_text(path).text.startswith("version")


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.json", b"\x7fELF\0\0", "is binary, not text"),
        ("a.json", b'{\n"a": "\xe9"}', "line 2: byte 0xe9 is not utf-8: JSON must be UTF-8"),
        ("a.yaml", b"a: \xe9\n", "line 1: byte 0xe9 is not utf-8: YAML must be UTF-8"),
        ("a.py", b"# -*- coding: nonsense -*-\n", "its coding cookie names an unknown encoding: nonsense"),
        ("a.py", b"x = '\xe9'\n", "line 1: byte 0xe9 is not utf-8: save it as UTF-8 or declare its encoding"),
        ("a.json", POINTER, "only a Git LFS pointer to it is here"),
        ("a.yaml", POINTER, "only a Git LFS pointer to it is here"),
        ("a.ipynb", POINTER, "only a Git LFS pointer to it is here"),
        ("a.sh", POINTER.replace(b"\n", b"\r\n"), "only a Git LFS pointer to it is here"),
        ("a.json", b" " * ((2 << 20) + 1), "larger than 2 MiB: not a config"),
        ("a.py", b" " * ((4 << 20) + 1), "larger than 4 MiB: no training script"),
        ("a.json", b"\xff\xfe{\0", "is not utf-16-le"),
        ("a.py", "\ufeffx = 1".encode("utf-16-le"), "its text is UTF-16-LE, which what runs it does not read"),
        ("a.sh", "\ufeffls".encode("utf-16-be"), "its text is UTF-16-BE, which what runs it does not read"),
        ("a.ipynb", "\ufeff{}".encode("utf-16-le"), "its text is UTF-16-LE, which what runs it does not read"),
    ],
)
def test_what_is_no_text_is_said_in_one_line(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    if name == "a.json" and data.startswith(b"\xff"):
        path.write_bytes(data + b"\xd8")
    assert expected in reason(path)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.json", b"", ""),
        ("a.json", b'\xef\xbb\xbf{"a": 1}\r\n', '{"a": 1}\r\n'),
        ("a.json", "\ufeff{}".encode("utf-16-le"), "{}"),
        ("a.json", "\ufeff{}".encode("utf-16-be"), "{}"),
        ("a.md", "\ufeffé".encode("utf-16-le"), "é"),
        ("a.py", b"# coding: latin-1\nx = '\xe9'\n", "# coding: latin-1\nx = 'é'\n"),
        ("a.py", b"\xef\xbb\xbfx = '\xc3\xa9'\r\n", "x = 'é'\r\n"),
        ("a.sh", b"echo \xe9\n", "echo é\n"),
        ("a.yaml", "a: é\r\n\x0c".encode(), "a: é\r\n\x0c"),
    ],
)
def test_text_goes_back_to_the_same_bytes(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    file = read_text(path)
    assert file.text == text
    assert encode(file, file.text) == data


@given(st.text(), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
def test_encoding_is_the_inverse_of_decoding(text: str, encoding: str) -> None:
    data = ("\ufeff" + text).encode(encoding)
    if "\0" in text:
        return
    decoded, found, bom = files._decode(Path("a.json"), data, Kind.JSON)
    assert (decoded, found) == (text, encoding)
    assert encode(FileText(Path("a.json"), decoded, found, bom), decoded) == data


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(WriteError, match="latin-1 has no '€'"):
        encode(FileText(Path("a.py"), "", "latin-1"), "€")


def test_kinds() -> None:
    names = ["a.json", "a.JSONC", "a.yml", "a.py", "a.slurm", "a.txt"]
    assert [kind_of(Path(name)) for name in names] == [Kind.JSON, Kind.JSON, Kind.YAML, Kind.PYTHON, Kind.SHELL, None]
    assert kind_of(Path("run"), "#!/usr/bin/env bash\n") is Kind.SHELL
    assert kind_of(Path("run"), "#!/bin/sh -e\n") is Kind.SHELL
    assert kind_of(Path("run"), "#!/usr/bin/python3.11\n") is Kind.PYTHON
    assert kind_of(Path("run"), "#!/usr/bin/perl\n") is None


def three(tmp_path: Path) -> tuple[FileText, FileText, Path]:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf{}\r\n")
    (tmp_path / "a.json").chmod(0o640)
    (tmp_path / "real.sh").write_text("x\n")
    (tmp_path / "real.sh").chmod(0o755)
    (tmp_path / "b.sh").symlink_to("real.sh")
    return read_text(tmp_path / "a.json"), read_text(tmp_path / "b.sh"), tmp_path / "new.json"


def contents(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}


def test_all_files_are_written(tmp_path: Path) -> None:
    a, b, new = three(tmp_path)
    write_files({a: '{"a": 1}\r\n', b: "y\n", new: "{}\n"})
    assert contents(tmp_path) == {
        "a.json": b'\xef\xbb\xbf{"a": 1}\r\n',
        "b.sh": b"y\n",
        "new.json": b"{}\n",
        "real.sh": b"y\n",
    }
    assert (tmp_path / "b.sh").is_symlink()
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "real.sh").stat().st_mode) == 0o755
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~mask


def test_nothing_is_written_where_a_file_has_changed(tmp_path: Path) -> None:
    a, b, new = three(tmp_path)
    (tmp_path / "real.sh").write_text("changed\n")
    before = contents(tmp_path)
    with pytest.raises(WriteError, match=r"b.sh: has changed since it was read; nothing was written"):
        write_files({a: "1", b: "2", new: "3"})
    assert contents(tmp_path) == before


def test_nothing_is_written_where_a_new_file_exists(tmp_path: Path) -> None:
    a, b, new = three(tmp_path)
    new.write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(WriteError, match=r"new.json: exists already"):
        write_files({a: "1", b: "2", new: "3"})
    assert contents(tmp_path) == before


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_failure_while_replacing_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    a, b, new = three(tmp_path)
    before = contents(tmp_path)
    replace, calls = files._replace, iter(range(9))

    def failing(target: files._Target) -> None:
        if next(calls) == fails_at:
            raise OSError(28, "No space left on device")
        replace(target)

    monkeypatch.setattr(files, "_replace", failing)
    with pytest.raises(WriteError, match="no space left on device; nothing was written"):
        write_files({a: "1", b: "2", new: "3"})
    assert contents(tmp_path) == before
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    a, _, _ = three(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(WriteError, match="nothing was written"):
        write_files({a: "1", tmp_path / "no" / "folder.json": "2"})
    assert contents(tmp_path) == before


def test_a_workspace_reads_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "run").write_text("#!/bin/bash\ntorchrun x\n")
    monkeypatch.chdir(tmp_path)
    workspace = Workspace()
    document = workspace.read(Path("a.json"))
    assert document.kind is Kind.JSON and document.path == Path("a.json")
    assert workspace.read(tmp_path / "a.json") is document
    assert workspace.read(Path("run")).kind is Kind.SHELL
    assert workspace.exists(Path("a.json")) and not workspace.exists(Path("b.json"))
    with pytest.raises(ReadError, match=r"^b.json: no such file$"):
        workspace.read(Path("b.json"))
    (tmp_path / "notes").write_text("x")
    with pytest.raises(ReadError, match="neither JSON"):
        workspace.read(Path("notes"))


def test_an_overlay_shares_what_it_does_not_change(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "b.yaml").write_text("b: 1\n")
    workspace = Workspace(tmp_path)
    a, b = workspace.read(Path("a.json")), workspace.read(Path("b.yaml"))
    changed = workspace.with_overlay({Path("a.json"): '{"a": 2}', Path("new.json"): "{}"})
    assert changed.read(Path("b.yaml")) is b
    again = changed.read(Path("a.json"))
    assert again.text == '{"a": 2}' and again.file.digest == a.file.digest
    assert changed.exists(Path("new.json")) and changed.read(Path("new.json")).text == "{}"
    assert workspace.read(Path("a.json")) is a and not workspace.exists(Path("new.json"))
    third = changed.with_overlay({Path("a.json"): '{"a": 3}'})
    assert third.read(Path("a.json")).text == '{"a": 3}'
    assert third.read(Path("new.json")) is changed.read(Path("new.json"))
    write_files({a.file: third.read(Path("a.json")).text}, root=tmp_path)
    assert (tmp_path / "a.json").read_text() == '{"a": 3}'


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder would let it be: what counts is the file."""
    (tmp_path / "a.json").write_text("{}")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(WriteError, match="no permission to write it; nothing was written"):
        write_files({read_text(tmp_path / "a.json"): "[]"})
    assert (tmp_path / "a.json").read_text() == "{}"


def test_what_somebody_else_has_changed_is_not_rolled_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, new = three(tmp_path)
    replace, calls = files._replace, iter(range(9))

    def failing(target: files._Target) -> None:
        if next(calls) == 2:
            (tmp_path / "real.sh").write_text("somebody else's")
            raise OSError(28, "No space left on device")
        replace(target)

    monkeypatch.setattr(files, "_replace", failing)
    with pytest.raises(WriteError, match=r"what was written is taken back, but not in .*b\.sh$"):
        write_files({a: "1", b: "2", new: "3"})
    after = contents(tmp_path)
    assert after == {"a.json": b"\xef\xbb\xbf{}\r\n", "b.sh": after["real.sh"], "real.sh": b"somebody else's"}


def test_a_file_that_changes_while_others_are_written_stops_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, new = three(tmp_path)
    replace = files._replace

    def changing(target: files._Target) -> None:
        replace(target)
        (tmp_path / "real.sh").write_text("somebody else's")

    monkeypatch.setattr(files, "_replace", changing)
    with pytest.raises(WriteError, match=r"b\.sh: has changed since it was read; nothing was written"):
        write_files({a: "1", b: "2", new: "3"})
    after = contents(tmp_path)
    assert after == {"a.json": b"\xef\xbb\xbf{}\r\n", "b.sh": after["real.sh"], "real.sh": b"somebody else's"}


@pytest.mark.parametrize("name", ["link.json", "folder/ds.json", "../outside/ds.json", "folder/../outside/ds.json"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "ds.json").write_text("{}")
    (project / "link.json").symlink_to(outside / "ds.json")
    (project / "folder").symlink_to(outside)
    file = read_text(project / name)
    for change in ({file: "[]"}, {project / "folder" / "new.json": "[]"}):
        with pytest.raises(WriteError, match=r"lies outside of .*project, below which lintfit writes; nothing was"):
            write_files(change, below=[project])
    with pytest.raises(LintfitError, match="cannot be written: lies outside of"):
        write_whole(project / name, "[]", [project])
    assert contents(outside) == {"ds.json": b"{}"}
    write_files({file: "[]"}, below=[project, outside])
    assert contents(outside) == {"ds.json": b"[]"}


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "real.json").chmod(0o640)
    (tmp_path / "link.json").symlink_to("real.json")
    write_whole(tmp_path / "link.json", "ü\ud800", [tmp_path])
    write_whole(tmp_path / "new.json", "1")
    assert contents(tmp_path) == {
        "link.json": b"\xc3\xbc\\ud800",
        "new.json": b"1",
        "real.json": b"\xc3\xbc\\ud800",
    }
    assert (tmp_path / "link.json").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o640
    with pytest.raises(LintfitError, match="cannot be written: is not a regular file"):
        write_whole(tmp_path, "1")
