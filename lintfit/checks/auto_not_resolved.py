from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.launched import leads_to
from lintfit.checks.helpers.readers import Reader, handed_over, older, overwrites, reader_of, written_by_script
from lintfit.checks.helpers.trees import data_of, dotted, entries, of_higher_stage, without
from lintfit.checks.helpers.wording import listed
from lintfit.documents.model import DataDocument, Entry, Kind, Node
from lintfit.findings.model import Applicability, Related, Severity
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.schema.sections import Key, Schema, keys, load
from lintfit.settings.model import Place

_BATCH = frozenset({"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
_AUTO_IS_A_VALUE = frozenset({"zenflow", "autotuning", "tensor_parallel", "compile", "data_types"})
"""Sections in which DeepSpeed itself gives the word ``auto`` a meaning."""
_OFFLOAD_DEVICES = frozenset({("offload_param", "device"), ("offload_optimizer", "device")})
"""Their default is ``none`` (``runtime/zero/offload_config.py``), which is also what accelerate fills in where nobody
asks for more (``DeepSpeedPlugin.__post_init__``): the word asks for nothing that is lost."""
_CALCULATED = re.compile(
    r"steps_per_print|gradient_clipping|optimizer\.params\.(?:lr|betas|eps|weight_decay)"
    r"|scheduler\.params\.(?:warmup_\w+(?<!type)|total_num_steps)"
)
"""What DeepSpeed compares and multiplies as it makes its optimizer and its schedule, or with each step: TypeError."""
_ZERO = "zero_optimization"
_NAMED = 3
"""How many keys a message names."""

_Auto = tuple[tuple[str, ...], Entry]
"""A key whose value is the word, and its path."""
Outcome = Literal["not found in kwargs", "batch", "precision", "default", "no offload", "calculated", "word"]
"""What comes of a word that nobody replaces. All keys of one outcome have one cause and are one finding."""


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    reader = reader_of(context.runs)
    if found is None or reader is None:
        return
    document, root = found
    described = {key.path: key for key in keys(root, load("deepspeed"))}
    unread = [path for path, key in described.items() if key.schema is None and _ignores(key.section)]
    groups: dict[Outcome, list[_Auto]] = {}
    for path, entry in entries(root):
        if entry.value.value == "auto":
            key = described.get(path)
            if key is not None and key.schema is not None and overwrites(context.runs, key.schema, "auto"):
                continue
            if reader == "deepspeed" and (
                written_by_script(context.runs, path)
                or _is_not_built(context.runs, path)
                or _is_off(root, path)
                or any(path[: len(above)] == above for above in unread)
            ):
                continue
            if reader == "deepspeed" and len(path) == 2 and path[0] == _ZERO and of_higher_stage(root, path[1]):
                continue
            outcome = _raw(path, key) if reader == "deepspeed" else _hugging_face(key, reader)
            if outcome is not None and not (reader == "deepspeed" and _is_filled(context, path[-1])):
                groups.setdefault(outcome, []).append((path, entry))
    for outcome, autos in groups.items():
        report = _report(document, outcome, autos, older(context.runs, "deepspeed", "0.17.1"))
        yield report if _is_sure(context.runs, document, outcome) else replace(report, severity=Severity.INFO)


def _is_sure(runs: Sequence[Run], document: DataDocument, outcome: Outcome) -> bool:
    """Whether a word surely has its effect: by a launch that hands the file to accelerate's plugin and to nobody else,
    or by a script that is started and hands it to DeepSpeed, which calculates with it. That all trains in fp32 is
    said wherever a script hands the file on."""
    match outcome:
        case "precision":
            return True
        case "not found in kwargs":
            return any(_is_of_plugin(run, document) for run in runs)
        case "batch" | "calculated":
            return any(map(leads_to, runs))
    return False


def _is_of_plugin(run: Run, document: DataDocument) -> bool:
    """Whether `accelerate launch` starts a run with an Accelerate YAML or flags that name this file. Arguments of the
    trainer's that name one fill it in first, and the plugin may get another."""
    launch, file = run.launch, run.deepspeed
    if launch is None or launch.launcher != "accelerate" or file is None or file.document is not document:
        return False
    named = "deepspeed" in run.training.settings if run.training is not None else False
    return not named and not any(flag.name == "deepspeed" for flag in launch.flags)


def _ignores(section: Schema) -> bool:
    """Whether DeepSpeed reads none but the known keys of a section: a "scheduler" inside of "optimizer", and all that
    stands in it, is looked at by nobody (``get_optimizer_params`` in ``runtime/config.py``)."""
    return section.get("x-unknown-keys") == "ignored"


def _is_not_built(runs: Sequence[Run], path: tuple[str, ...]) -> bool:
    """Whether a key is one of an optimizer or a schedule in whose place the script hands over its own."""
    if path[0] == "optimizer":
        return handed_over(runs, "optimizer")
    return path[0] == "scheduler" and handed_over(runs, "lr_scheduler")


def _is_filled(context: FileContext, name: str) -> bool:
    """Whether a script that hands the file to DeepSpeed speaks of a key: it may well put a value there before."""
    scripts = (doc for run in context.runs for doc in run.documents if doc.kind is Kind.PYTHON)
    return any(f'"{name}"' in doc.text or f"'{name}'" in doc.text for doc in scripts)


_OFF_UNLESS_ENABLED = frozenset({"amp", "bf16", "fp16"})


def _is_off(root: Node, path: tuple[str, ...]) -> bool:
    """Whether a key is one of a precision that is not enabled (``enabled: bool = False`` in ``precision_config.py`` of
    DeepSpeed): its word is dropped, and the engine makes no loss scaler by the default either."""
    if len(path) < 2 or path[0] not in _OFF_UNLESS_ENABLED or path[1] == "enabled":
        return False
    enabled = root.get(path[0], "enabled")
    return enabled is None or enabled.value is False


def _hugging_face(key: Key | None, reader: Reader) -> Outcome | None:
    """Whether the reader replaces the word; the Trainer goes through accelerate's plugin, so that both fill there."""
    fillers = key.schema.get("x-auto-filled-by", ()) if key is not None and key.schema is not None else ()
    filled = bool(fillers) if reader == "transformers" else reader in fillers
    return None if filled else "not found in kwargs"


def _raw(path: tuple[str, ...], key: Key | None) -> Outcome | None:
    if path[0] in _AUTO_IS_A_VALUE or "zenflow" in path:
        return None
    if dotted(path) in _BATCH:
        return "batch"
    if dotted(path) in ("fp16.enabled", "bf16.enabled"):
        return "precision"
    if path[0] == "zero_optimization" and path[1:] in _OFFLOAD_DEVICES:
        return "no offload"
    if key is not None and key.section.get("x-unknown-keys") == "refused":
        return "default"
    return "calculated" if _CALCULATED.fullmatch(dotted(path)) else "word"


def _report(document: DataDocument, outcome: Outcome, autos: Sequence[_Auto], before_0_17_1: bool | None) -> Report:
    place, *others = (Place(document, entry.value.span) for _, entry in autos)
    related = tuple(Related(other, "and here") for other in others)
    paths = [path for path, _ in autos]
    names = _names(paths)
    one = len(paths) == 1
    match outcome:
        case "not found in kwargs":
            return Report(
                place,
                f'nothing fills "auto" in {names}: accelerate stops with ValueError '
                f'"`{dotted(paths[0])}` not found in kwargs"',
                related=related,
                fix=without(
                    document, "delete what nothing fills: DeepSpeed's defaults hold", Applicability.UNSAFE, *paths
                ),
                help="write a value, or delete the key for DeepSpeed's default",
            )
        case "no offload":
            return Report(
                place,
                f'deepspeed.initialize does not fill "auto": {names} {"comes" if one else "come"} to "none", and '
                "nothing is offloaded",
                severity=Severity.INFO,
                related=related,
                help='write "cpu" to offload, or delete the key',
            )
        case "default":
            return Report(
                place,
                f'deepspeed.initialize does not fill "auto": {names} '
                + ("falls back to DeepSpeed's default" if one else "fall back to DeepSpeed's defaults"),
                severity=Severity.WARNING,
                related=related,
                fix=without(document, "delete what changes nothing", Applicability.SAFE, *paths),
            )
        case "batch":
            what, todo = f"{names} {'stops' if one else 'stop'} with a TypeError", "write the numbers of the script"
        case "precision":
            off = f"{names} {'is' if one else 'are'} off, and the run trains in fp32"
            by_version = f"in {names} it is taken for true before DeepSpeed 0.17.1 and for false from then on"
            return Report(
                place,
                f'deepspeed.initialize does not fill "auto": {by_version if before_0_17_1 else off}',
                severity=Severity.WARNING,  # nothing stops: does-not-fit says where fp32 is too much
                related=related,
                help="write true or false",
            )
        case "word" | "calculated":
            ends = 'stays the word "auto" and fails' if one else 'stay the word "auto" and fail'
            what = f"{names} {ends} where used"
            todo = "write a value, or delete the key"
    return Report(place, f'deepspeed.initialize does not fill "auto": {what}', related=related, help=todo)


def _names(paths: Sequence[tuple[str, ...]]) -> str:
    names = [dotted(path) for path in paths]
    if len(names) <= _NAMED + 1:
        return listed(names)
    first = ", ".join(f'"{name}"' for name in names[:_NAMED])
    return f"{first} and {len(names) - _NAMED} more"
