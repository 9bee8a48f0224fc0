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
from lintfit.memory.rollouts.rollout import layer_cache
from lintfit.run.model import Run
from lintfit.settings.kinds import LARGEST_COUNT
from lintfit.settings.model import Place, is_count
from lintfit.verdict.capped import exact_length

if TYPE_CHECKING:
    from lintfit.documents.shell_document import Command
    from lintfit.sources.launchers.launch import Launch

_SHARES = (0.3, 0.25, 0.2, 0.15, 0.1)
"""Shares of the GPU to try for vLLM, TRL's own default first."""

_VARIABLE = "CUDA_VISIBLE_DEVICES"


def check_run(context: RunContext) -> Iterator[Report]:
    short = _too_small(context.run)
    if short is not None:
        yield short
    else:
        yield from _colocated(context)
    yield from _server(context.run)


def vllm_does_not_start(run: Run) -> bool:
    """Whether the share of a GPU that a vLLM in the trainer's process has does not hold the weights, or no cache beside
    them."""
    return _too_small(run) is not None


def _colocated(context: RunContext) -> Iterator[Report]:
    """vLLM on the trainer's own GPUs: what it reserves is missing there."""
    spec, estimate = context.run.spec, context.estimate
    if spec is None or spec.generation is None or spec.capacity_bytes is None:
        return
    share = spec.generation.vllm_gpu_memory_utilization
    if not share or estimate is None or context.verdict not in (Verdict.DOES_NOT_FIT, Verdict.TIGHT):
        return
    yield Report(
        place_of(context.run, "vllm_gpu_memory_utilization", "vllm_mode", "use_vllm"),
        f"vLLM on the trainer's GPUs reserves {share:.0%} of each, {gib(share * spec.capacity_bytes)}: "
        f"the peak with training is {peak(estimate)}{at_length(context)}",
        severity=Severity.WARNING if _is_clear(context, estimate) else Severity.INFO,
        fix=_smaller(context, share),
        help="lower vllm_gpu_memory_utilization, or give vLLM GPUs of its own",
    )


_PER_WEIGHT = 2
"""Bytes of a weight that vLLM loads: its ``dtype="auto"`` takes 16 bits, for fp32 checkpoints, too."""


_A_PASS = 1 << 30
"""Bytes that vLLM finds taken beside the weights when it counts the blocks of its cache: the CUDA context, and what a
pass over dummy inputs makes (``worker.py:determine_num_available_blocks``): 1.26 GiB for the pass alone by a log of
Llama 3 8B (https://github.com/vllm-project/vllm/pull/10511)."""


def _too_small(run: Run) -> Report | None:
    """That vLLM's share of a GPU does not hold the weights, or, on a GPU of its own, hardly more: it stops as it starts
    (vLLM ``kv_cache_utils.py``: "No available memory for the cache blocks", and what one sequence of the greatest
    length needs)."""
    spec = run.spec
    if spec is None or spec.generation is None or spec.capacity_bytes is None:
        return None
    own = not spec.generation.vllm_gpu_memory_utilization
    share = _share_of_own(run) if own else spec.generation.vllm_gpu_memory_utilization
    weights, room = _weights(run), share * spec.capacity_bytes
    more = _A_PASS + _cache(run) if own else 0
    if not share or not weights or weights + more <= room:
        return None
    sure = weights > room
    left = "" if sure else f", which leaves {gib(room - weights)} for a pass and the cache"
    return Report(
        place_of(run, "vllm_gpu_memory_utilization", "vllm_device", "vllm_mode", "use_vllm"),
        f"vLLM may use {share:.0%} of {'its' if own else 'each'} GPU, {gib(room)}, and the weights that it loads take "
        f"{gib(weights)}{left}: it {'does not' if sure else 'is not likely to'} start",
        severity=Severity.ERROR if sure else Severity.WARNING,
        help="raise vllm_gpu_memory_utilization, or lower the length that vLLM is started for"
        if own
        else "split it over more GPUs (vllm_tensor_parallel_size), or give vLLM GPUs of its own",
    )


def _share_of_own(run: Run) -> float:
    """The share of the GPU of its own that a vLLM in the trainer's first process has (``vllm_device`` of TRL 0.14 to
    0.15 and of ms-swift); 0 where none is named, or its share is not known."""
    device = run.settings.get("vllm_device")
    if run.spec is None or run.spec.generation is None or not run.spec.generation.vllm_server:
        return 0
    if device is None or device.provenance.kind == "default":
        return 0
    stated = run.value("vllm_gpu_memory_utilization")
    return stated if isinstance(stated, float) and 0 < stated <= 1 else 0


def _cache(run: Run) -> int:
    """Bytes of keys and values of the longest sequence that vLLM is started for: of as many tokens as the model has
    positions where nobody says less (``vllm/config.py:_get_and_verify_max_len``), at the least of a sample's."""
    spec = run.spec
    assert spec is not None
    said = run.training.argument("vllm_max_model_len") if run.training is not None else None
    whole = (spec.facts.max_positions if said is None else None) or spec.seq_len
    tokens = said.value if said is not None and is_count(said.value) else whole
    return spec.facts.layers * layer_cache(spec.facts, _PER_WEIGHT, tokens)


def _weights(run: Run) -> float:
    """Bytes of the weights that vLLM holds on each GPU, at the least; 0 where nobody knows."""
    spec = run.spec
    if spec is None or spec.quantization is not None or not spec.facts.exact:
        return 0
    over = run.training.argument("vllm_tensor_parallel_size") if run.training is not None else None
    ranks = 1 if over is None else over.value if isinstance(over.value, int) and over.value > 0 else spec.gpus
    return _PER_WEIGHT * spec.facts.parameters / ranks


def _is_clear(context: RunContext, estimate: Estimate) -> bool:
    """Whether both likely have no room, with samples of a length that somebody states; surely, where nobody says how
    large their pictures are."""
    spec = context.run.spec
    if spec is not None and spec.facts.vision is not None and context.verdict is not Verdict.DOES_NOT_FIT:
        return False
    return spec is not None and "seq_len" in spec.stated and not _likely_fits(context, estimate)


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
                severity=Severity.INFO if is_page(launch.document.path) else Severity.ERROR,
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
