"""What is said of a run: what runs on what, its memory as a bar, and the plan that makes it fit."""

from __future__ import annotations

from typing import Any

from lintfit.findings.results import RunResult
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_models import name_of
from lintfit.memory.tensors.frozen_parts import frozen_parts, trained_parameters
from lintfit.report import Line, View, shown_path
from lintfit.report.bars import VERDICT_STYLES, VERDICT_WORDS, bar, gib, legend
from lintfit.report.styled import cells, wrapped
from lintfit.run.model import Run
from lintfit.settings.model import spoken
from lintfit.verdict.scaling import Scaling

_ASSUMPTIONS = 3
_SHOWN = 64
"""GPUs up to which a run's memory by their number is shown."""

PHASE_WORDS = {
    "load": "loading the model",
    "initialize": "initialization",
    "forward": "forward",
    "backward": "backward",
    "step": "the optimizer step",
    "evaluate": "evaluation",
    "save": "saving",
}


def run_lines(result: RunResult, view: View) -> list[Line]:
    """The header of a run, its memory against its GPUs, and what the figures assume."""
    lines = header(result.run, view)
    estimate = result.estimate
    if estimate is None:
        if result.run.unknown:
            missing = ", ".join(result.run.unknown)
            lines += wrapped([("  memory unknown: ", "note")], f"to know it, add {missing}", view.width, 4)
        return lines
    lines += memory_lines(estimate, view, longest=result.longest)
    if result.scaling is not None:
        lines += _by_count(result.scaling, view)
    if result.before is not None:
        lines += before_after(result.before, estimate, view)
    for assumption in estimate.assumptions[:_ASSUMPTIONS]:
        lines += wrapped([("  assumed: ", "dim")], assumption, view.width, 4, "dim")
    more = len(estimate.assumptions) - _ASSUMPTIONS
    if more > 0:
        lines.append([(f"  {more} more assumptions: `lintfit estimate`", "dim")])
    for what in estimate.not_modelled:
        lines += wrapped([("  not modelled: ", "dim")], what, view.width, 4, "dim")
    return lines


def short_line(result: RunResult, view: View) -> Line:
    """One line for a run that fits and has no findings."""
    estimate = result.estimate
    line: Line = [(result.run.id, "path"), (" ", "")]
    if estimate is None:
        return [*line, ("memory unknown", "note")]
    return [*line, *_verdict(estimate, result.longest), (f" · {' · '.join(what_runs(result.run))}", "")]


def header(run: Run, view: View) -> list[Line]:
    """The launch, then what runs on what."""
    lines: list[Line] = [[(run.id, "path")]]
    lines += flowed([[(part, "")] for part in what_runs(run)], view.width, "  ", " · ")
    if run.spec is not None:
        lines += flowed([[(part, "")] for part in _batch(run)], view.width, "  ", " · ")
    return lines


def what_runs(run: Run) -> list[str]:
    """``Llama-3-8B (8.0 B)``, ``LoRA r=16``, ``weights bf16``, ``DDP``, ``8 × RTX 3090``; the unknown is left out."""
    hardware = run.hardware
    facts = run.facts or (run.spec.facts if run.spec else None)
    model = f"{facts.name} ({facts.parameters / 1e9:.1f} B)" if facts else _text(run.value("model"))
    card = hardware.gpu.name if hardware.gpu else "GPU"
    cards = f"{hardware.gpus} × {card}" if hardware.gpus else card if hardware.gpu else ""
    nodes = f" on {hardware.nodes} nodes" if hardware.nodes > 1 else ""
    spec = run.spec
    beside = [f"beside it {name_of(each)} ({each.weights_dtype})" for each in spec.frozen_models] if spec else []
    parts = [
        model,
        *beside,
        *(_method(run, spec) if spec else []),
        engine(spec) if spec else _stated_engine(run),
        f"{cards}{nodes}",
    ]
    return [part for part in parts if part]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _method(run: Run, spec: Spec) -> list[str]:
    trained = f" of {trained_parameters(spec) / 1e9:.2g} B" if frozen_parts(spec).of_text else ""
    method = f"full fine-tuning{trained}" if spec.method == "full" else f"LoRA r={spec.lora_rank}"
    method = "what is trained is not known" if "method" in run.doubtful else method
    weights = f"weights {spec.quantization or spec.weights_dtype}"
    mixed = "" if spec.mixed_precision == "no" else f", {spec.mixed_precision} mixed precision"
    optimizer = "DeepSpeedCPUAdam" if run.value("optimizer") == "deepspeed_cpu_adam" else spec.optimizer
    return [method, weights + mixed, optimizer]


