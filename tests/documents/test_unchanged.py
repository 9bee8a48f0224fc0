from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from lintfit.documents import paths
from lintfit.documents.unchanged import changed

PLAIN = ("tree", ".", "..", "tree/../other", "tree/./a", "tree/none/../a", "tree/a/..", "./tree//a", "../no/../x")
THROUGH_LINKS = ("tree/link", "tree/link/../a", "tree/link/..", "tree/link/inner", "tree/circle", "tree/circle/..")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of which the working directory holds everything but where a link leads."""
    here = tmp_path / "here"
    for folder in (here / "tree", here / "other", tmp_path / "far" / "inner"):
        folder.mkdir(parents=True)
    (here / "tree" / "a").write_text("a")
    (here / "tree" / "link").symlink_to(tmp_path / "far")
    (here / "tree" / "circle").symlink_to("circle")
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize("name", [*PLAIN, *THROUGH_LINKS])
@pytest.mark.parametrize("absolute", [False, True])
def test_a_path_leads_where_it_did(name: str, absolute: bool, tree: Path) -> None:
    path = f"{tree}/{name}" if absolute else name
    answer = paths.led(path)
    assert changed({"leads": {path: answer}}) == {}
    assert changed({"leads": {path: f"{answer}/more"}}) is None
    with patch.object(paths, "led", wraps=paths.led) as asked:
        changed({"leads": {path: answer}})
    assert (path in [each.args[0] for each in asked.call_args_list]) == (name in THROUGH_LINKS)


@pytest.mark.parametrize("name", ["tree/a", "tree/../tree/a", "tree/new/x", "other/.."])
def test_a_link_that_comes_between(name: str, tree: Path) -> None:
    answers = {"leads": {name: paths.led(name)}}
    assert changed(answers) == {}
    first = tree / name.split("/", 1)[0]
    first.rename(tree / "moved")
    first.symlink_to("moved" if name != "other/.." else "tree/link/inner")
    assert changed(answers) is None
