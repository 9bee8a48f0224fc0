"""Words for a run, its memory as a bar, by number of GPUs, before and after, and what a step takes."""

from __future__ import annotations

from typing import Any

from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_models import name_of
from lintfit.memory.tensors.frozen_parts import frozen_parts, trained_parameters
from lintfit.report import Line, View
from lintfit.report.bars import CELLS, VERDICT_STYLES, VERDICT_WORDS, bar, gib, legend
from lintfit.report.styled import cells, wrapped
from lintfit.run.called import model_name
from lintfit.run.model import Run
from lintfit.verdict.scaling import Scaling

_SHOWN = 64
"""GPUs up to which a run's memory by their number is shown."""

PHASE_WORDS = {
    "load": "loading the model",
    "initialize": "initialization",
    "resume": "resuming",
    "forward": "forward",
    "backward": "backward",
    "step": "the optimizer step",
    "evaluate": "evaluation",
    "save": "saving",
}


def what_runs(run: Run) -> list[str]:
    """``Llama-3-8B (8.0 B)``, ``LoRA r=16``, ``weights bf16``, ``DDP``, ``8 × RTX 3090``; the unknown is left out."""
    hardware = run.hardware
    facts = run.facts or (run.spec.facts if run.spec else None)
    model = f"{model_name(run)} ({facts.parameters / 1e9:.1f} B)" if facts else _text(run.value("model"))
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
    # One process that spreads its model over several GPUs is bounded by a stage, and has no pipeline.
    spread = spec.engine == "single" and spec.pipeline_stage is not None
    degrees = {
        "tensor": spec.tensor_parallel,
        "pipeline": 1 if spread else spec.pipeline_parallel,
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


def evaluates(spec: Spec) -> list[str]:
    """The evaluation's batch, where it is not the training's, and what becomes of its logits."""
    chosen = spec.evaluation
    if chosen is None:
        return []
    kept = ", logits kept for metrics" if chosen.predictions == "kept" and not chosen.generates else ""
    what = ", answers alone" if chosen.generates == "only" else kept
    if chosen.batch_size == spec.micro_batch_size and not what and chosen.predictions != "kept":
        return []
    return [f"evaluation batch {chosen.batch_size}{what}" if chosen.batch_size else "no evaluation"]


def by_count(scaling: Scaling, view: View) -> list[Line]:
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
        drawn = bar(components, estimate.capacity_bytes, scale, min(CELLS, view.width - 20))
        style = VERDICT_STYLES[estimate.verdict]
        lines.append([(f"  {word} ", ""), *drawn, (f" {gib(estimate.peak.likely)} GiB", style)])
    return lines


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