def engine(spec: Spec) -> str:
    """``ZeRO-2, optimizer offloaded to cpu``, ``DDP``, ``FSDP2 FULL_SHARD, tensor parallel 4`` or ``one process``."""
    degrees = {
        "tensor": spec.tensor_parallel,
        "pipeline": spec.pipeline_parallel,
        "sequence": spec.sequence_parallel,
        "expert": spec.expert_parallel,
    }
    split = [f"{kind} parallel {degree}" for kind, degree in degrees.items() if degree > 1]
    alone = split and spec.engine in ("ddp", "single") and spec.data_parallel == 1
    return ", ".join(split if alone else [_sharding(spec), *split])


def _sharding(spec: Spec) -> str:
    if spec.engine == "deepspeed":
        offloads = [
            f"{what} offloaded to {device}"
            for what, device in (("optimizer", spec.offload_optimizer), ("parameters", spec.offload_param))
            if device != "none"
        ]
        return ", ".join([f"ZeRO-{spec.zero_stage}", *offloads])
    if spec.engine == "fsdp":
        fsdp = spec.fsdp
        offload = ", offloaded to cpu" if fsdp and fsdp.cpu_offload else ""
        offload += fsdp.unwrapped if fsdp else ""
        return f"FSDP{fsdp.version if fsdp else ''} {fsdp.strategy if fsdp else ''}".strip() + offload
    return "DDP" if spec.engine == "ddp" else "one process"


def _stated_engine(run: Run) -> str:
    stage = run.value("zero_stage")
    return f"ZeRO-{stage}" if stage is not None else _text(run.value("engine"))


def _batch(run: Run) -> list[str]:
    spec = run.spec
    assert spec is not None
    checkpointing = spec.gradient_checkpointing
    stated = checkpointing if isinstance(checkpointing, str) else spoken(checkpointing)
    a_rank = f"micro-batch {spec.micro_batch_size} × accumulation {spec.gradient_accumulation_steps}"
    ranks = spec.data_parallel
    effective = spec.effective_batch
    batch = f"batch {effective} = {a_rank} × {ranks} {'rank' if ranks == 1 else 'ranks'}"
    if run.count_open:
        batch = f"batch of a rank: {a_rank}"
    made = f", {spec.decoder_seq_len} for the decoder" if spec.decoder_seq_len is not None else ""
    return [batch, f"{spec.seq_len} tokens{made}", f"gradient checkpointing {stated}", *_evaluates(spec)]


def _evaluates(spec: Spec) -> list[str]:
    """The evaluation's batch, where it is not the training's, and what becomes of its logits."""
    chosen = spec.evaluation
    if chosen is None:
        return []
    kept = ", logits kept for metrics" if chosen.predictions == "kept" and not chosen.generates else ""
    what = ", answers alone" if chosen.generates == "only" else kept
    if chosen.batch_size == spec.micro_batch_size and not what and chosen.predictions != "kept":
        return []
    return [f"evaluation batch {chosen.batch_size}{what}" if chosen.batch_size else "no evaluation"]


