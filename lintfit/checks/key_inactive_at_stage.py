from __future__ import annotations

from collections.abc import Iterator, Sequence

from lintfit.checks.helpers.context import FileContext, Report, has_room
from lintfit.checks.helpers.readers import installed
from lintfit.checks.helpers.runs import most
from lintfit.checks.helpers.trees import data_of, dotted, number, without, written, zero_stage
from lintfit.checks.helpers.wording import an, listed, united
from lintfit.documents.model import DataDocument, Entry, Node
from lintfit.findings.model import Applicability, Related, Severity
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.schema.sections import Older, keys, least_stage, load, section_at
from lintfit.settings.model import Place

_ZERO = "zero_optimization"
_NONE = ("none", None, False, "auto")


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is not None:
        document, root = found
        stage = zero_stage(root)
        section = root.get(_ZERO)
        if stage is not None:
            yield from _refused(document, root, stage, installed(context.runs, "deepspeed"))
        if stage is not None and section is not None and section.shape == "mapping":
            yield from _deepspeed(document, section, stage, context.runs)
    found = data_of(context, "accelerate")
    if found is not None:
        yield from _accelerate(*found, context.runs)


def _deepspeed(document: DataDocument, section: Node, stage: int, runs: Sequence[Run]) -> Iterator[Report]:
    for name in ("offload_param", "offload_optimizer"):
        entry = section.entry(name)
        least = least_stage(section_at(load("deepspeed"), _ZERO), name)
        device = entry.value.get("device") if entry is not None else None
        if entry is not None and stage < least and device is not None and device.value not in _NONE:
            yield _inactive_offload(document, (_ZERO, name), entry, stage, least, runs)
    ratio = section.get("offload_optimizer", "ratio")
    value = number(ratio)
    if ratio is not None and value is not None and value < 1 and stage != 3:
        yield Report(
            Place(document, ratio.span),
            f'"offload_optimizer.ratio" below 1 needs ZeRO stage 3; at stage {stage} DeepSpeed stops with an '
            "AssertionError",
            severity=Severity.ERROR,
            help="delete it, or use stage 3",
        )
    if stage < 3:
        yield from _stage3_keys(document, section, stage)


def _refused(document: DataDocument, root: Node, stage: int, older: Older) -> Iterator[Report]:
    """Values that DeepSpeed refuses at this stage."""
    for key in keys(root, load("deepspeed"), older):
        schema, value = key.schema or {}, key.entry.value
        if "x-stage-value" not in schema or value.value != schema["x-stage-value"] or value.shape != "scalar":
            continue
        if stage not in schema["x-stages"]:
            stages = united([str(each) for each in schema["x-stages"]], "or")
            yield Report(
                Place(document, value.span),
                f'"{dotted(key.path)}": {written(value.value)} needs ZeRO stage {stages}; at stage {stage} DeepSpeed '
                f"stops with {an(schema['x-stage-error'])}",
                severity=Severity.ERROR,
                help=f"delete it, or use stage {stages}",
            )
    yield from _without_its_partner(document, root, older)


def _without_its_partner(document: DataDocument, root: Node, older: Older) -> Iterator[Report]:
    states, master = root.get("bf16", "bf16_optimizer_states"), root.get("bf16", "bf16_master_weights_and_grads")
    if states is None or states.value is not True or (master is not None and master.value is True) or older("0.18.3"):
        return
    yield Report(
        Place(document, states.span),
        '"bf16.bf16_optimizer_states" needs "bf16_master_weights_and_grads": DeepSpeed stops with an AssertionError',
        severity=Severity.ERROR,
        help='set "bf16_master_weights_and_grads" to true, too',
    )


def _inactive_offload(
    document: DataDocument, path: tuple[str, ...], entry: Entry, stage: int, least: int, runs: Sequence[Run]
) -> Report:
    what = "parameters" if "param" in entry.key else "optimizer states"
    needs = "stage 3" if least == 3 else "stage 1, 2 or 3"
    return Report(
        Place(document, entry.key_span),
        f'"{entry.key}" has no effect at ZeRO stage {stage}: it needs {needs}, and the {what} stay on the GPU',
        severity=Severity.INFO if runs and all(_has_room_for(run, what) for run in runs) else None,
        fix=without(document, "delete it: nothing reads it at this stage", Applicability.SAFE, path),
    )


_LITTLE = 2**30
"""Bytes below which nobody misses what an offload would give back."""


def _has_room_for(run: Run, what: str) -> bool:
    """Whether a run surely has room for what stays on the GPU, or that is little: the optimizer states of adapters, the
    weights of a small model."""
    if what == "optimizer states" and run.value("method") == "lora":
        return True
    if run.spec is None:
        return False
    from lintfit.memory import estimate

    result = estimate(run.spec)
    names = ("optimizer_states", "master_weights") if what == "optimizer states" else ("parameters",)
    little = most(result, *names) < _LITTLE
    return little or (result.verdict is Verdict.FITS and has_room(result))


def _stage3_keys(document: DataDocument, section: Node, stage: int) -> Iterator[Report]:
    zero = section_at(load("deepspeed"), _ZERO)
    idle = [
        entry
        for entry in section.entries
        if entry.key.startswith("stage3_") and least_stage(zero, entry.key) > stage and entry.value.value not in _NONE
    ]
    if not idle:
        return
    yield Report(
        Place(document, idle[0].key_span),
        f"{listed(entry.key for entry in idle)} "
        f"{'has' if len(idle) == 1 else 'have'} no effect at ZeRO stage {stage}: only stage 3 reads them",
        severity=Severity.INFO,
        related=tuple(Related(Place(document, entry.key_span), "also idle") for entry in idle[1:]),
        fix=without(
            document,
            "delete what nothing reads at this stage",
            Applicability.SAFE,
            *((_ZERO, entry.key) for entry in idle),
        ),
    )


def _accelerate(document: DataDocument, root: Node, runs: Sequence[Run]) -> Iterator[Report]:
    section = root.get("deepspeed_config")
    kind = root.get("distributed_type")
    if section is None or section.shape != "mapping" or kind is None or kind.value != "DEEPSPEED":
        return
    stage = number(section.get("zero_stage")) if section.get("zero_stage") is not None else 2
    if stage is None or section.get("deepspeed_config_file") is not None:
        return
    for name in ("offload_param_device", "offload_optimizer_device"):
        entry = section.entry(name)
        least = least_stage(section_at(load("accelerate"), "deepspeed_config"), name)
        if entry is not None and stage < least and not _is_none(entry.value):
            yield _inactive_offload(document, ("deepspeed_config", name), entry, int(stage), least, runs)


def _is_none(device: Node) -> bool:
    """Whether an Accelerate file asks for no device: in any case, as accelerate writes it in small letters."""
    word = device.value
    return (word.lower() if isinstance(word, str) else word) in _NONE
