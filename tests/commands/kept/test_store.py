"""What parts hang on: nothing that a part made alone would ask for is missing, whoever has asked for it before."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from lintfit.commands.check import _found, _Pass, new_workspace
from lintfit.commands.kept.run import KeptRun
from lintfit.commands.kept.store import Keeping, Part, _Paths
from lintfit.options.model import Options
from tests.support import ROOT, forget

PROJECTS = ROOT / "tests" / "projects"


@pytest.mark.parametrize(
    "case", ["accelerate-yaml-zero3", "launch-sources-files", "script-json-config", "sections-read-by-code"]
)
def test_a_run_alone_asks_for_nothing_else(case: str, tmp_path: Path) -> None:
    """Two launches of the same files: of the second, much is remembered from the first."""
    folder = shutil.copytree(PROJECTS / case / "input", tmp_path / "tree")
    for script in folder.rglob("*.sh"):
        shutil.copy(script, script.with_name(f"again_{script.name}"))
    paths = [Path()]
    with chdir(folder):
        forget()
        options = Options(gpu="3090", gpus=8)
        workspace = new_workspace(paths, options)
        store = Keeping().store(workspace)
        whole = _Pass(_found(paths, options), workspace, options, store)
        whole.check()
        runs = [part for part in store._parts.values() if isinstance(part.value, list) and len(part.value) == 3]
        assert len(runs) > 1
        for part in runs:
            run, judged, _ = part.value
            other = new_workspace(paths, options)
            with other.asked() as asked:
                alone = _Pass(whole.found, other, options, Keeping().store(other))
                built = alone.store.build(run.origin, other, options) if alone.store is not None else run
                if judged is not None:
                    list(alone._run_findings(alone._judged(built)))
            assert asked <= part.asked


def test_paths_of_a_kept_part_are_numbers_until_somebody_asks() -> None:
    paths = _Paths(["a.py", "b.py", "c.py"])
    part = Part.kept([0, 2], paths, "{}")
    assert part.numbers == [0, 2]
    part.asked.add(Path("d.py"))
    assert part.numbers is None  # the numbers are not all any more
    assert part.asked == {Path("a.py"), Path("c.py"), Path("d.py")}
    assert sorted(paths.of(part.asked)) == [0, 2, 3]
    assert [*paths.of_known([Path("c.py"), Path("e.py")])] == [2]


def test_what_a_kept_run_looked_for_is_numbers_until_somebody_asks(tmp_path: Path) -> None:
    folder = shutil.copytree(PROJECTS / "accelerate-yaml-zero3" / "input", tmp_path / "tree")
    paths, options = [Path()], Options(gpu="3090", gpus=8)
    with chdir(folder):
        forget()
        keeping = Keeping()
        workspace = new_workspace(paths, options)
        first = _Pass(keeping.found(lambda: _found(paths, options)), workspace, options, keeping.store(workspace))
        runs = first.check().loaded.runs
        written = json.loads(json.dumps(keeping.written()))
        numbers = [part["run"]["later"]["looked_for"] for _, part in written["parts"].values() if "run" in part]
        assert numbers and all(isinstance(each, int) for found in numbers for each in found)
        again = Keeping(written)
        workspace = new_workspace(paths, options)
        second = _Pass(first.found, workspace, options, again.store(workspace))
        kept = second.check().loaded.runs
        assert all(isinstance(run, KeptRun) and run.content is not None for run in kept)
        assert [run.looked_for for run in kept] == [run.looked_for for run in runs]
        assert all(isinstance(run, KeptRun) and run.content is not None for run in kept)
