"""The rules of the verdict on estimates made by hand, so that they hold whatever the memory model says."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog.facts import Gpu, ModelFacts, Tensor
from lintfit.checks import does_not_fit, fix_insufficient, host_ram_short, memory_unknown, no_plan_fits, tight_fit
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.documents.model import Document, FileText, Kind
from lintfit.findings.model import Rejected, Severity
from lintfit.memory.result import Estimate, HostMemory, Moment, Range, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.run.model import Hardware, Origin, Run

FACTS = ModelFacts(
    name="toy/7b",
    model_type="llama",
    hidden=4096,
    layers=32,
    heads=32,
    kv_heads=32,
    head_dim=128,
    intermediate=11008,
    vocab=32000,
    tied=False,
    gated=True,
    norm="rmsnorm",
    activation="silu",
    tensors=(Tensor("w", (7_000_000_000,)),),
)
GPU = Gpu("Toy 24", 24 * GIB, 24, (8, 0), True, True)
TEXT = '{"zero_optimization": {"stage": 2}}'


def a_run(**changes: Any) -> Run:
    document = Document(FileText(Path("ds.json"), TEXT), Kind.JSON)
    spec = Spec(facts=FACTS, gpu=GPU, capacity_bytes=24 * GIB, gpus=8, engine="deepspeed", zero_stage=2)
    given: dict[str, Any] = {
        "spec": spec,
        "hardware": Hardware(GPU, 8, 1, 24 * GIB),
        "facts": FACTS,
        "origin": Origin("launch", Path("run.sh")),
        **changes,
    }
    return Run("run.sh:1", (document,), {}, **given)


def an_estimate(verdict: Verdict, gib: float, host: HostMemory | None = None, memory: int | None = None) -> Estimate:
    size = int(gib * GIB)
    moment = Moment("step", "step", {"parameters": size // 2, "optimizer_states": size - size // 2})
    spread = size // 20
    return Estimate(
        Range(size - spread, size, size + spread), (moment,), verdict, 24 * GIB, host or HostMemory(), memory
    )


def one(reports: Iterator[Report]) -> Report:
    (report,) = reports
    return report


def test_does_not_fit_names_the_run_and_its_parts() -> None:
    report = one(does_not_fit.check_run(RunContext(a_run(), an_estimate(Verdict.DOES_NOT_FIT, 30))))
    assert report.message == (
        "toy/7b, full fine-tuning, ZeRO-2 on 8 × Toy 24: model states alone take at least 28.5 of 24.0 GiB per GPU"
    )
    assert report.severity is Severity.ERROR
    assert report.place.document.path == Path("ds.json")


@pytest.mark.parametrize("verdict", [Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN])
def test_other_verdicts_fit_well_enough(verdict: Verdict) -> None:
    context = RunContext(a_run(), an_estimate(verdict, 20))
    for rule in (does_not_fit, no_plan_fits, fix_insufficient):
        assert list(rule.check_run(context)) == []


def test_tight_fit_says_the_range() -> None:
    report = one(tight_fit.check_run(RunContext(a_run(), an_estimate(Verdict.TIGHT, 23))))
    assert "23.0 of 24.0 GiB per GPU (21.9 GiB to 24.1 GiB)" in report.message
    assert list(tight_fit.check_run(RunContext(a_run(), an_estimate(Verdict.FITS, 12)))) == []


def test_no_plan_fits_passes_on_what_is_missing() -> None:
    context = RunContext(a_run(), an_estimate(Verdict.DOES_NOT_FIT, 300), shortfall="16 such GPUs would do")
    assert one(no_plan_fits.check_run(context)).message.endswith("16 such GPUs would do")


def test_fix_insufficient_lists_what_was_tried() -> None:
    tried = (
        Rejected("ZeRO-2", an_estimate(Verdict.DOES_NOT_FIT, 28)),
        Rejected("ZeRO-3", an_estimate(Verdict.TIGHT, 23)),
        Rejected("offload", an_estimate(Verdict.FITS, 9, HostMemory(steady=200 * GIB), 64 * GIB)),
    )
    context = RunContext(a_run(), an_estimate(Verdict.DOES_NOT_FIT, 40), rejected=tried)
    assert one(fix_insufficient.check_run(context)).message == (
        "not enough by itself (the peak is 40.0 GiB now): ZeRO-2 28.0 of 24.0 GiB; "
        "offload 9.0 of 24.0 GiB but 200.0 GiB of 64.0 GiB host memory"
    )


@pytest.mark.parametrize(
    ("needed", "there", "expected"),
    [
        (100, 64, Severity.ERROR),
        (64, 64, None),
        (100, None, None),
        (2 * 8 * 24, None, None),
        (2 * 8 * 24 + 1, None, Severity.INFO),
    ],
)
def test_host_memory(needed: int, there: int | None, expected: Severity | None) -> None:
    memory = there * GIB if there is not None else None
    estimate = an_estimate(Verdict.FITS, 10, HostMemory(steady=needed * GIB), memory)
    reports = list(host_ram_short.check_run(RunContext(a_run(), estimate)))
    assert [report.severity for report in reports] == ([expected] if expected is not None else [])


def test_host_memory_while_loading() -> None:
    estimate = an_estimate(Verdict.FITS, 10, HostMemory(steady=0, load_peak=104 * GIB), 64 * GIB)
    message = one(host_ram_short.check_run(RunContext(a_run(), estimate))).message
    assert message.startswith("loading a copy of the model on each of 8 ranks takes 104.0 GiB")


def test_host_memory_while_merging() -> None:
    host = HostMemory(steady=10 * GIB, load_peak=90 * GIB, merge=104 * GIB)
    estimate = an_estimate(Verdict.FITS, 10, host, 64 * GIB)
    message = one(host_ram_short.check_run(RunContext(a_run(), estimate))).message
    assert message.startswith("merging the adapters into the model takes 104.0 GiB")


def a_script(trains: bool, parses: bool = False) -> Any:
    facts = types.SimpleNamespace(
        loads=(), trains=trains, training_arguments=None, trainer=None, initialize=None, accelerator=None
    )
    return types.SimpleNamespace(facts=facts, walk=types.SimpleNamespace(parses=parses))


def test_memory_unknown_says_what_to_add() -> None:
    run = a_run(spec=None, script=a_script(True), unknown=("the GPU (--gpu)", "the number of GPUs (--gpus)"))
    report = one(memory_unknown.check_run(RunContext(run, None)))
    known = "the memory of this run is not known without the GPU (--gpu) and the number of GPUs (--gpus)"
    assert (report.message, report.help) == (known, "")


def test_memory_unknown_asks_for_what_starts_a_script_that_parses_a_command_line() -> None:
    run = a_run(spec=None, script=a_script(True, parses=True), unknown=("the model (--model)",))
    assert "args.json" in one(memory_unknown.check_run(RunContext(run, None))).help


@pytest.mark.parametrize(
    "changes",
    [
        {"script": a_script(False)},
        {"script": None},
        {"script": a_script(True), "origin": Origin("config", Path("ds.json"))},
    ],
)
def test_memory_unknown_asks_nothing_of_what_is_no_training_run(changes: dict[str, Any]) -> None:
    run = a_run(spec=None, unknown=("the model (--model)",), **changes)
    assert list(memory_unknown.check_run(RunContext(run, None))) == []
