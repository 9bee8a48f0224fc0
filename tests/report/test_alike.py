"""Findings that say the same are told once, and runs without a GPU together where they are many."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from lintfit.catalog.gpus import gpus
from lintfit.documents.model import Kind
from lintfit.findings.model import Finding, Severity
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import View, render, shown_path
from lintfit.report.alike import _likewise, alike, alike_lines
from lintfit.report.styled import plain
from lintfit.report.summary import MOST_IN_SHORT
from lintfit.run.model import Origin
from lintfit.verdict.would_fit import WouldFit
from tests.report import samples
from tests.report.samples import Story


def _finding(path: str, message: str, severity: Severity = Severity.WARNING, run: str | None = None) -> Finding:
    where = samples.place(samples.document(path, samples.LAUNCH, Kind.SHELL), "torchrun")
    return replace(Story().remark(), place=where, message=message, severity=severity, run=run)


def _said(findings: list[Finding], width: int = 100) -> str:
    return plain(alike_lines(findings, shown_path, View(width=width), 0))


def test_what_differs_in_figures_or_folders_up_is_the_same() -> None:
    findings = [_finding("a.sh", "takes 6.4 GiB of 24"), _finding("b.sh", "takes 1.1 GiB of 80")]
    findings += [_finding("c.sh", "../x.py is missing"), _finding("d.sh", "../../x.py is missing")]
    assert [len(group) for group in alike(findings)] == [2, 2]
    assert "\n    likewise b.sh:1\n" in _said(findings) and _said(findings).endswith("\n    likewise d.sh:1\n")


def test_other_words_and_other_severities_are_not() -> None:
    findings = [_finding("a.sh", 'nothing reads "a"'), _finding("b.sh", 'nothing reads "b"')]
    findings += [_finding("c.sh", 'nothing reads "a"', Severity.ERROR)]
    groups = alike(findings)
    assert [len(group) for group in groups] == [1, 1, 1]
    assert groups[0][0].severity is Severity.ERROR
    assert "likewise" not in _said(findings)


def test_at_one_place_the_runs_are_named() -> None:
    findings = [_finding("ds.sh", f"takes {n} GiB", run=f"run.sh:{n}") for n in (1, 2, 3)]
    assert _said(findings).endswith("\n    likewise run.sh:2, run.sh:3\n")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_as_many_places_as_a_line_holds(width: int) -> None:
    findings = [_finding(f"experiments/number_{n}/run.sh", "takes 1 GiB") for n in range(1, 10)]
    last = _said(findings, width).splitlines()[-1]
    assert len(last) <= width
    assert last.startswith("    likewise experiments/number_2/run.sh:1") and last.endswith(" more")


def _without_gpu(name: str, fits_on: str, **changes: object) -> RunResult:
    gpu = gpus()[fits_on]
    would = WouldFit(gpu, 1, fits=True, changes=changes, name="micro-batch 1" if changes else "")
    estimate = replace(samples.estimate(0.125, Verdict.UNKNOWN), capacity_bytes=None)
    run = replace(Story().run(), id=name, origin=Origin("launch", Path(name.partition(":")[0])))
    return RunResult(run, estimate, would_fit=(would,), unknown=("the GPU (--gpu, or gpu in lintfit.toml)",))


def test_many_runs_without_a_gpu_are_told_by_the_gpus_that_would_do() -> None:
    small = [_without_gpu(f"runs/a.sh:{n}", "NVIDIA GeForce RTX 4090") for n in range(1, MOST_IN_SHORT)]
    large = [_without_gpu("runs/b.sh:1", "NVIDIA H100 80GB HBM3"), _without_gpu("runs/c.sh:1", "NVIDIA L40S", x=1)]
    shown = render("text", CheckResult(runs=(*large, *small)), View())
    assert shown.startswith("9 runs below runs name no GPU (--gpu). What would do, with likely to highest GiB:\n")
    assert "\n  one 24 GB GPU: a.sh:1, :2, :3, :4, … (14.9 to 16.4)\n  one 80 GB GPU: b.sh:1 (14.9 to 16.4)\n" in shown
    assert "\n  one 48 GB GPU with micro-batch 1: c.sh:1 (14.9 to 16.4)\n" in shown
    assert "the GPU (--gpu, or gpu in lintfit.toml)" not in shown
    assert "What would do" not in render("text", CheckResult(runs=tuple(small)), View())
    assert "What would do" not in render("text", CheckResult(runs=(*large, *small)), View(verbose=True))


def test_of_each_kind_of_gpu_the_first_are_named() -> None:
    runs = [_without_gpu(f"runs/{n}.sh:1", "NVIDIA L40S") for n in range(10, 30)]
    shown = " ".join(render("text", CheckResult(runs=tuple(runs)), View()).split())
    assert "one 48 GB GPU: 10.sh:1 (14.9 to 16.4), 11.sh:1" in shown
    assert "21.sh:1 (14.9 to 16.4) and 8 more" in shown and "22.sh" not in shown


def test_of_many_kinds_of_gpu_fewer_are_named_of_each() -> None:
    kinds = ("NVIDIA L40S", "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "NVIDIA H200", "NVIDIA A10", "Tesla T4")
    known = [kind for kind in gpus() if kind in kinds or gpus()[kind].vendor_gb in (11, 12, 16, 32, 40)]
    sizes = {gpus()[kind].vendor_gb: kind for kind in known}
    assert len(sizes) > 5
    runs = [_without_gpu(f"runs/{size}-{n}.sh:1", kind) for size, kind in sizes.items() for n in range(5)]
    shown = " ".join(render("text", CheckResult(runs=tuple(runs)), View()).split())
    assert shown.count("and 2 more") == len(sizes)


def test_launches_of_one_file_that_come_to_the_same_take_a_line() -> None:
    fits = samples.quiet_result().runs[0]
    runs = [replace(fits, run=replace(fits.run, id=f"run.sh:{n}")) for n in (3, 5, 9)]
    shown = render("text", CheckResult(runs=tuple(runs)), View())
    assert shown.startswith("run.sh:3, :5, :9: fits, 14.9 of 23.7 GiB (14.1 to 16.4)")
    assert shown.endswith("3 runs: 3 fit. All checks passed. 0 files read, none skipped.\n")


def test_recipes_alone_that_come_to_the_same_stay_apart() -> None:
    fits = samples.quiet_result().runs[0]
    runs = [replace(fits, run=replace(fits.run, id=f"{name}.yaml")) for name in ("a", "b")]
    shown = render("text", CheckResult(runs=tuple(runs)), View())
    assert [line.partition(":")[0] for line in shown.splitlines() if "fits," in line] == ["a.yaml", "b.yaml"]


def _unknown(name: str, *reasons: str) -> RunResult:
    origin = Origin("launch", Path(name.partition(":")[0]))
    return RunResult(replace(Story().run(), id=name, spec=None, origin=origin), unknown=reasons)


def test_reasons_of_one_kind_say_what_they_are_about() -> None:
    step = "not modelled: the step of TRL's {}"
    runs = [_unknown(f"{n}.sh:1", step.format(kind)) for n, kind in enumerate(("A", "B", "B"))]
    runs += [_unknown(f"m{n}.sh:1", f'the shape of "x/{n}" (--model-config FILE)') for n in range(2)]
    shown = render("text", CheckResult(runs=tuple(runs)), View())
    assert "3 runs not judged: not modelled: the step of TRL's B (2), A\n" in shown
    assert '2 runs not judged: the shape of "x/0", "x/1" (--model-config FILE)\n' in shown


def test_of_many_reasons_each_run_is_told_with_one() -> None:
    many = [_unknown(f"{n}.sh:1", f"reason {chr(97 + n)}", "the GPU (--gpu)") for n in range(7)]
    both = _unknown("z.sh:1", "reason a", "not modelled: this", "the GPU (--gpu)")
    shown = render("text", CheckResult(runs=(*many, both)), View())
    assert "8 runs not judged: the GPU (--gpu)" in shown
    assert "1 run not judged: not modelled: this: z.sh:1" in shown
    assert "1 run not judged: reason a: 0.sh:1" in shown
    few = render("text", CheckResult(runs=(*many[:2], both)), View())
    assert "2 runs not judged: reason a: 0.sh:1, z.sh:1" in few


def test_of_very_many_places_only_those_that_a_line_has_room_for_are_tried() -> None:
    begun = time.process_time()
    line = _likewise([f"configs/a{index}.json:1" for index in range(4000)], View(), 4)
    assert time.process_time() - begun < 1
    text = "".join(part for part, _ in line)
    assert text.startswith("    likewise configs/a0.json:1, configs/a1.json:1") and text.endswith(" more")
