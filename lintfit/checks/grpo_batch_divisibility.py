from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import from_commit, milder, older
from lintfit.checks.helpers.runs import anchor, by_machine, change, counted
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.generation import fills_groups
from lintfit.run.model import Run
from lintfit.settings.model import Place, Setting

_MOST_STEPS = 1024

OF_LAUNCHES = True


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("trainer") not in ("grpo", "rloo") or older((run,), "trl", "0.15"):
        return
    gpus = run.settings.get("gpus")
    if not _is_of_trl(run):
        return  # a trainer of the project's own, whatever its name, asks what it likes
    if run.mentions("from unsloth import", "import unsloth"):
        return  # it takes num_generations as the micro-batch then (_patch_trl_rl_trainers of unsloth/models/rl.py)
    if gpus is None or not isinstance(gpus.value, int) or gpus.provenance.kind == "assumed":
        return
    if _are_others(run):
        return
    yield from _training(run, gpus.value)
    yield from _evaluation(run, gpus.value)


def _are_others(run: Run) -> bool:
    """Whether more or fewer GPUs train than there are: those of machines nobody counted, without vLLM's own."""
    nodes, generation = run.settings.get("nodes"), run.spec.generation if run.spec is not None else None
    shared = generation is not None and generation.vllm_server and by_machine(run)
    return shared or (nodes is not None and not nodes.known)


def _is_of_trl(run: Run) -> bool:
    """Whether the trainer is TRL's, or a class of the project's that inherits from it."""
    made = run.script.reading.found.trainer if run.script is not None else None
    if made is None:
        return run.script is None
    names = [cls.library or "" for cls in made.classes] or [made.function]
    return all(name.partition(".")[0] in ("trl", "unsloth") for name in names)


def _training(run: Run, gpus: int) -> Iterator[Report]:
    stated = {name: _argument(run, name) for name in ("generation_batch_size", "steps_per_generation")}
    group = _whole(run, "num_generations")
    micro = _whole(run, "per_device_train_batch_size")
    steps = _whole(run, "gradient_accumulation_steps")
    if group is None or micro is None or steps is None:
        return
    if any(setting is not None and setting.value is not None for setting in stated.values()):
        return
    if not fills_groups(run, micro.value, gpus):
        yield _too_few(run, group, micro, steps, gpus)
        return
    samples = gpus * micro.value * steps.value
    if samples % group.value == 0:
        return
    yield Report(
        _place(run, group, micro, steps),
        f"{counted(run, gpus, 'GPUs')} × micro-batch {micro.value} × accumulation {steps.value} = {samples} "
        f"completions are not a multiple of num_generations {group.value}: TRL stops with ValueError",
        severity=_severity(run, older((run,), "trl", "0.15") is False),
        fix=_fix(run, gpus * micro.value, steps.value, group.value),
        help="make the product a multiple of num_generations",
    )


def _too_few(run: Run, group: Setting, micro: Setting, steps: Setting, gpus: int) -> Report:
    """Information where only TRL's commit is known, and a newer one would fill the groups over the steps."""
    open_version = from_commit((run,), "trl") and gpus * micro.value * steps.value % group.value == 0
    severity = _severity(run, not from_commit((run,), "trl"))
    return Report(
        _place(run, group, micro),
        f"{counted(run, gpus, 'GPUs')} × micro-batch {micro.value} = {gpus * micro.value} completions are not a "
        f"multiple of num_generations {group.value}: TRL before 0.17 stops with ValueError",
        severity=Severity.INFO if open_version else severity,
        help="make the product a multiple of num_generations",
    )


def _evaluation(run: Run, gpus: int) -> Iterator[Report]:
    when = _argument(run, "eval_strategy", "evaluation_strategy")
    if when is None or when.value not in ("steps", "epoch") or when.provenance.kind != "file":
        return
    own = _argument(run, "num_generations_eval")
    group = own if own is not None and own.value is not None else _whole(run, "num_generations")
    micro = _whole(run, "per_device_eval_batch_size")
    if group is None or micro is None or not isinstance(group.value, int) or (gpus * micro.value) % group.value == 0:
        return
    yield Report(
        _place(run, micro, group, when),
        f"{counted(run, gpus, 'GPUs')} × evaluation batch {micro.value} = {gpus * micro.value} are not a multiple of "
        f"num_generations {group.value}: TRL stops with ValueError",
        severity=_severity(run, older((run,), "trl", "0.15") is False),
        help="make per_device_eval_batch_size × GPUs a multiple of num_generations",
    )


def _severity(run: Run, sure: bool) -> Severity:
    """An error where the version is known to check. Information where the number of GPUs is only that of the machine:
    nobody says that all of them train."""
    if by_machine(run):
        return Severity.INFO
    return Severity.ERROR if sure else milder(Severity.ERROR)


def _argument(run: Run, *names: str) -> Setting | None:
    assert run.training is not None
    return run.training.argument(*names)


def _whole(run: Run, name: str) -> Setting | None:
    """A field that is a whole number and that the run really has; None for anything else."""
    found = _argument(run, name)
    if found is None or not isinstance(found.value, int) or isinstance(found.value, bool) or found.value < 1:
        return None
    return found


def _place(run: Run, *settings: Setting) -> Place:
    stated = (setting.provenance.place for setting in settings if setting.provenance.kind == "file")
    return next((place for place in stated if place is not None), None) or anchor(run)


def _fix(run: Run, each: int, steps: int, group: int) -> Fix | None:
    """The next larger accumulation that fills whole groups."""
    larger = next((n for n in range(steps, _MOST_STEPS) if each * n % group == 0), None)
    if larger is None:
        return None
    changes = {"gradient_accumulation_steps": larger}
    return change(run, f"accumulate {larger} steps", Applicability.UNSAFE, changes)
