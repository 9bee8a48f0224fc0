"""The measuring programs: what they count with, and that they run where there is little to run on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import fake_evaluation, fake_halves_cases, fake_hybrid_cases, fake_vlm_cases, report, speed
from bench.fake_cases import CASES, cases
from bench.fake_tensors import Log, rows
from bench.gpu import compare
from bench.gpu import run as gpu
from lintfit.memory.reading.parse import spec_from_mapping
from tests.support import ROOT

RECORDING = ROOT / "bench" / "results" / "fake_tensors.json"
EVALUATIONS = ROOT / "bench" / "results" / "fake_evaluation.json"


def _log(events: list[tuple[int, int]], heirs: dict[int, int] | None = None) -> Log:
    log = Log()
    log.events = [(number, size, "backward") for number, size in events]
    log.heirs = heirs or {}
    return log


def test_a_replay_counts_blocks() -> None:
    assert _log([(0, 1), (1, 513), (0, -1), (2, 512)]).replay() == {"backward": 1536}


def test_a_sum_takes_the_place_of_a_term_that_nobody_else_holds() -> None:
    events = [(0, 512), (1, 512), (2, 512), (0, -512), (1, -512)]
    assert _log(events).replay() == {"backward": 1536}
    assert _log(events, {2: 0}).replay() == {"backward": 1024}


def test_a_sum_does_not_take_the_place_of_a_term_that_is_used_again() -> None:
    events = [(0, 512), (1, 512), (2, 512), (1, -512), (3, 512), (0, -512)]
    assert _log(events, {2: 0}).replay() == {"backward": 1536}


def test_every_case_is_a_spec() -> None:
    found = list(cases())
    listed = (*CASES, *fake_hybrid_cases.CASES, *fake_vlm_cases.CASES, *fake_halves_cases.CASES)
    assert len({case["name"] for case in found}) == len(listed)
    for case in (*found, *gpu.specs(False), *gpu.specs(True)):
        spec_from_mapping(case["spec"])
    assert len({json.dumps(spec) for spec in speed.planned()}) == speed.COUNT
    assert len({json.dumps(spec) for spec in speed.measured()}) in (0, speed.COUNT)


@pytest.mark.skipif(not EVALUATIONS.is_file(), reason="nothing recorded")
def test_the_recorded_evaluations_hold() -> None:
    recording = json.loads(EVALUATIONS.read_text())
    errors = {name: abs(guess / counted - 1) for name, counted, guess in fake_evaluation.rows(recording)}
    assert errors.keys() == {case["name"] for case in fake_evaluation.cases()}
    assert max(errors.values()) < 0.005


@pytest.mark.skipif(not RECORDING.is_file(), reason="nothing recorded")
def test_the_recorded_cases_hold() -> None:
    errors = sorted(abs(guess / counted - 1) for _, counted, guess in rows(json.loads(RECORDING.read_text())))
    assert len(errors) >= 20
    assert errors[len(errors) // 2] < 0.001
    assert errors[-1] < 0.01


def test_a_gpu_recording_is_compared() -> None:
    case = gpu.specs(False)[0]
    figures = {"allocated": 20 * 2**30, "reserved": 21 * 2**30, "driver": 22 * 2**30}
    recording: dict[str, Any] = {
        "device": {"name": "NVIDIA A100-SXM4-80GB", "bytes": 85_000_000_000},
        "versions": {"transformers": "5.0.0"},
        "cases": [
            {**case, "phases": dict.fromkeys(compare.PEAKS, figures)},
            {**gpu.specs(False)[1], "error": "out of memory"},
        ],
    }
    (row,) = compare.rows(recording)
    assert (row.allocated, row.reserved, row.driver) == tuple(figures.values())
    assert row.guess_allocated < row.guess_peak
    assert set(row.phases) == set(compare.PEAKS)
    lines = compare.table(recording).splitlines()
    assert sum(line.startswith(f"| {case['name']} |") for line in lines) == 2
    assert lines[-1].endswith("out of memory")
    assert compare.table({**recording, "device": {"name": "cpu (dry run)"}}).endswith("nothing to compare.")


def test_a_gpu_recording_leaves_out_what_cublas_holds() -> None:
    case = gpu.specs(False)[0]
    figures = {"allocated": 20 * 2**30, "reserved": 21 * 2**30, "driver": 22 * 2**30}
    recording: dict[str, Any] = {
        "device": {"name": "NVIDIA H100 80GB HBM3", "bytes": 85_000_000_000},
        "versions": {"transformers": "5.0.0"},
        "cases": [{**case, "workspaces": 2**26, "phases": dict.fromkeys((*compare.PEAKS, "evaluate"), figures)}],
    }
    (row,) = compare.rows(recording)
    assert row.allocated == 20 * 2**30 - 2**26
    assert all(counted == row.allocated for counted, _ in row.phases.values())


def test_every_case_on_a_gpu_fits_an_h100() -> None:
    from lintfit.memory import estimate
    from lintfit.memory.reading.parse import spec_from_mapping

    for case in gpu.specs(False):
        assert estimate(spec_from_mapping({**case["spec"], "gpu": "H100"})).verdict == "fits", case["name"]


class _Cuda:
    """torch.cuda's counters: every phase reaches a GiB more."""

    reached = 0

    def synchronize(self) -> None:
        self.reached += 2**30

    def reset_peak_memory_stats(self) -> None:
        pass

    def max_memory_allocated(self) -> int:
        return self.reached

    def max_memory_reserved(self) -> int:
        return self.reached + 2**20


