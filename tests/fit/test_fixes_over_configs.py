"""Every fix that is offered for a real config changes that and nothing else.

The files are real DeepSpeed and Accelerate configs beside the repository; the test skips where they are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, Edit, KeyPath, Node, Span
from lintfit.documents.workspace import Workspace
from lintfit.options.model import Options

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FOLDERS = ("deepspeed", "accelerate", "deepspeed_history", "accelerate_history")

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the real configs are not here")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_fixed_config_parses_and_its_other_values_are_equal(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CORPUS)  # files elsewhere get no fix
    fixed = 0
    for path in _configs(folder):
        result = check([path], Options(isolated=True, unsafe_fixes=True))
        for finding in result.findings:
            fix = finding.fix
            if fix is None or not fix.edits:
                continue
            document = fix.edits[0].document
            assert isinstance(document, DataDocument)
            edits = [edit.edit for edit in fix.edits if edit.path == document.path]
            text = apply(document.text, edits)
            after = Workspace(overlay={path: text}).read(path, document.kind)
            assert isinstance(after, DataDocument)
            where = f"{path.name}: {finding.rule}: {fix.message}"
            assert after.root is not None, where
            if document.root is not None:
                _same_elsewhere(document.root, after.root, edits, where)
                fixed += 1
    assert fixed or folder == "accelerate_history"


@pytest.mark.parametrize("folder", FOLDERS)
def test_fixing_twice_is_fixing_once(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # files elsewhere get no fix
    fixed = 0
    for path in _configs(folder):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        options = Options(isolated=True, fix=True, unsafe_fixes=True)
        if not check([copy], options).fixed:
            continue
        once = copy.read_bytes()
        assert not check([copy], options).fixed, path.name
        assert copy.read_bytes() == once, path.name
        fixed += 1
    assert fixed or folder == "accelerate_history"


def _configs(folder: str) -> Iterator[Path]:
    yield from sorted(path for path in (CORPUS / folder).iterdir() if path.suffix in (".json", ".yaml", ".yml"))


def _same_elsewhere(before: Node, after: Node, edits: Sequence[Edit], where: str) -> None:
    """Every scalar whose entry, and whose parents' keys, no edit touches is at its place with its value."""
    for path, value in _untouched(before, edits):
        found = after.get(*path)
        assert found is not None, f"{where}: {path} is gone"
        assert (found.shape, found.value) == ("scalar", value), f"{where}: {path}"


def _untouched(node: Node, edits: Sequence[Edit], path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    if node.shape == "scalar":
        if not _touched(node.span, edits):
            yield path, node.value
        return
    keys = [entry.key for entry in node.entries]
    for entry in node.entries:
        # Of repeated keys a path only reaches the last, which a fix may well take away.
        if keys.count(entry.key) == 1 and not _touched(entry.key_span, edits):
            yield from _untouched(entry.value, edits, (*path, entry.key))
    for index, element in enumerate(node.elements):
        yield from _untouched(element, edits, (*path, index))


def _touched(span: Span, edits: Sequence[Edit]) -> bool:
    return any(edit.span.start < span.end and span.start < edit.span.end for edit in edits)
