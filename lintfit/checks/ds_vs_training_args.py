from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import COMPARES, mismatch_stops, older, reader_of
from lintfit.checks.helpers.runs import by_machine, change, counted
from lintfit.checks.helpers.trees import assigned, dotted, number
from lintfit.checks.helpers.wording import united
from lintfit.documents.model import KeyPath, Node
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import field, frozen, replace
from lintfit.run.model import Run
from lintfit.settings.model import Setting
from lintfit.sources.training_arguments import TRAINING

_PAIRS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("train_micro_batch_size_per_gpu",), "micro_batch_size", "per_device_train_batch_size"),
    (("gradient_accumulation_steps",), "gradient_accumulation_steps", "gradient_accumulation_steps"),
    (("gradient_clipping",), "max_grad_norm", "max_grad_norm"),
    (("optimizer", "params", "lr"), "learning_rate", "learning_rate"),
    (("optimizer", "params", "eps"), "adam_epsilon", "adam_epsilon"),
    (("optimizer", "params", "weight_decay"), "weight_decay", "weight_decay"),
    (("scheduler", "params", "warmup_max_lr"), "learning_rate", "learning_rate"),
)
"""Keys of the DeepSpeed JSON, each with its setting and the argument that it must equal.

These ``HfTrainerDeepSpeedConfig.trainer_config_process`` of transformers compares, and lintfit can know.

``fp16.enabled`` and ``bf16.enabled`` are compared, too; the rule precision-mismatch speaks of those.
"""

_BATCH = frozenset({"micro_batch_size", "gradient_accumulation_steps"})
"""Settings whose default is what the run is judged with, and its effective batch: the arguments fill these."""


@frozen(eq=False)
class _Mismatch:
    """A key that differs from the argument of this name; ``text`` says both values."""

    path: tuple[str, ...]
    name: str
    text: str
    argument: Setting
    meant: Mapping[str, int | float] = field(default_factory=dict)
    """What the key says of arguments that nobody gives, by their settings: it is stated, their default is not."""
    contradicted: bool = True
    """Whether the argument is to fill the key: somebody gives it another value, or it decides the batch."""
    severity: Severity = Severity.ERROR


OF_HANDED_ON = True


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or reader_of((run,)) != "transformers" or older((run,), "transformers", COMPARES):
        return
    if run.deepspeed is None:
        yield from _of_launcher(run)
        return
    mismatches = [*_pairs(run), *_betas(run), *_total(run)]
    if mismatches:
        yield _report(run, mismatches)


def _pairs(run: Run) -> Iterator[_Mismatch]:
    assert run.deepspeed is not None and run.script is not None
    for path, setting, name in _PAIRS:
        written = number(run.deepspeed.node(*path))
        argument = run.script.settings.get(setting)
        if written is None or argument is None or not argument.known or argument.provenance.kind == "assumed":
            continue
        if isinstance(argument.value, (int, float)) and written != argument.value:
            default = argument.provenance.kind == "default"
            whose = f" ({argument.provenance.detail})" if default else ""
            text = f"{dotted(path)} is {written} but {name} is {argument.value}{whose}"
            meant = {setting: written} if default and setting not in _BATCH else {}
            yield _Mismatch(path, name, text, argument, meant, not meant)


def _of_launcher(run: Run) -> Iterator[Report]:
    """What ``accelerate launch`` makes a DeepSpeed config of: its YAML's keys, or its own options (accelerate
    ``DeepSpeedPlugin.__post_init__``)."""
    if run.value("engine") != "deepspeed" or run.launch is None or run.launch.launcher != "accelerate":
        return
    name = "gradient_accumulation_steps"
    asked = run.script.settings.get(name) if run.script is not None else None
    made = next((s for each in (run.launch, run.accelerate) if each and (s := each.settings.get(name))), None)
    if asked is None or made is None or not asked.known or not made.known or asked.provenance.kind == "assumed":
        return
    place = made.provenance.place
    if place is None or made.value == asked.value or not isinstance(made.value, int):
        return
    whose = f" ({asked.provenance.detail})" if asked.provenance.kind == "default" else ""
    stops, severity = mismatch_stops(run)
    yield Report(
        place,
        f"{name} is {made.value} for DeepSpeed but {name} of the trainer is {asked.value}{whose}: {stops}",
        severity,
        related=related(asked.provenance.place, f"{name} is set here"),
        help=_of_one_place(made.value, asked),
    )


def _of_one_place(made: int, asked: Setting) -> str:
    if asked.provenance.kind == "default":
        return f"give the trainer {asked.name} {made}: nobody states its default"
    return 'write "auto", or leave it out: the arguments fill it'


def _report(run: Run, mismatches: Sequence[_Mismatch]) -> Report:
    """Transformers collects what differs and raises one error (``trainer_config_finalize``, 4.57)."""
    assert run.deepspeed is not None
    source = run.deepspeed
    places = [(place, each) for each in mismatches if (place := source.place(*each.path)) is not None]
    (place, first), *others = sorted(places, key=lambda one: one[0].span.start)
    stops, severity = mismatch_stops(run)
    return Report(
        place,
        f"{first.text}{_others([each for _, each in others])}: {stops}",
        severity=min(severity, max(each.severity for each in mismatches)),
        related=(
            *(
                one
                for each in mismatches
                for one in related(each.argument.provenance.place, f"{each.name} is set here")
            ),
            *(one for at, each in others for one in related(at, each.text)),
        ),
        fix=_fix(run, mismatches),
        help=_help(mismatches),
    )


