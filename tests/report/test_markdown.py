"""Markdown for people who read a pull request, and the review that GitHub takes."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, FileEdit, Kind, Span
from lintfit.errors import LintfitError
from lintfit.findings.model import Applicability, Finding, Fix
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import View, render
from lintfit.report.markdown import code, fence, text
from lintfit.report.pull_request import shown_lines
from tests.report import samples
from tests.report.samples import Story

RESULT = Story().result()


def markdown(result: CheckResult) -> str:
    return render("markdown", result, View())


def test_the_plan_stands_with_memory_before_and_after() -> None:
    shown = markdown(RESULT)
    (row,) = [line for line in shown.splitlines() if line.startswith("| `run.sh:1` |")]
    assert "| 110.6 (105.1–121.7) | 14.9 (14.1–16.4) |" in row
    assert "does not fit → **fits** with the plan |" in row
    assert "\n1. raise the ZeRO stage from 2 to 3: ds.json:3\n" in shown
    assert "zero_stage" not in shown
    assert "- a step takes about 1.3 times as long; 12.0 of 256.0 GiB of host memory a node\n" in shown
    assert "fit** (safe: the training stays the same; `lintfit check --fix` writes it)" in shown


def _planned(**changes: Any) -> CheckResult:
    """The story with another plan."""
    (run, *others) = RESULT.runs
    assert run.plan is not None
    return replace(RESULT, runs=(replace(run, plan=replace(run.plan, **changes)), *others))


def test_a_plan_by_hand_says_why() -> None:
    hindered = _planned(applicability=Applicability.DISPLAY, by_hand="no flag sets *zero stage* here", name="ZeRO-3")
    shown = markdown(hindered)
    assert "fit: ZeRO-3** (by hand)\n\nNot written by lintfit: no flag sets \\*zero stage\\* here.\n" in shown
    assert "--fix` writes it" not in shown


def test_a_plan_says_who_else_reads_what_it_edits() -> None:
    shown = markdown(_planned(readers=("a.sh:1", "b.sh:1", "c.sh:1", "d.sh:1")))
    assert "- a.sh:1, b.sh:1, c.sh:1 and 1 more read a file that this changes, too, and may get slower" in shown


def test_a_plan_says_what_it_changes_in_the_training() -> None:
    shown = markdown(_planned(applicability=Applicability.UNSAFE, effects=("samples are cut", "other rounding")))
    assert "- samples are cut\n- other rounding\n- a step takes" in shown
    assert "(unsafe: it may change how the run trains; `lintfit check --fix --unsafe-fixes` writes it)" in shown


def test_all_kinds_stand_in_a_table_where_they_were_asked_for() -> None:
    (run, *others) = RESULT.runs
    assert run.plan is not None
    other = replace(run.plan, applicability=Applicability.DISPLAY, by_hand="who knows", name="QLoRA", effects=("less",))
    shown = markdown(replace(RESULT, runs=(replace(run, alternatives=(run.plan, other)), *others)))
    (row,) = [line for line in shown.splitlines() if line.startswith("| 2 |")]
    assert row == "| 2 | QLoRA | 14.9 | 16.4 | 12.0 | × 1.3 | by hand: who knows | less |"
    assert "**Plans for `run.sh:1`**, best first" in shown
    assert "**Plans for" not in markdown(RESULT)


def test_what_was_fixed_stands_with_memory_before_and_after() -> None:
    story = Story()
    good = samples.estimate(0.125, Verdict.FITS)
    run = RunResult(story.run(), good, Verdict.FITS, before=samples.estimate())
    shown = markdown(CheckResult(runs=(run,), fixed=(story.upcast(),), files_read=3))
    assert "does not fit → **fits** |" in shown
    assert "| `forced-float32` | delete the cast | `train.py` |" in shown


def test_every_finding_is_a_row_and_notes_are_folded_away() -> None:
    shown = markdown(RESULT)
    head, _, notes = shown.partition("<details>")
    assert '| warning | `ds.json:4` | `unknown-key` | DeepSpeed does not know "overlap_comm" here |' in head
    assert "eight processes" in notes and "eight processes" not in head


@pytest.mark.parametrize("words", ["a|b", "`x`", "*x* _y_ [z](u) <b> #1 \\"])
def test_what_a_file_says_is_no_markup(words: str) -> None:
    assert "|" not in text(words).replace("\\|", "")
    assert "<b>" not in text(words)
    assert code(words).startswith("`")


@pytest.mark.parametrize(
    "words", ["&commat;octocat", "&num;1", "&#64;all", "http&colon;//a.b", "&lt;img&gt;", "&amp;num;1"]
)
def test_an_entity_is_shown_as_it_is_written(words: str) -> None:
    assert re.search(r"(?<!\\)&[#\w]", text(words).replace("&#8203;", "")) is None
    assert text("a && b & c") == "a && b & c"


def test_an_underscore_in_a_word_stays() -> None:
    assert text("zero_stage _x_") == "zero_stage \\_x\\_"


def test_code_and_fences_hold_backticks() -> None:
    assert code("`a`") == "`` `a` ``"
    assert fence("```\nx\n```", "suggestion") == "````suggestion\n```\nx\n```\n````"


def review(result: CheckResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render("github-review", result, View()))
    return found


def suggested(before: str, comment: dict[str, Any]) -> str:
    """The file after a reader accepts the suggestion of a comment, as GitHub replaces the comment's lines."""
    body = comment["body"].partition("```suggestion\n")[2].rpartition("```")[0]
    lines = before.splitlines(keepends=True)
    first, last = comment.get("start_line", comment["line"]), comment["line"]
    return "".join([*lines[: first - 1], body, *lines[last:]])