def _by_count(scaling: Scaling, view: View) -> list[Line]:
    """``GiB by number of GPUs: 1: 275.2  2: 151.3 …``, up to the first that fits."""
    fewest = scaling.fewest
    entries: list[Line] = []
    for count, result in scaling.by_count:
        fits = fewest is not None and count >= fewest[0]
        entries.append([(f"{count}: {gib(result.peak.likely)}{' fits' if fits else ''}", "")])
        if fits or count >= _SHOWN:
            break
    return flowed(entries, view.width, "  GiB by number of GPUs: ", "  ")


def memory_lines(estimate: Estimate, view: View, longest: int | None = None) -> list[Line]:
    """Verdict, bar, legend and the range of one estimate; ``longest``: see :class:`.results.RunResult`."""
    peak = estimate.peak_moment.components
    lines: list[Line] = [[("  memory of one GPU: ", ""), *_verdict(estimate, longest)]]
    lines.append([("  ", ""), *bar(peak, estimate.capacity_bytes)])
    lines += flowed(legend(peak), view.width, "  GiB: ", "  ")
    phase = PHASE_WORDS.get(estimate.peak_moment.phase, estimate.peak_moment.phase)
    spread = f"likely {gib(estimate.peak.likely)}, from {gib(estimate.peak.low)} to {gib(estimate.peak.high)} GiB"
    host = f"; {_host(estimate)}" if estimate.host.peak or estimate.host.nvme else ""
    lines += wrapped([("  ", "")], f"{spread}; peak in {phase}{host}", view.width, 4)
    return lines


def _verdict(estimate: Estimate, longest: int | None) -> Line:
    style = VERDICT_STYLES[estimate.verdict]
    likely, capacity = estimate.peak.likely, estimate.capacity_bytes
    if capacity is None:
        return [(f"{gib(likely)} GiB", "note"), (" (no GPU named: give `--gpu` for a verdict)", "")]
    line: Line = [(f"{gib(likely)} of {gib(capacity)} GiB", style), (", ", "")]
    if estimate.verdict is Verdict.UNKNOWN:
        return [*line, ("as far as is known: no verdict", style)]
    if estimate.verdict is Verdict.DOES_NOT_FIT and likely > capacity:
        return [*line, (f"does not fit: {gib(likely - capacity)} GiB too much", style)]
    upto = f" with sequences of up to {longest} tokens" if longest is not None else ""
    return [*line, (f"{_words(estimate)}{upto}", style)]


def _words(estimate: Estimate) -> str:
    """The verdict, and the host's memory where that is what decides it."""
    host = estimate.host_capacity_bytes
    if host is None or estimate.host.peak <= host:
        return VERDICT_WORDS[estimate.verdict]
    return f"{VERDICT_WORDS[Verdict.DOES_NOT_FIT]}: {_host(estimate)}"


def _host(estimate: Estimate) -> str:
    host = f"host memory {gib(estimate.host.peak)}"
    capacity = estimate.host_capacity_bytes
    of = f" of {gib(capacity)}" if capacity is not None else ""
    nvme = f", {gib(estimate.host.nvme)} GiB on NVMe" if estimate.host.nvme else ""
    return f"{host}{of} GiB a node{nvme}"


def flowed(entries: list[Line], width: int, first: str, separator: str) -> list[Line]:
    """Entries next to each other, as many to a line as fit; further lines are indented like the first."""
    lines: list[Line] = []
    used = 0
    for entry in entries:
        size = cells(separator) + sum(cells(text) for text, _ in entry)
        if lines and used + size <= width:
            lines[-1] += [(separator, ""), *entry]
        else:
            lines.append([(" " * cells(first) if lines else first, ""), *entry])
            used = cells(first) - cells(separator)
        used += size
    return lines


