from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import at_length, change, fits, place_of
from lintfit.checks.helpers.wording import gib, peak, united
from lintfit.documents.markdown import is_page, under_one_heading
from lintfit.documents.numerals import natural, whole
from lintfit.documents.shell_directives import slurm_counts
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.frozen import replace
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.model import Run
from lintfit.settings.kinds import LARGEST_COUNT
from lintfit.settings.model import Place
from lintfit.verdict.capped import exact_length

if TYPE_CHECKING:
    from lintfit.documents.shell_document import Command
    from lintfit.sources.launchers.launch import Launch

_SHARES = (0.3, 0.25, 0.2, 0.15, 0.1)
"""Shares of the GPU to try for vLLM, TRL's own default first."""

_VARIABLE = "CUDA_VISIBLE_DEVICES"


def check_run(context: RunContext) -> Iterator[Report]:
    yield from _colocated(context)
    yield from _server(context.run)


def vllm_does_not_start(run: Run) -> bool:
    """Whether the share of a GPU that a vLLM in the trainer's process has does not hold the weights."""
    generation = run.spec.generation if run.spec is not None and run.spec.capacity_bytes is not None else None
    share = generation.vllm_gpu_memory_utilization if generation is not None else 0
    return bool(share) and _too_small(run, share) is not None


def _colocated(context: RunContext) -> Iterator[Report]:
    """vLLM on the trainer's own GPUs: what it reserves is missing there."""
    spec, estimate = context.run.spec, context.estimate
    if spec is None or spec.generation is None or spec.capacity_bytes is None:
        return
    share = spec.generation.vllm_gpu_memory_utilization
    if share and (short := _too_small(context.run, share)) is not None:
        yield short
        return
    if not share or estimate is None or context.verdict not in (Verdict.DOES_NOT_FIT, Verdict.TIGHT):
        return
    yield Report(
        place_of(context.run, "vllm_gpu_memory_utilization", "vllm_mode", "use_vllm"),
        f"vLLM on the trainer's GPUs reserves {share:.0%} of each, {gib(share * spec.capacity_bytes)}: "
        f"the peak with training is {peak(estimate)}{at_length(context)}",
        severity=Severity.INFO if _likely_fits(context, estimate) else Severity.WARNING,
        fix=_smaller(context, share),
        help="lower vllm_gpu_memory_utilization, or give vLLM GPUs of its own",
    )


_PER_WEIGHT = 2
"""Bytes of a weight that vLLM loads: its ``dtype="auto"`` takes 16 bits, for fp32 checkpoints, too."""


def _too_small(run: Run, share: float) -> Report | None:
    """That vLLM's share of a GPU does not hold the weights: it stops as it starts (vLLM ``kv_cache_utils.py``: "No
    available memory for the cache blocks")."""
    assert run.spec is not None and run.spec.capacity_bytes is not None
    weights, room = _weights(run), share * run.spec.capacity_bytes
    if weights <= room:
        return None
    return Report(
        place_of(run, "vllm_gpu_memory_utilization", "vllm_mode", "use_vllm"),
        f"vLLM may use {share:.0%} of each GPU, {gib(room)}, and the weights that it loads take {gib(weights)}: "
        "it does not start",
        severity=Severity.ERROR,
        help="split it over more GPUs (vllm_tensor_parallel_size), or give vLLM GPUs of its own",
    )


def _weights(run: Run) -> float:
    """Bytes of the weights that vLLM holds on each GPU, at the least; 0 where nobody knows."""
    spec = run.spec
    if spec is None or spec.quantization is not None or not spec.facts.exact:
        return 0
    over = run.training.argument("vllm_tensor_parallel_size") if run.training is not None else None
    ranks = 1 if over is None else over.value if isinstance(over.value, int) and over.value > 0 else spec.gpus
    return _PER_WEIGHT * spec.facts.parameters / ranks


def _likely_fits(context: RunContext, estimate: Estimate) -> bool:
    """Whether both likely have room, or have it where samples are short, and nobody knows how long they are."""
    if estimate.capacity_bytes is not None and estimate.peak.likely <= estimate.capacity_bytes:
        return True
    return not exact_length(context.run) and fits(context.at_short)


def _smaller(context: RunContext, share: float) -> Fix | None:
    spec = context.run.spec
    assert spec is not None and spec.generation is not None
    least = _weights(context.run) / (spec.capacity_bytes or 1)
    for smaller in (candidate for candidate in _SHARES if least < candidate < share):
        generation = replace(spec.generation, vllm_gpu_memory_utilization=smaller)
        if fits(context.what_if(generation=generation)):
            changes = {"vllm_gpu_memory_utilization": smaller}
            return change(context.run, f"leave vLLM {smaller:.0%} of the GPU", Applicability.SAFE, changes)
    return None


