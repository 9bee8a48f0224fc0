"""Why a run has no verdict: one line for each thing that is not known, with what would make it known.

Runs that lack the same have the same line, so that a report can say it once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.documents.patterns import lazy_pattern
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec
from lintfit.run.hardware import missing_gpu
from lintfit.run.model import REFUSED, UNPARSED, UNREADABLE, Run
from lintfit.settings.model import UNKNOWN, in_words

LENGTH = "the length of its sequences, which nothing states and which decides"
_SAY_LENGTH = " (--seq-len, or seq-len in lintfit.toml)"
IMAGES = (
    "how many images it has and how large they are, which decides (--images, or images in lintfit.toml; max_pixels of "
    "the processor bounds them)"
)
HOST = "how many GPUs a machine has: with some numbers of them its host memory is too small (--gpus, --nodes)"
CONFIG = (
    "a config alone: no launch line or script that was read uses it (name them together, or give --model and --gpu)"
)
GPU = "the GPU ("
NOT_MODELLED = "not modelled: "
"""How the reasons begin that a GPU is missing, and that nothing can be done about."""
FAILED = "a mistake of lintfit's own, which the line on standard error tells (please report it)"
_ENGINE = (
    "the engine, which accelerate launch takes from the file that `accelerate config` wrote on the machine "
    "(--config_file FILE, or --multi_gpu, --use_deepspeed, --use_fsdp on the launch line)"
)
_VARIES = lazy_pattern(r""""[^"]*"|'[^']*'|(?<=the step of TRL's )\w+|(?<=\(a plain value at )[^,)]+""")
"""What of a reason is a run's own: names in quotes, a trainer, a place."""
_MEANT = lazy_pattern(r"; did you mean ([^?]*)\?")
_FITTING = lazy_pattern(r": it fits while none has more than [\d,]+ tokens")
_GIB = lazy_pattern(r" \([\d.]+ GiB\)|[\d.]+(?= GiB)")
_UNSEEN = (
    "which a command line decides, and no launch line is known (check the script that starts it, or name the file of "
    "its arguments beside it)"
)
_NAMED = 4
"""How many settings a line names."""

_WITH_SCRIPT = 2
"""Documents of a launch whose script was found."""

_FLAGS = {"gpus": "--gpus", "seq_len": "--seq-len", "model": "--model"}
"""Settings that lintfit's own flags state."""


def of_length(fitting: int | None) -> str:
    """That the length decides; ``fitting``: tokens of the longest sample with which the run fits, where some do."""
    up_to = f": it fits while none has more than {fitting:,} tokens" if fitting is not None else ""
    return f"{LENGTH}{up_to}{_SAY_LENGTH}"


def why_unknown(run: Run, result: Estimate | None, decided_by: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What is not known of a run without a verdict, never nothing; ``decided_by`` is what its judge found open."""
    if run.origin.kind == "config" and run.spec is None:
        return (CONFIG,)
    found = tuple(dict.fromkeys((*_missing(run), *_doubtful(run), *_unseen(run), *_not_modelled(run), *decided_by)))
    return found or (_range(result),)


def _missing(run: Run) -> Iterator[str]:
    not_there = {each.reason for each in run.missing}
    for line in run.unknown:
        if line in not_there:
            yield f"{line} (correct the path, or put the file there)"
        elif run.broken and line.endswith(UNPARSED):
            yield f"{line} (mend its syntax)"
        elif line.endswith(REFUSED):
            yield f"{line} (correct it)"
        elif UNREADABLE in line:
            yield line
        elif run.spec is None and not run.lacks_model:
            yield f"{line} ({_unread(run)})"
        else:
            yield line
    if run.spec is None and run.lacks_model and run.hardware.capacity_bytes is None:
        yield missing_gpu(run.settings)


def _unread(run: Run) -> str:
    """What makes a training known that lintfit has not read."""
    launch = run.launch
    sought = launch is not None and launch.action is None and not launch.module and len(run.documents) < _WITH_SCRIPT
    return "put it where the launch line names it" if sought else "lintfit estimate takes the run as flags, or a --spec"


def _doubtful(run: Run) -> Iterator[str]:
    """Settings that only running the script would tell."""
    for name in dict.fromkeys(run.doubtful):
        yield _of_setting(run, name)


def _of_setting(run: Run, name: str) -> str:
    setting = run.settings.get(name)
    if name == "method" and "partly_frozen" in run.settings:
        setting = run.settings["partly_frozen"]
    if name == "trainer" and "own_head" in run.settings:
        setting = run.settings["own_head"]
    place = setting.provenance.place if setting is not None else None
    at = f" at {place}" if place else ""
    detail = setting.provenance.detail if setting is not None and setting.value is UNKNOWN else ""
    why = f"; {detail}" if detail else ""
    if setting is not None and setting.name in ("forward_pass", "own_head"):
        return f"what the forward pass keeps; {setting.provenance.detail}{at} (lintfit estimate takes the run as flags)"
    flag = f", or {_FLAGS[name]}" if name in _FLAGS else ""
    return f"{name}, which is not statically known{why} (a plain value{at}{flag})"


def _unseen(run: Run) -> Iterator[str]:
    """What a command line decides that is not known, or a file of the machine."""
    names = run.unseen_flags
    if not names:
        return
    shown = in_words(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    if run.launch is not None and run.launch.is_told_in_part:
        yield f'{shown}, which flags may decide that the command leaves out ("...")'
    elif run.launch is not None and run.launch.hides_flags:
        yield f"{shown}, which flags may decide that the launch line takes from a command (flags that are written out)"
    elif run.launch is not None:
        yield _ENGINE
    elif run.origin.kind == "config":
        yield f"{shown}: {CONFIG}"
    elif run.script is not None and not run.script.walk.parses:
        yield f"{shown}, which can only be assumed from the script (a flag, or lintfit.toml)"
    else:
        yield f"{shown}, {_UNSEEN}"


def family(reason: str) -> tuple[str, str]:
    """The reason as runs share it that lack the same kind of thing, with ``…`` for whose settings, which model, which
    trainer or how many GiB it is, and what stands there; nothing where that is not one thing."""
    if reason.endswith(_UNSEEN):
        return f"settings {_UNSEEN}", ""
    meant = _MEANT.search(reason)
    plain = _FITTING.sub("", _MEANT.sub("", reason))
    found = [f"{each} (or {meant[1]}?)" if meant else each for each in _VARIES.findall(plain)]
    shared = _GIB.sub(lambda size: "" if size[0].startswith(" ") else "…", _VARIES.sub("…", plain))
    return shared, found[0] if len(found) == 1 else ""


def _not_modelled(run: Run) -> Iterator[str]:
    spec = run.spec
    if spec is None:
        return
    from lintfit.memory.tensors.optimizers import bounded
    from lintfit.memory.verdict.undecided import undecided

    yield from (f"{NOT_MODELLED}{line}" for line in undecided(spec))
    if not bounded(_optimizer(spec)):
        yield f"the states of the optimizer {_optimizer(spec)}, which lintfit does not know (another optimizer)"


def _optimizer(spec: Spec) -> str:
    from lintfit.memory.engines.zero_config import optimizer_name

    return optimizer_name(spec)


def _range(result: Estimate | None) -> str:
    """Where nothing else is open the range itself is too wide to say."""
    if result is None or result.capacity_bytes is None:
        return "what the run is"
    low, high, card = (size / GIB for size in (result.peak.low, result.peak.high, result.capacity_bytes))
    return (
        f"where in its range it is: {low:.1f} to {high:.1f} of {card:.1f} GiB (state what it assumes: lintfit estimate)"
    )