def before_after(before: Estimate, after: Estimate, view: View) -> list[Line]:
    """Two bars on one scale."""
    peaks = before.peak_moment.components, after.peak_moment.components
    scale = max(sum(peaks[0].values()), sum(peaks[1].values()), after.capacity_bytes or 0)
    lines: list[Line] = []
    for word, estimate, components in (("before", before, peaks[0]), ("after ", after, peaks[1])):
        drawn = bar(components, estimate.capacity_bytes, scale)
        style = VERDICT_STYLES[estimate.verdict]
        lines.append([(f"  {word} ", ""), *drawn, (f" {gib(estimate.peak.likely)} GiB", style)])
    return lines


def plan_lines(result: RunResult, view: View) -> list[Line]:
    """The plan of a run that does not fit: what does not suffice, the steps, before and after."""
    plan, estimate = result.plan, result.estimate
    rejected = plan.rejected if plan else result.rejected
    lines: list[Line] = []
    for tried in rejected:
        peak = gib(tried.estimate.peak.likely)
        tried_peak = f"{tried.description}: {peak} GiB, {_words(tried.estimate)}"
        lines += wrapped([("  - ", "removed")], tried_peak, view.width, 4)
    if plan is None:
        if lines:  # what is missing stands in the finding no-plan-fits
            lines.insert(0, [("no change of the files makes it fit", "bad")])
        return lines
    for further in plan.beyond:
        more = f"{further.description}: {gib(further.estimate.peak.likely)} GiB, more than is needed"
        lines += wrapped([("  + ", "gutter")], more, view.width, 4)
    after = plan.estimate
    capacity = f" of {gib(after.capacity_bytes)}" if after.capacity_bytes is not None else ""
    start = f"{gib(estimate.peak.likely)} → " if estimate else ""
    lines.insert(
        0, [("plan: ", "good"), (f"{start}{gib(after.peak.likely)}{capacity} GiB, ", ""), *_plan_verdict(after)]
    )
    for number, action in enumerate(plan.actions, 1):
        lines += wrapped([(f"  {number}. ", "added")], action.said(shown_path), view.width, 5)
    if estimate is not None:
        lines += before_after(estimate, after, view)
    lines += _costs(result, view)
    return lines


def _plan_verdict(estimate: Estimate) -> Line:
    return [(VERDICT_WORDS[estimate.verdict], VERDICT_STYLES[estimate.verdict])]


def step_time(ratio: float) -> str:
    """``about 1.3 times as long``; a model of first order cannot tell tenths from nothing."""
    if ratio <= 0.75:
        return f"about {ratio:g} of the time"
    return "about as long as before" if abs(ratio - 1) < 0.15 else f"about {ratio:g} times as long"


_READERS = 3
"""How many other runs a note names."""


def read_by(readers: tuple[str, ...]) -> str:
    """Which other runs read what a plan edits."""
    named = ", ".join(readers[:_READERS])
    more = f" and {len(readers) - _READERS} more" if len(readers) > _READERS else ""
    verb = "reads" if len(readers) == 1 else "read"
    return f"{named}{more} {verb} a file that this changes, too, and may get slower"


def _costs(result: RunResult, view: View) -> list[Line]:
    plan = result.plan
    assert plan is not None
    lines: list[Line] = []
    time = f"a step takes {step_time(plan.relative_step_time)}"
    if plan.estimate.host.peak:
        time = f"{time}; {_host(plan.estimate)}"
    lines += wrapped([("  = ", "gutter"), ("cost: ", "note")], time, view.width, 4)
    if plan.readers:
        lines += wrapped([("  = ", "gutter"), ("note: ", "note")], read_by(plan.readers), view.width, 4)
    match str(plan.applicability):
        case "safe":
            apply = "`--fix` carries it out, `--diff` shows it"
        case "unsafe":
            flags = "`--fix --unsafe-fixes` carries it out, `--diff --unsafe-fixes` shows it"
            apply = f"{flags} (unsafe: {plan.fix.why_unsafe})"
        case _:
            why = f": {plan.by_hand}" if plan.by_hand else ""
            apply = f"to be carried out by hand{why}"
    return [*lines, *wrapped([("  = ", "gutter"), ("help: ", "help")], apply, view.width, 4)]
