"""Kept reports: shown again only where every file, name and folder that decided them is as it was."""

from __future__ import annotations

import ast
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lintfit import __main__
from lintfit.cli import cache
from lintfit.documents import seen
from tests import support
from tests.support import ROOT, Outcome, process

SCRIPT = """\
from helper import LENGTH
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
args = TrainingArguments("out", per_device_train_batch_size=BATCH, deepspeed="ds.json")
Trainer(model=model, args=args).train()
"""
LAUNCH = "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n"
ZERO = '{"zero_optimization": {"stage": STAGE}, "bf16": {"enabled": true}, "train_batch_size": "auto"}\n'

FILES: dict[str, tuple[str, ...]] = {
    "train.py": (SCRIPT.replace("BATCH", "1"), SCRIPT.replace("BATCH", "64"), "print(1)\n"),
    "helper.py": ("LENGTH = 1\n", "def broken(:\n"),
    "run.sh": (LAUNCH, LAUNCH.replace("8", "2"), LAUNCH + "deepspeed train.py --deepspeed sub/ds.json\n"),
    "ds.json": (ZERO.replace("STAGE", "3"), ZERO.replace("STAGE", "1"), '{"zero_optimisation": {}}\n', "{"),
    "sub/ds.json": (ZERO.replace("STAGE", "2"),),
    "requirements.txt": ("transformers==4.40.0\n", "transformers==5.0.0\n"),
    "lintfit.toml": ('gpu = "A100-80GB"\n', 'gpu = "4090"\n', 'exclude = ["sub"]\n'),
    ".gitignore": ("ds.json\n", "*.sh\n"),
    "README.md": ("```bash\npython train.py\n```\n", "Nothing is started here.\n"),
}
NAMES = st.sampled_from(sorted(FILES))


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path) -> Iterator[None]:
    """A cache folder of this test's own; lintfit's own files count as settled."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "LINTFIT_NO_CACHE": ""}
    with patch.dict(os.environ, environment), patch.object(cache, "FRESH", -1.0):
        yield


def checked(*arguments: str, cwd: Path) -> Outcome:
    """``lintfit check`` as in a process that has read nothing yet."""
    run = __main__.run
    try:
        with patch.object(__main__, "run", lambda: run(fresh=True)):
            return support.lintfit("check", *arguments, cwd=cwd, env={"LINTFIT_NO_CACHE": ""})
    finally:
        cache.Recording.begun = seen.watching = None


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "lintfit").glob("*.json"))


def project(folder: Path) -> Path:
    folder.mkdir()
    for name in ("train.py", "helper.py", "run.sh", "ds.json"):
        (folder / name).write_text(FILES[name][0])
    return folder


def forbidden(*_: object, **__: object) -> None:
    raise AssertionError("checked again")


def test_a_report_is_shown_again(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    first = checked(".", cwd=folder)
    assert "train.py" in first.out
    assert len(entries(tmp_path)) == 1
    with patch("lintfit.commands.check.check", forbidden):
        assert checked(".", cwd=folder) == first
        assert checked(".", "--no-cache", cwd=folder) != first


def test_a_change_that_a_time_does_not_tell(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    first = checked(".", cwd=folder)
    before = (folder / "ds.json").stat()
    (folder / "ds.json").write_text(FILES["ds.json"][1])
    os.utime(folder / "ds.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert checked(".", cwd=folder) != first


def _edited(name: str, text: str, folder: Path) -> Outcome:
    """The report after an edit, which is that of a check that takes nothing from before."""
    (folder / name).write_text(text)
    found = checked(".", cwd=folder)
    assert found == support.lintfit("check", ".", "--no-cache", cwd=folder)
    assert found == checked(".", cwd=folder)
    return found


def test_after_an_edit_files_are_not_searched_for_again(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    (folder / "README.md").write_text(FILES["README.md"][0])
    checked(".", cwd=folder)
    (folder / "train.py").write_text(FILES["train.py"][1])
    with patch("lintfit.commands.check.discover", forbidden):
        found = checked(".", cwd=folder)
    assert found == checked(".", "--no-cache", cwd=folder)
    # A page may start something now, or nothing any more; and a file that comes or goes is found.
    assert _edited("README.md", FILES["README.md"][1], folder) != _edited("README.md", FILES["README.md"][0], folder)
    before = _edited("train.py", FILES["train.py"][0], folder)
    shutil.copy(folder / "run.sh", folder / "again.sh")
    assert _edited("train.py", FILES["train.py"][1], folder) != before
    (folder / "again.sh").unlink()
    assert _edited("train.py", FILES["train.py"][0], folder) == before


def test_what_a_text_tells_is_asked_again_where_it_has_changed(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    (folder / "other.py").write_text("print(1)\n")
    (folder / "defines.py").write_text(f"def main():\n    {FILES['train.py'][0].replace(chr(10), chr(10) + '    ')}\n")
    checked(".", cwd=folder)
    first = _edited("helper.py", "LENGTH = 2\n", folder)
    assert "other.py" not in first.out and "defines.py" not in first.out
    assert "other.py" in _edited("other.py", FILES["train.py"][0], folder).out
    assert "other.py" not in _edited("other.py", "print(2)\n", folder).out
    text = (folder / "defines.py").read_text()
    assert "defines.py" in _edited("defines.py", f"{text}\nmain()\n", folder).out
    assert _edited("defines.py", text, folder) == first


def test_a_file_of_no_known_use_that_is_read_later_has_the_name_that_it_was_found_by(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    (folder / "train.py").write_text(FILES["train.py"][0].replace("helper import", "sub.link import"))
    (folder / "sub").mkdir()
    (folder / "sub" / "link.py").symlink_to("../helper.py")
    checked(".", cwd=folder)
    _edited("run.sh", FILES["run.sh"][1], folder)
    _edited("train.py", FILES["train.py"][1], folder)
    _edited("helper.py", "LENGTH = 3\nprint(LENGTH)\n", folder)


Act = Callable[[Path], None]


def _write(name: str, variant: int) -> Act:
    def act(folder: Path) -> None:
        path, texts = folder / name, FILES[name]
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(texts[variant % len(texts)])

    return act


def _delete(name: str) -> Act:
    return lambda folder: (folder / name).unlink(missing_ok=True)


def _rename(name: str, other: str) -> Act:
    def act(folder: Path) -> None:
        if (folder / name).is_file():
            (folder / other).parent.mkdir(exist_ok=True)
            (folder / name).replace(folder / other)

    return act


def _link(name: str, other: str) -> Act:
    def act(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(folder / other)

    return act


ACTS = st.one_of(
    st.builds(_write, NAMES, st.integers(0, 3)),
    st.builds(_delete, NAMES),
    st.builds(_rename, NAMES, NAMES),
    st.builds(_link, NAMES, NAMES),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[*HealthCheck])
@given(st.lists(ACTS, min_size=1, max_size=6), st.sampled_from(((".",), ("run.sh",), ("train.py", "ds.json"))))
def test_no_kept_report_is_stale(acts: list[Act], paths: tuple[str, ...]) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        with patch.dict(os.environ, {"XDG_CACHE_HOME": str(top / "cache")}):
            folder = project(top / "tree")
            for act in (lambda _: None, *acts):
                act(folder)
                plain = checked(*paths, "--no-cache", cwd=folder)
                assert checked(*paths, cwd=folder) == plain
                assert checked(*paths, cwd=folder) == plain
    finally:
        shutil.rmtree(top)


@pytest.mark.parametrize(
    "flags", [("--diff",), ("--fix",), ("--output-format", "json:out.json"), ("missing.py",), ("--no-cache",)]
)
def test_what_is_not_kept(flags: tuple[str, ...], tmp_path: Path) -> None:
    checked(".", *flags, cwd=project(tmp_path / "tree"))
    assert not entries(tmp_path)


def test_flags_and_environment_are_asked_for_anew(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    for flags in ((".",), (".", "--gpu", "4090"), (".", "--gpu", "A100-80GB")):
        assert checked(*flags, cwd=folder) == checked(*flags, "--no-cache", cwd=folder)
    assert len(entries(tmp_path)) == 3
    with patch.dict(os.environ, {"HF_HOME": str(tmp_path)}):
        checked(".", cwd=folder)
    assert len(entries(tmp_path)) == 4


@pytest.mark.parametrize(
    "forge",
    [
        lambda entry: b"",
        lambda entry: entry[:100],
        lambda entry: b"\xff" * 10,
        lambda entry: b"[" * 200_000,
        lambda entry: b"[]",
        lambda entry: json.dumps({**json.loads(entry), "form": 0}).encode(),
        lambda entry: json.dumps({**json.loads(entry), "said": [[3, "x"]]}).encode(),
        lambda entry: json.dumps({**json.loads(entry), "answers": {"followed": {"a\0b": "f"}}}).encode(),
        lambda entry: json.dumps({**json.loads(entry), "answers": {"read x": {"a": 1}, "": []}}).encode(),
        lambda entry: json.dumps({**json.loads(entry), "answers": {"followed": ["a"]}}).encode(),
    ],
)
def test_a_broken_entry_is_none(forge: Callable[[bytes], bytes], tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    first = checked(".", cwd=folder)
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(forge(whole))
    assert checked(".", cwd=folder) == first
    assert json.loads(entry.read_bytes()) == json.loads(whole)


def test_a_folder_that_others_may_write_to_is_not_taken(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    first = checked(".", cwd=folder)
    (tmp_path / "cache" / "lintfit").chmod(0o777)
    with patch("lintfit.cli.cache._others", forbidden):
        assert checked(".", cwd=folder) == first


def test_a_folder_that_is_a_link_is_not_taken(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    (tmp_path / "cache").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache" / "lintfit").symlink_to(tmp_path / "elsewhere")
    checked(".", cwd=folder)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("where", ["tree/cache", "tree/sub/.cache", "none/\0", "file/cache"])
def test_where_nothing_can_be_kept(where: str, tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    (tmp_path / "file").write_text("")
    plain = checked(".", "--no-cache", cwd=folder)
    with patch.object(cache, "_folder", lambda: f"{tmp_path}/{where}/lintfit"):
        assert checked(".", cwd=folder) == plain
        assert checked(".", cwd=folder) == plain
    assert not list(folder.rglob("lintfit"))


def test_the_oldest_go(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    with patch.object(cache, "MOST_FILES", 3):
        for length in range(1, 6):
            checked("ds.json", "--seq-len", str(length), cwd=folder)
    assert len(list((tmp_path / "cache" / "lintfit").iterdir())) == 3


def test_processes_beside_each_other(tmp_path: Path) -> None:
    folder = project(tmp_path / "tree")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: process("check", ".", cwd=folder), range(4)))
    assert len({(each.status, each.out, each.err) for each in found}) == 1


def test_the_environment_that_is_read_is_known() -> None:
    """Every variable that lintfit asks for stands in the key of an entry."""
    asked = {
        name
        for path in (ROOT / "lintfit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in _variables(node)
    }
    asked -= {cache.OFF}
    assert "HF_HOME" in asked
    assert not {name for name in asked if name not in cache.NAMES and not name.startswith(cache.FAMILIES)}


def _variables(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"), args=[ast.Constant(name), *_]
        ):
            yield str(name)
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(name)):
            yield str(name)