def _fix(run: Run, mismatches: Sequence[_Mismatch]) -> Fix | None:
    """``"auto"`` for what somebody gives the arguments; what they leave to a default is given them as the JSON has it,
    which else would be lost. None where they cannot be given it."""
    assert run.deepspeed is not None
    filled: dict[KeyPath, str] = {each.path: "auto" for each in mismatches if each.contradicted}
    given = _meant(mismatches)
    if not _agree(run, mismatches, given):
        return None
    let = assigned(run.deepspeed.document, _filling(mismatches), Applicability.SAFE, filled) if filled else None
    give = change(run, f"give the arguments {_listed(given)}", Applicability.SAFE, given) if given else None
    if let is None or give is None:
        return None if filled and given else let or give
    return replace(give, message=f"{give.message}; {let.message}", edits=(*give.edits, *let.edits))


def _filling(mismatches: Sequence[_Mismatch]) -> str:
    first, *others = [each for each in mismatches if each.contradicted]
    return f'let the arguments fill {dotted(first.path)}{" and the others" if others else ""} ("auto")'


def _meant(mismatches: Sequence[_Mismatch]) -> dict[str, int | float]:
    return {name: value for each in mismatches for name, value in each.meant.items()}


def _listed(given: Mapping[str, int | float]) -> str:
    return united([f"{TRAINING[name][0]} {value}" for name, value in given.items()])


def _agree(run: Run, mismatches: Sequence[_Mismatch], given: Mapping[str, int | float]) -> bool:
    """Whether every key that says one of these settings says the same: the learning rate has two."""
    assert run.deepspeed is not None
    said = [(name, number(run.deepspeed.node(*path))) for path, name, _ in _PAIRS]
    said += [(name, value) for each in mismatches for name, value in each.meant.items()]
    return all(value is None or given.get(name, value) == value for name, value in said)


def _help(mismatches: Sequence[_Mismatch]) -> str:
    given = _meant(mismatches)
    if not given:
        return f'write "auto", and set the value{"s" if len(mismatches) > 1 else ""} in one place'
    return f'give the arguments {_listed(given)}, or write "auto" where the default is meant'


def _others(mismatches: Sequence[_Mismatch]) -> str:
    if not mismatches:
        return ""
    keys = united([str(each.path[-1]) for each in mismatches])
    return f", and {keys} {'differs' if len(mismatches) == 1 else 'differ'}, too"


def _betas(run: Run) -> Iterator[_Mismatch]:
    assert run.deepspeed is not None and run.script is not None
    path = ("optimizer", "params", "betas")
    node = run.deepspeed.node(*path)
    values = _pair_of_numbers(node)
    first, second = (run.script.settings.get(name) for name in ("adam_beta1", "adam_beta2"))
    if values is None or first is None or second is None or not (first.known and second.known):
        return
    if values != (first.value, second.value):
        other = f"adam_beta1 and adam_beta2 are {first.value} and {second.value}"
        pairs = [(each, value) for each, value in zip((first, second), values, strict=True) if each.value != value]
        meant = {each.name: value for each, value in pairs if each.provenance.kind == "default"}
        text = f"{dotted(path)} is {list(values)} but {other}"
        yield _Mismatch(path, "adam_beta1", text, first, meant, len(meant) < len(pairs))


def _pair_of_numbers(node: Node | None) -> tuple[float, float] | None:
    if node is None or node.shape != "sequence" or len(node.elements) != 2:
        return None
    first, second = number(node.elements[0]), number(node.elements[1])
    return (first, second) if first is not None and second is not None else None


def _total(run: Run) -> Iterator[_Mismatch]:
    """``train_batch_size``, where the JSON does not state the other two itself (batch-triple-inconsistent then)."""
    assert run.deepspeed is not None and run.script is not None
    total = number(run.deepspeed.node("train_batch_size"))
    parts = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    if total is None or all(number(run.deepspeed.node(part)) is not None for part in parts):
        return
    micro, steps = (run.script.settings.get(name) for name in ("micro_batch_size", "gradient_accumulation_steps"))
    gpus = run.settings.get("gpus")
    if micro is None or steps is None or gpus is None or not (micro.known and steps.known and gpus.known):
        return
    if "assumed" in (gpus.provenance.kind, micro.provenance.kind, steps.provenance.kind):
        return
    each = micro.value * steps.value
    if total != gpus.value * each:
        processes = counted(run, gpus.value, "processes")
        other = f"{processes} × {micro.value} × accumulation {steps.value} are {gpus.value * each}"
        # On another number of GPUs than those of the machine it may come out even.
        severity = Severity.WARNING if by_machine(run) and total % each == 0 else Severity.ERROR
        text = f"train_batch_size is {total} but {other}"
        name = "per_device_train_batch_size"
        yield _Mismatch(("train_batch_size",), name, text, micro, severity=severity)
