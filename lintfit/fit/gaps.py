"""What lessens the gaps in torch's allocator, where a plan is tight by them."""

from __future__ import annotations

from lintfit.documents.model import FileEdit
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.versions import before

VARIABLE, VALUE = "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"
_SINCE = "2.1"
"""The first torch that has it in its documents; one of before may refuse it as an unrecognised option."""
_WORTH = 0.02
"""Share of the peak from which gaps are worth a line."""


def fewer_gaps(run: Run, result: Estimate) -> tuple[FileEdit, ...]:
    """The edit that has the allocator of a run grow its segments, where gaps decide whether it fits and its launch says
    nothing of the allocator; vLLM's sleep mode stops at it (``vllm/device_allocator/cumem.py``)."""
    spec, launch = run.spec, run.launch
    if spec is None or launch is None or result.peak.high <= (result.capacity_bytes or 0):
        return ()
    if spec.nodes > 1 or before(run.versions.get("torch"), _SINCE) is True or run.mentions("vllm"):
        return ()
    if any("ALLOC_CONF" in document.text for document in (*run.documents, launch.document)):
        return ()
    return launch.set_variable(VARIABLE, VALUE) or () if _decide(spec, result) else ()


def _decide(spec: Spec, result: Estimate) -> bool:
    """Whether gaps are the most of what may be too much."""
    from lintfit.memory.verdict.causes import GAPS, causes

    gaps = next((cause.bytes for cause in causes(spec) if cause.names == (GAPS,)), 0)
    return gaps >= _WORTH * result.peak.likely and 2 * gaps >= result.peak.high - (result.capacity_bytes or 0)
