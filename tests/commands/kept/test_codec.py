"""Records as JSON and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.kept.codec import Decoder, Encoder, NotKept
from lintfit.documents.here_documents import read_here
from lintfit.documents.here_files import HereName
from lintfit.documents.model import DataDocument, Edit, FileEdit, Kind, Span
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding, Fix, Severity
from lintfit.frozen import replace
from lintfit.memory.result import Moment, Verdict
from lintfit.run import model as runs
from lintfit.run.model import OF_THE_MACHINE, Origin
from lintfit.settings.model import UNKNOWN, LatePlace, Place, Provenance, Setting


def again(value: Any, workspace: Workspace) -> Any:
    return Decoder(workspace).value(json.loads(json.dumps(Encoder(workspace).plain(value))))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, -(10**30), "é\n", (1, ("a", None)), [1, [2]], {"a": (1,), 2: None}, frozenset({"a", "b"})),
        *(1.5, float("inf"), -0.0, {1, 2}, Path("a/b"), Verdict.TIGHT, UNKNOWN, Severity.INFO, Span(1, 2)),
        *(Edit(Span(0, 3), "x"), ()),
    ],
)
def test_values(value: Any) -> None:
    found = again(value, Workspace())
    assert found == value
    assert type(found) is type(value)


def test_what_is_told_by_being_itself_stays_it() -> None:
    constants = [value for value in vars(runs).values() if isinstance(value, Provenance)]
    assert constants
    assert all(again(each, Workspace()) is each for each in constants)


def test_moments() -> None:
    moment = Moment("loss backward", "backward", {"parameters": 5, "framework": 2})
    found = again(moment, Workspace())
    assert (found.total, found.allocated, found.components) == (7, 5, moment.components)


def test_a_place_whose_span_is_found_late_is_one_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    workspace = Workspace(tmp_path)
    found = again(LatePlace(workspace.read(Path("a.json")), lambda: Span(6, 7)), workspace)
    assert (type(found), found.text) == (Place, "1")


def test_places_are_in_the_documents_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    workspace = Workspace(tmp_path)
    document = workspace.read(Path("a.json"))
    fix = Fix("m", Applicability.SAFE, (FileEdit(Path("a.json"), Edit(Span(0, 1), "x"), document),), {"a": (1, 2)})
    finding = Finding("r", "LF1", Severity.ERROR, "m", Place(document, Span(2, 3)), fix=fix)
    found, same = again((finding, fix), workspace)
    assert found.place.document is document
    assert found.fix is same  # what was one object is one again
    assert found.fix.edits[0].document is document
    assert again(Setting("a", 1, OF_THE_MACHINE), workspace).provenance is OF_THE_MACHINE


def test_a_document_of_its_own_has_no_form(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    other = Workspace(tmp_path).read(Path("a.json"))
    with pytest.raises(NotKept):
        Encoder(Workspace(tmp_path)).plain(other)
    changed = Workspace(tmp_path).with_overlay({Path("a.json"): "[]"})
    with pytest.raises(NotKept):
        Encoder(changed).plain(changed.read(Path("a.json"), Kind.JSON))


def test_what_a_script_writes_is_a_document_of_the_run_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text('cat > a.json <<EOF\n{"a": 1}\nEOF\ncat > b.json <<EOF\n{\nEOF\n')
    names = [HereName(Origin("launch", Path("run.sh"), index), Path("run.sh"), 0, Kind.JSON) for index in (0, 1)]

    def read(workspace: Workspace, name: HereName) -> DataDocument:
        script = workspace.read(Path("run.sh"), Kind.SHELL)
        assert isinstance(script, ShellDocument)
        return workspace.here.get(name, lambda: read_here(script, name.index, name.kind))

    workspace = Workspace(tmp_path)
    one, other = (read(workspace, name) for name in names)
    one.facts["dialect"] = None
    written = Encoder(workspace).plain((one, one, other))
    assert Decoder(workspace).value(json.loads(json.dumps(written))) == (one, one, other)
    later = Workspace(tmp_path)
    found, same, second = Decoder(later).value(json.loads(json.dumps(written)))
    assert found is same is read(later, names[0])
    assert second is read(later, names[1]) is not found
    assert (found.facts, found.text[found.root.span.start : found.root.span.end]) == ({"dialect": None}, '{"a": 1}')
    for document in (
        read(workspace, replace(names[0], index=1)),  # which is broken
        read_here(workspace.read(Path("run.sh"), Kind.SHELL), 0, Kind.JSON),  # which nobody knows
    ):
        with pytest.raises(NotKept):
            Encoder(workspace).plain(document)
    changed = workspace.with_overlay({Path("run.sh"): "cat > a.json <<EOF\n[]\nEOF\n"})
    with pytest.raises(NotKept):
        Encoder(changed).plain(read(changed, names[0]))


@pytest.mark.parametrize("value", [object(), len, lambda: 1, b"x", range(3), {Span(0, 1)}])
def test_other_things_have_no_form(value: Any) -> None:
    with pytest.raises(NotKept):
        Encoder(Workspace()).plain(value)


@pytest.mark.parametrize(
    "found",
    [
        ["r", "os:system", "true"],
        ["r", "lintfit.cli.main:lintfit"],
        ["r", "lintfit.boundary:Mistakes"],
        ["r", "lintfit.documents.files:os.system", "true"],
        ["e", "lintfit.findings.model:Finding", "x"],
        ["e", "lintfit.memory.result:Verdict", "NO"],
        ["o", "lintfit.documents.workspace:Workspace"],
        ["?", 1],
        ["#", 5],
        [],
    ],
)
def test_nothing_else_is_made(found: Any) -> None:
    with pytest.raises((ValueError, LookupError, TypeError, AttributeError, ImportError)):
        Decoder(Workspace()).value(found)