def of_edits(before: str, *edits: Edit) -> CheckResult:
    document = samples.document("train.py", before, Kind.PYTHON)
    fix = Fix("mend it", Applicability.SAFE, tuple(FileEdit(document.path, edit, document) for edit in edits))
    finding = replace(Story().upcast(), place=samples.place(document, "b"), related=(), fix=fix)
    return CheckResult(findings=(finding,))


@pytest.mark.parametrize(
    "edit",
    [
        Edit(Span(2, 3), "B"),
        Edit(Span(0, 0), "new\n"),
        Edit(Span(4, 4), "new\n"),
        Edit(Span(2, 4), ""),
        Edit(Span(2, 6), "one\ntwo\nthree\n"),
        Edit(Span(6, 6), "last\n"),
    ],
    ids=["change", "insert at the top", "insert", "delete", "replace", "insert at the end"],
)
def test_an_accepted_suggestion_is_the_fix(edit: Edit) -> None:
    before = "a\nb\nc\n"
    comments = review(of_edits(before, edit))["comments"]
    (comment,) = [comment for comment in comments if "```suggestion" in comment["body"]]
    assert suggested(before, comment) == apply(before, [edit])


def test_places_far_apart_are_comments_that_know_of_each_other() -> None:
    before = "a\nb\nc\n" + "x\n" * 20
    comments = review(of_edits(before, Edit(Span(2, 3), "B"), Edit(Span(20, 21), "y")))["comments"]
    assert len(comments) == 2
    assert "part 1 of 2: they belong together" in comments[0]["body"]
    assert comments[1]["body"].startswith("For `forced-float32` at `train.py:2`")


def test_a_new_file_is_shown_at_the_finding() -> None:
    fix = Fix("add it", Applicability.SAFE, (FileEdit(Path("ds.json"), Edit(Span(0, 0), '{"a": 1}\n')),))
    (comment,) = review(CheckResult(findings=(replace(Story().remark(), fix=fix),)))["comments"]
    assert comment["path"] == "run.sh"
    assert 'new file `ds.json`:\n\n```json\n{"a": 1}\n```' in comment["body"]


def test_the_comment_of_a_plan_says_what_it_comes_to() -> None:
    result = _planned(effects=("samples are cut",), name="ZeRO-3")
    (said,) = [c["body"] for c in review(result)["comments"] if c["body"].startswith("**error** `does-not-fit`")]
    assert "ZeRO-3: 110.6 → **14.9** of 23.7 GiB on each GPU; a step takes about 1.3 times as long; 12.0 of" in said
    assert "\n- samples are cut\n" in said


def test_a_display_fix_is_no_suggestion() -> None:
    finding = Story().upcast()
    assert finding.fix is not None
    shown: Finding = replace(finding, fix=replace(finding.fix, applicability=Applicability.DISPLAY))
    (comment,) = review(CheckResult(findings=(shown,)))["comments"]
    assert "suggestion" not in comment["body"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone whose branch changes line 12 of train.py and adds ds.json."""
    monkeypatch.chdir(tmp_path)
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(variable, raising=False)
    lines = [f"line {number}\n" for number in range(1, 31)]
    git("init", "-q", "-b", "main")
    Path("train.py").write_text("".join(lines))
    commit()
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    lines[11] = "changed\n"
    Path("train.py").write_text("".join(lines))
    Path("ds ä.json").write_text("{\n}\n")
    commit()
    return tmp_path


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)


def commit() -> None:
    git("add", "-A")
    git("commit", "-q", "-m", "x")


def test_the_lines_that_a_pull_request_shows(repository: Path) -> None:
    assert shown_lines("origin/main", repository) == {"train.py": ((9, 15),), "ds ä.json": ((1, 2),)}


def test_a_base_that_was_not_fetched_is_said_in_one_line(repository: Path) -> None:
    with pytest.raises(LintfitError, match=r"git cannot compare with origin/other: .*fetch-depth: 0"):
        shown_lines("origin/other", repository)


def test_findings_on_lines_out_of_sight_go_into_the_text(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    document = samples.document("train.py", Path("train.py").read_text(), Kind.PYTHON)
    near, far = (
        replace(Story().remark(), place=samples.place(document, words), message=words)
        for words in ("changed", "line 25")
    )
    found = review(CheckResult(findings=(near, far)))
    assert [comment["line"] for comment in found["comments"]] == [12]
    assert "`train.py:25` **info** `launch-remark`: line 25" in found["body"]