def _nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, processes: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncase $1 in *compute-apps*) echo '{processes}';; *) echo 3000;; esac\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(("named", "driver"), [(True, 2000), (False, 2500)])
def test_a_phase_on_a_gpu_is_recorded_though_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool, driver: int
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=_Cuda()))
    _nvidia_smi(tmp_path, monkeypatch, f"{os.getpid() if named else 1}, 2000")
    meter = gpu.Meter(True, before=500 * 2**20)
    with pytest.raises(RuntimeError, match="out of memory"), meter.phase("forward"):
        raise RuntimeError("out of memory")
    with meter.phase("forward"):
        pass
    assert meter.phases == {
        "forward": {"allocated": 3 * 2**30, "reserved": 3 * 2**30 + 2**20, "driver": driver * 2**20}
    }
    assert meter.by_process is named


def test_the_gpu_runner_goes_on_after_failures_and_after_an_earlier_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [case["name"] for case in gpu.specs(True)]
    ran: list[str] = []

    def child(command: list[str], **_: Any) -> SimpleNamespace:
        if command[0] == "nvidia-smi":
            raise OSError
        name = command[command.index("--one") + 1]
        ran.append(name)
        if name == names[0]:
            raise subprocess.TimeoutExpired(command, 1)
        if name == names[1]:
            return SimpleNamespace(stdout="", stderr="Segmentation fault")
        found = {"name": name, "phases": {"step": dict.fromkeys(("allocated", "reserved", "driver"), 1)}, "seconds": 1}
        return SimpleNamespace(stdout=json.dumps({**found, "card": {"name": "H100"}}), stderr="")

    monkeypatch.setattr("subprocess.run", child)
    out = tmp_path / "gpu.json"
    assert gpu.record(out, "", True, 1.0) == 1
    assert ran == names
    content = json.loads(out.read_text())
    assert [case["name"] for case in content["cases"]] == names
    assert [case.get("error") for case in content["cases"][:3]] == ["took more than 120 s", "Segmentation fault", None]
    assert content["device"] == {"name": "H100"}
    ran.clear()
    assert gpu.record(out, "", True, 1.0) == 1
    assert ran == names[:2]
    ran.clear()
    assert gpu.record(tmp_path / "late.json", "", True, -1.0) == 0
    assert ran == []


def test_the_report_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert report.gpu().startswith("No results yet: `python -m bench.gpu.run")
    assert report.speed().startswith("No results yet: `python -m bench.speed")


def test_the_report_shows_a_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"python -c pass": 0.02, "estimate": 0.5}
    found = {
        "date": "2026-01-02",
        "python": "3.11",
        "processor_seconds": seconds,
        "ratios": {"python -c pass": 1, "estimate": 25},
        "specs_per_second": [2000, 1500],
    }
    (tmp_path / "speed.json").write_text(json.dumps(found))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert "| `estimate` | 500 ms | 25 |" in report.speed()
    assert "2000 and 1500 specs a second" in report.speed()


@pytest.mark.peers
@pytest.mark.slow
def test_the_gpu_runner_says_that_there_is_none_and_runs_dry(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    command = [sys.executable, "-m", "bench.gpu.run", "--out", str(tmp_path / "gpu.json")]
    if not torch.cuda.is_available():
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("no GPU here")
    dry = [*command, "--dry-run", "--only", "gpt2 355 M"]
    assert subprocess.run(dry, cwd=ROOT, capture_output=True, check=False).returncode == 0
    content = json.loads((tmp_path / "gpu.json").read_text())
    assert all("first step" in case["phases"] for case in content["cases"])