def _server(run: Run) -> Iterator[Report]:
    """A server that the same shell script starts on GPUs that the trainer takes, too; in a page, the last one that the
    same section starts before, for others there are alternatives to it."""
    launch = run.launch
    if launch is None or run.value("vllm_mode") != "server" or run.hardware.nodes != 1:
        return
    mine = _trainer_cards(run)
    several = int(slurm_counts(launch.document.directives).get("SLURM_NNODES", "1")) > 1
    for command in _servers(launch) if mine else ():
        if command.conditional or _are_placed_apart(command, launch.command, several):
            continue
        theirs = _server_cards(command)
        shared = sorted(mine & theirs) if theirs else []
        if shared:
            gpus, one = united([str(each) for each in shared]), len(shared) == 1
            yield Report(
                launch.place,
                f"GPU{'' if one else 's'} {gpus} of the trainer {'is' if one else 'are'} also used by "
                "the vLLM server, which reserves most of a GPU: whoever starts second runs out of memory",
                severity=Severity.WARNING if is_page(launch.document.path) else Severity.ERROR,
                related=(Related(Place(launch.document, command.span), "the server is started here"),),
                help=f"give each of the two its own {_VARIABLE}",
            )


def _servers(launch: Launch) -> Iterator[Command]:
    """The servers that run beside a training: all of a script; of a page the nearest before it, where no heading stands
    between the two, since who follows one section need not have started what another does."""
    document, start = launch.document, launch.command.span.start
    servers = [command for command in document.commands if command is not launch.command and _is_server(command)]
    if not is_page(document.path):
        yield from servers
        return
    before = [command for command in servers if command.span.start < start]
    if before and under_one_heading(document.text, before[-1].span.start, start):
        yield before[-1]


def _is_server(command: Command) -> bool:
    words = [word.text for word in command.words]
    return "vllm-serve" in words or ("vllm", "serve") in pairwise(words)


_REMOTE = frozenset(("ssh", "pdsh", "clush"))
_PLACES = frozenset(
    (
        "nodelist",
        "w",
        "relative",
        "r",
        "exclude",
        "x",
        "het-group",
        "gres",
        "gpus",
        "G",
        "gpus-per-node",
        "gpus-per-task",
    )
)
"""The options of ``srun`` that give a step nodes or GPUs of its own (https://slurm.schedmd.com/srun.html)."""


def _are_placed_apart(server: Command, trainer: Command, several: bool) -> bool:
    """Whether the two are put on different nodes, or given GPUs of their own by ``srun``; where a job has several
    nodes, nobody knows which of them a step of it gets."""
    theirs, mine = _placed(server), _placed(trainer)
    if theirs is None and mine is None:
        return False
    return (theirs or ()) != (mine or ()) or several


def _placed(command: Command) -> tuple[str, ...] | None:
    """What says where a command runs, in the words of ``ssh`` or ``srun``; None where the shell itself runs it."""
    words = [word.text for word in command.words]
    for index, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in _REMOTE:
            return tuple(each for each in words[index + 1 :] if not each.startswith("-"))[:1]
        if name == "srun":
            return tuple(_options(words[index + 1 :]))
    return None


def _options(words: list[str]) -> Iterator[str]:
    for index, word in enumerate(words):
        key, _, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key in _PLACES:
            yield f"{key}={value or ''.join(words[index + 1 : index + 2])}"


def _trainer_cards(run: Run) -> set[int]:
    assert run.launch is not None
    visible = run.launch.settings.get("visible_devices")
    gpus = run.hardware.gpus
    if visible is not None:
        return set(_numbers(visible.value)[:gpus])
    return set(range(gpus)) if gpus is not None else set()


def _server_cards(command: Command) -> set[int]:
    """GPUs of a server: as many of the visible ones as its parallel sizes say, from the first on."""
    visible: str | None = None
    for assignment in command.assignments:
        if assignment.name == _VARIABLE:
            visible = assignment.value or ""
    if visible is None and _VARIABLE in command.environment:
        return set()
    ranks = _option(command, "tensor_parallel_size") * _option(command, "data_parallel_size")
    return set(range(min(ranks, LARGEST_COUNT))) if visible is None else set(_numbers(visible)[:ranks])


def _option(command: Command, name: str) -> int:
    words = [word.text.replace("-", "_") for word in command.words]
    for index, word in enumerate(words):
        key, _, value = word.lstrip("_").partition("=")
        if key == name:
            value = value or (words[index + 1] if index + 1 < len(words) else "")
            return natural(value) or 1
    return 1


def _numbers(text: object) -> list[int]:
    parts = text.split(",") if isinstance(text, str) else []
    return [number for part in parts if (number := whole(part)) is not None]
