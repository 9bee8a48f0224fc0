"""The report for people, whole and in its parts."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from lintfit.documents.model import Edit, FileEdit, Kind, Span
from lintfit.findings.model import Applicability, Finding, Fix, Rejected, Severity
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import View, render
from lintfit.report.text import MOST_BLOCKS
from lintfit.run.model import Origin
from lintfit.settings.model import Place
from tests.report import samples
from tests.report.samples import Story
from tests.support import lintfit

EXPECTED = Path(__file__).parent / "expected"
ANSI = re.compile(r"\x1b\[[0-9;]*m")

RESULTS = {
    "does-not-fit": Story().result(),
    "fits": samples.quiet_result(),
    "no-card": samples.without_capacity(),
    "nothing": CheckResult(files_read=1),
    "no-plan": CheckResult(
        runs=(
            RunResult(
                Story().run(),
                samples.estimate(),
                Verdict.DOES_NOT_FIT,
                rejected=(Rejected("ZeRO-3 with everything offloaded", samples.estimate(0.5)),),
                shortfall="31.0 GiB a GPU; 12 such GPUs would hold it",
            ),
        ),
    ),
    "fixed": CheckResult(
        runs=(
            RunResult(Story().run(), samples.estimate(0.125, Verdict.FITS), Verdict.FITS, before=samples.estimate()),
        ),
        fixed=(Story().upcast(), Story().typo()),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_report(name: str) -> None:
    """``LINTFIT_UPDATE=1`` writes the expectations anew."""
    text = render("text", RESULTS[name], View(show_fixes=True))
    expected = EXPECTED / f"{name}.txt"
    if os.environ.get("LINTFIT_UPDATE"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("name", RESULTS)
def test_colours_change_nothing_but_colours(name: str) -> None:
    plain = render("text", RESULTS[name], View())
    coloured = render("text", RESULTS[name], View(color=True))
    assert ANSI.sub("", coloured) == plain
    assert coloured != plain


def test_what_is_over_the_capacity_is_red() -> None:
    coloured = render("text", RESULTS["does-not-fit"], View(color=True))
    bar = next(line for line in coloured.splitlines() if "┃" in line)
    assert "\x1b[31m" in bar.partition("┃")[2]
    assert "\x1b[31m" not in bar.partition("┃")[0]


def test_ascii() -> None:
    text = render("text", RESULTS["does-not-fit"], View(unicode=False))
    assert not {character for character in text if not character.isascii()}
    assert "rest 6.2, at the peak in backward" in text
    assert "B batch" not in text and "8 x RTX 3090" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    story = Story()
    code = samples.document("long.py", "x = " + "'y' + " * 400 + "model.float()\n", Kind.PYTHON)
    long = replace(story.upcast(), place=samples.place(code, "model.float()"), related=(), fix=None, run=None)
    for result in (*RESULTS.values(), CheckResult(findings=(long,))):
        for line in render("text", result, View(width=width)).splitlines():
            assert len(line) <= width, line


def test_the_place_in_a_long_line_is_seen() -> None:
    code = samples.document("long.json", '{"a": "' + "x" * 100_000 + '", "stage": 2}', Kind.JSON)
    finding = replace(Story().typo(), place=samples.place(code, '"stage"'), fix=None)
    lines = render("text", CheckResult(findings=(finding,)), View(verbose=True)).splitlines()
    source, marks = lines[3], lines[4]
    assert source[marks.index("^") : marks.rindex("^") + 1] == '"stage"'
    assert len(source) <= 100


@pytest.mark.parametrize("before", ["\t", "    ", "名前 = 1; ", "é = 1; ", "\x1b[31m"])
def test_marks_stand_below_what_they_mean(before: str) -> None:
    from lintfit.report.styled import cells

    code = samples.document("train.py", f"{before}model.float()\n", Kind.PYTHON)
    finding = replace(Story().upcast(), place=samples.place(code, "model.float()"), related=(), fix=None, run=None)
    lines = render("text", CheckResult(findings=(finding,)), View(verbose=True)).splitlines()
    source, marks = next((a, b) for a, b in pairwise(lines) if a.startswith("1 |"))
    assert cells(source[: source.index("model")]) == marks.index("^")
    assert marks.count("^") == len("model.float()")


def test_nothing_from_a_file_reaches_the_terminal_as_a_command() -> None:
    code = samples.document("a.json", '{"\x1b]0;owned\x07\u202e": 1}', Kind.JSON)
    finding = replace(Story().typo(), message="\x1b[2J says\nmore", place=Place(code, Span(1, 5)), fix=None)
    for name in ("text", "concise"):
        text = render(name, CheckResult(findings=(finding,)), View())
        assert not set(text) & {"\x1b", "\x07", "\u202e"}


def test_an_empty_file_has_no_frame() -> None:
    empty = samples.document("ds.json", "", Kind.JSON)
    finding = replace(Story().typo(), place=Place(empty, Span(0, 0)), fix=None, message="the file is empty")
    text = render("text", CheckResult(findings=(finding,)), View(verbose=True))
    assert text.splitlines()[:2] == ["unknown-key LF801 warning: the file is empty", " --> ds.json:1:1"]


def test_a_place_at_the_end_of_a_file() -> None:
    code = samples.document("ds.json", '{"a": 1\n', Kind.JSON)
    finding = replace(Story().typo(), place=Place(code, Span(8, 8)), fix=None)
    text = render("text", CheckResult(findings=(finding,)), View(verbose=True))
    assert "--> ds.json:2:1" in text
    assert "2 |\n" in text


def _diff_of(text: str, *edits: Edit) -> list[str]:
    code = samples.document("f.json", text, Kind.JSON)
    fix = Fix("mend it", Applicability.SAFE, tuple(FileEdit(Path("f.json"), edit, code) for edit in edits))
    finding = Finding("r", "LF000", Severity.INFO, "m", Place(code, Span(0, 1)), fix=fix)
    lines = render("text", CheckResult(findings=(finding,)), View(verbose=True)).splitlines()
    return lines[lines.index("  = help: mend it") + 1 : -4]


def test_diff_of_a_deleted_line() -> None:
    assert _diff_of("a\nbb\nc\n", Edit(Span(2, 5), "")) == ["2 - bb"]


def test_diff_of_an_inserted_line() -> None:
    assert _diff_of("a\nc\n", Edit(Span(2, 2), "bb\n")) == ["2 + bb"]


def test_diff_of_two_edits_in_one_line_and_one_below() -> None:
    edits = Edit(Span(0, 1), "x"), Edit(Span(2, 3), "y\ny"), Edit(Span(6, 7), "z")
    assert _diff_of("a b\nc\nd\n", *edits) == ["1 - a b", "1 + x y", "2 + y", "3 - d", "4 + z"]


def test_diff_with_carriage_returns() -> None:
    assert _diff_of("a\r\nb\r\nc\r\n", Edit(Span(3, 4), "B")) == ["2 - b", "2 + B"]


def test_diff_of_a_new_file() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 21))
    code = samples.document("run.sh", "x", Kind.SHELL)
    fix = Fix("mend it", Applicability.UNSAFE, (FileEdit(Path("new.json"), Edit(Span(0, 0), text)),))
    finding = Finding("r", "LF000", Severity.INFO, "m", Place(code, Span(0, 1)), fix=fix)
    shown = render("text", CheckResult(findings=(finding,)), View(verbose=True))
    assert " ::: new.json (new file)\n1 + line 1\n" in shown
    assert "… 8 more lines, see `--diff`" in shown


def test_findings_of_no_run_come_after_the_runs() -> None:
    text = render("text", RESULTS["does-not-fit"], View())
    assert text.index("Plan: ") < text.index("unknown-key")


def test_runs_that_fit_take_one_line_among_others() -> None:
    good = samples.quiet_result().runs[0]
    other = replace(good, run=replace(good.run, id="other.sh:1"))
    lines = render("text", CheckResult(runs=(good, other)), View()).splitlines()
    assert lines[0].startswith("run.sh:1: fits, 14.9 of 23.7 GiB (14.1 to 16.4) · Baichuan-7B")
    assert lines[1].startswith("other.sh:1: fits")


def test_an_unknown_run_says_what_to_add() -> None:
    story = Story()
    launched = Origin("launch", Path("run.sh"))
    run = replace(story.run(), spec=None, unknown=("the model: --model", "the GPU: --gpu"), origin=launched)
    result = CheckResult(runs=(RunResult(run, unknown=run.unknown),), findings=(story.upcast(),))
    shown = render("text", result, View())
    assert "\n  Not known\n    the model: --model\n    the GPU: --gpu\n" in shown


def test_statistics() -> None:
    story = Story()
    result = CheckResult(findings=(story.typo(), story.upcast(), story.typo()))
    lines = render("text", result, View(statistics=True)).splitlines()
    assert lines[:2] == ["    2  LF801  [*] unknown-key", "    1  LF101  [ ] forced-float32"]


def test_statistics_count_runs_without_a_verdict_by_reason() -> None:
    run = replace(Story().run(), spec=None, origin=Origin("launch", Path("run.sh")))
    reasons = (("the GPU: --gpu",), ("the GPU: --gpu", "the model: --model"))
    runs = tuple(RunResult(replace(run, id=f"run.sh:{n}"), unknown=each) for n, each in enumerate(reasons))
    lines = render("text", CheckResult(runs=runs), View(statistics=True)).splitlines()
    assert lines[:2] == ["    2  unknown  the GPU: --gpu", "    1  unknown  the model: --model"]
    assert not any("not judged:" in line for line in lines[3:])


def test_host_memory_that_is_short_is_said() -> None:
    short = replace(samples.estimate(0.125, Verdict.DOES_NOT_FIT), host_capacity_bytes=8 * 2**30)
    run = RunResult(Story().run(), short, Verdict.DOES_NOT_FIT, rejected=(Rejected("offloading", short),))
    text = render("text", CheckResult(runs=(run,)), View())
    assert "14.9 GiB needed on every GPU, 23.7 usable (14.1 to 16.4) · host 12.0 of 8.0 GiB\n" in text
    assert "No plan fits: offloading would not do (host 12.0 of 8.0 GiB)." in text


def test_a_lower_bound_has_no_plan_that_would_not_do() -> None:
    part = replace(samples.estimate(2, Verdict.DOES_NOT_FIT), not_modelled=("the second pass of compute_loss",))
    tried = Rejected("ZeRO-3", samples.estimate(0.125, Verdict.FITS))
    run = RunResult(Story().run(), part, Verdict.DOES_NOT_FIT, rejected=(tried,))
    text = " ".join(render("text", CheckResult(runs=(run,)), View()).split())
    assert (
        "No plan can be confirmed: not modelled: the second pass of compute_loss. ZeRO-3 takes 14.9 GiB at least."
        in text
    )
    assert "would not do" not in text


def test_an_estimate_without_verdict_is_no_verdict() -> None:
    launched = replace(Story().run(), origin=Origin("launch", Path("run.sh")))
    run = RunResult(launched, samples.estimate(0.125, Verdict.UNKNOWN), Verdict.UNKNOWN, unknown=("the length",))
    text = render("text", CheckResult(runs=(run,)), View())
    assert text.startswith("run.sh:1: not judged\n")
    assert "14.9 GiB needed on every GPU as far as is known, 23.7 usable" in text


@pytest.mark.parametrize("width", range(60, 100))
def test_a_figure_and_its_unit_stay_on_one_line(width: int) -> None:
    from lintfit.report.styled import plain, wrapped

    text = "weights 13.0 GiB and states 104.3 GiB of 7.0 B parameters on 8 × RTX 3090, " * 3
    lines = plain(wrapped([("head: ", "")], text, width, 4)).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(re.match(r"\s*(GiB|B|×)\b", line) for line in lines)
    assert " ".join(" ".join(lines).split()) == f"head: {text}".strip()


def test_statistics_count_what_was_taken_back() -> None:
    shown = render("text", replace(Story().result(), refused_fixes=2), View(statistics=True))
    assert "    2  fixes not offered: read again, not as claimed\n" in shown


def test_of_several_runs_those_not_judged_are_told_by_reason() -> None:
    story = Story()
    reasons = ("the model (--model)",)
    run = replace(story.run(), spec=None, origin=Origin("launch", Path("run.sh")))
    finding = replace(story.remark(), rule="memory-unknown", run="run.sh:1", message="said once")
    runs = tuple(RunResult(replace(run, id=f"run.sh:{line}"), unknown=reasons) for line in range(1, 13))
    many = CheckResult(runs=runs, findings=(finding,), files_read=3)
    shown = render("text", many, View())
    assert shown == (
        "12 runs not judged: the model (--model): run.sh:1, run.sh:2, run.sh:3, …\n\n"
        "12 runs: 12 not judged. Nothing was judged (1 info). 3 files read, none skipped.\n"
    )


def test_reasons_that_differ_in_their_settings_or_model_alone_are_one() -> None:
    run = replace(Story().run(), spec=None, origin=Origin("launch", Path("run.sh")))
    decides = "which a command line decides, and no launch line is known (check the script that starts it, or name the "
    decides += "file of its arguments beside it)"
    whys = ((f"method, {decides}", f"seq len, {decides}"), (f"method, {decides}",), ('the shape of "a/b" (x)',))
    runs = tuple(RunResult(replace(run, id=f"{number}.sh:1"), unknown=why) for number, why in enumerate(whys))
    shown = " ".join(render("text", CheckResult(runs=runs), View()).split())
    assert shown.startswith(f"2 runs not judged: settings {decides}: 0.sh:1")
    assert '1 run not judged: the shape of "a/b" (x): 2.sh:1' in shown


def test_quiet_is_the_last_line() -> None:
    for name, result in RESULTS.items():
        whole = render("text", result, View())
        assert render("text", result, View(quiet=True)) == whole.splitlines(keepends=True)[-1], name


def test_what_is_folded_is_counted_and_verbose_has_it_all() -> None:
    result = RESULTS["does-not-fit"]
    short, full = render("text", result, View()), render("text", result, View(verbose=True))
    assert short.splitlines()[-1] == full.splitlines()[-1]
    rules = {finding.rule for finding in result.findings}
    assert {"does-not-fit"} < rules
    assert "does-not-fit" not in short
    for finding in result.findings:
        assert f"{finding.rule} {finding.code} {finding.severity}" in full


def test_rules_that_a_block_folds_have_pages() -> None:
    from lintfit.options.rules_catalog import load_rules
    from lintfit.report.folding import CAUSES, VERDICTS

    assert {rule.name for rule in load_rules().values()} >= CAUSES | VERDICTS


def test_a_cause_is_told_once() -> None:
    shown = render("text", RESULTS["does-not-fit"], View())
    assert shown.count("forced-float32") == 1
    assert shown.index("  Why\n") < shown.index("forced-float32") < shown.index("  Plan: ")


def test_a_run_that_fits_has_no_causes() -> None:
    """What would be a cause is a finding like others there."""
    story = Story()
    fits = replace(samples.quiet_result().runs[0], run=story.run())
    shown = render("text", CheckResult(runs=(fits,), findings=(story.upcast(),)), View())
    assert "  Why\n" not in shown
    assert "  Also\n    train.py:9  error: " in shown


def test_what_decides_a_tight_run_is_said() -> None:
    from lintfit.verdict.spread import Spread

    decides = Spread("the version of trl is not stated", 4.06, "--versions trl=VERSION")
    tight = RunResult(Story().run(), samples.estimate(0.2, Verdict.TIGHT), Verdict.TIGHT, spread=(decides,))
    shown = render("text", CheckResult(runs=(tight,)), View())
    assert "range 21.9 to 25.4: the version of trl is not stated (+4.1): --versions trl=VERSION\n" in shown


def test_paths_of_a_block_begin_at_the_run_s_folder() -> None:
    story = Story()
    below = samples.document("examples/one/run.sh", samples.LAUNCH, Kind.SHELL)
    run = replace(story.run(), id="examples/one/run.sh:1", documents=(below,))
    place = replace(story.remark().place, document=below)
    finding = replace(story.remark(), place=place, run=run.id)
    result = RunResult(run, samples.estimate(0.125, Verdict.FITS), Verdict.FITS)
    shown = render("text", CheckResult(runs=(result,), findings=(finding,)), View())
    assert shown.startswith("examples/one/run.sh:1: fits\n")
    assert "\n    run.sh:1  info: eight processes" in shown


def test_of_many_runs_that_need_a_block_the_further_ones_are_told_in_short(tmp_path: Path) -> None:
    script = (
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=8)\n'
        'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    for number in range(MOST_BLOCKS + 2):
        (tmp_path / f"train_{number}.py").write_text(script)
    flags = ("--gpu", "RTX 3090", "--gpus", "1", "--seq-len", "1024")
    shown = lintfit("check", ".", *flags, cwd=tmp_path).out
    assert shown.count(": does not fit\n") == MOST_BLOCKS
    assert shown.count(": does not fit, ") == 2
    assert "2 further runs are told in short" in shown
    assert "told in short" not in lintfit("check", ".", *flags, "--verbose", cwd=tmp_path).out
