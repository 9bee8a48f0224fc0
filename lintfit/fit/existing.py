"""A DeepSpeed JSON or an Accelerate YAML of the repository that says already what a new or changed one would, in its
place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.files import ReadError
from lintfit.documents.model import DataDocument, FileEdit, Kind, Node
from lintfit.documents.paths import resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.fit.confirm import texts_after
from lintfit.fit.search import may_suffice
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.memory import estimate
from lintfit.memory.result import Verdict
from lintfit.options.model import Options
from lintfit.run.build import build
from lintfit.run.discover import not_searched
from lintfit.run.engine_location import has_trainer
from lintfit.run.key_reads import root_of
from lintfit.run.model import Run
from lintfit.run.naming import pointed_at, working_directory
from lintfit.run.sharing import changed_settings
from lintfit.settings.registry import ZERO, ZERO_SECTION
from lintfit.sources import detect

MOST = 200
"""JSON files of a tree that are looked at, those nearest to the run first."""

_TRIED = 4
"""Of those that say the same stage and offload, how many are read as the run's."""

_LONGEST = 64 << 10
"""Characters of a file that may be such a config: they have a hundred lines at most."""

_TELLING: Mapping[Kind, str] = {Kind.JSON: '"zero_optimization"', Kind.YAML: "distributed_type"}
"""What every such file has, by its kind."""


@frozen(eq=False)
class Existing:
    """A run that reads a file of the tree in the place of a new one, or of a changed one: the files then, what is named
    for what, and the edits that name it."""

    run: Run
    texts: Mapping[Path, str]
    dropped: Path
    taken: Path
    name: str
    named: tuple[FileEdit, ...]


def existing(run: Run, texts: Mapping[Path, str], workspace: Workspace, cli: Options) -> Existing | None:
    """The run and the files of a plan with a file that the tree has for the one that it would make or change, if there
    is one.

    The settings must be the same but for the sizes of buffers, and the run must fit with those.
    """
    made = [each for each in _named(run) if each.path in texts and _is_another(each, workspace)]
    return _in_place_of(made[0], run, texts, workspace, cli) if len(made) == 1 else None


def _is_another(document: DataDocument, workspace: Workspace) -> bool:
    """Whether a config is new, or has another stage or offload than the file that is there."""
    before = workspace.read(document.path) if workspace.exists(document.path) else None
    return not isinstance(before, DataDocument) or _zero(before) != _zero(document)


def _named(run: Run) -> list[DataDocument]:
    """The configs of a run that a launch can name another in the place of; those that its script opens, too."""
    own = [source.document for source in (run.deepspeed, run.accelerate) if source is not None]
    opened = (each for each in run.documents if isinstance(each, DataDocument) and each.kind is Kind.JSON)
    return own or [each for each in opened if detect.dialect(each) == "deepspeed"]


def _in_place_of(
    document: DataDocument, run: Run, texts: Mapping[Path, str], workspace: Workspace, cli: Options
) -> Existing | None:
    changed = workspace.with_overlay(texts)
    for candidate in _saying(document, run, workspace):
        name = os.path.relpath(candidate, document.path.parent)
        named = pointed_at(run, document, name)
        if named is None:
            break
        after = {**texts, **texts_after(named, changed)}
        del after[document.path]
        other = build(run.origin, workspace.with_overlay(after), cli)
        taken = next((each for each in _named(other) if each.path == candidate), None)
        if taken is None or other.spec is None or other.doubtful or not _as_good(run, other):
            continue
        if _brings(taken, document, run):
            continue
        if _fits(other) or (not _fits(run) and _may_fit(other)):
            return Existing(other, after, document.path, candidate, name, named)
    return None


def passed_over(run: Run, texts: Mapping[Path, str], workspace: Workspace) -> str:
    """Why a file that the tree has for the stage and offload of a new one, or for more offload, is not named instead:
    it trains otherwise, by a schedule of its own above all. Empty where there is none."""
    document = run.deepspeed.document if run.deepspeed is not None else None
    if document is None or document.path not in texts or workspace.exists(document.path):
        return ""
    wanted = _zero(document)
    for other in (*_siblings(document, workspace), *_configs(run, workspace)):
        found = _zero(other)
        if wanted is None or found is None or not _is_at_home(other.path, run):
            continue
        brings = _brings(other, document, run)
        if not brings or other.path == document.path:
            continue
        if found[0] == wanted[0] and all(
            has == asked or asked == "none" for has, asked in zip(found, wanted, strict=True)
        ):
            return f"{other.path.as_posix()} would bring {brings}"
    return ""


def has_config(run: Run, rung: tuple[int, str, str], workspace: Workspace) -> bool:
    """Whether the project has a config with a stage and offload that trains as the run's own does, if it has one."""
    own = run.deepspeed.document if run.deepspeed is not None else None
    beside = _siblings(own, workspace) if own is not None and own.reader is None else ()
    plain = (each for each in (*beside, *_configs(run, workspace)) if _zero(each) == rung)
    launched = (each for each in _configs(run, workspace, Kind.YAML) if _zero(each) == ("zero", *rung))
    found = (each for each in (*plain, *launched) if _is_at_home(each.path, run))
    return any(own is None or not _brings(each, own, run) for each in found)


def of_stage(run: Run, aim: Mapping[str, object], workspace: Workspace) -> Iterator[DataDocument]:
    """The project's DeepSpeed JSONs that have the stage of a plan, offload nothing that it does not, and train as the
    run's own does: one for which that may be given up, to go on from there; what offloads most first."""
    document = run.deepspeed.document if run.deepspeed is not None else None
    if document is None or document.reader is not None:
        return
    stage, *offload = (aim[name] for name in ZERO)
    found = [*_siblings(document, workspace), *_configs(run, workspace)]
    for other in sorted(found, key=lambda each: -sum(has != "none" for has in (_zero(each) or ())[1:])):
        its, *devices = _zero(other) or (None,)
        part = its == stage and all(has in ("none", asked) for has, asked in zip(devices, offload, strict=False))
        if part and _is_at_home(other.path, run) and not _brings(other, document, run):
            yield other


def folder_of_others(run: Run, workspace: Workspace) -> Path | None:
    """The folder of the project's own DeepSpeed JSONs, below where the process starts, else its folder of such or of
    Accelerate's files beside that, or of other configs that the launch names; None where it has none."""
    home = working_directory(run)
    found = [each.path.parent for each in _configs(run, workspace)]
    below = next((folder for folder in found if folder.is_relative_to(home)), None)
    if below is not None:
        return below
    found += [each.path.parent for each in _configs(run, workspace, Kind.YAML)]
    named = (Path(flag.value) for flag in (run.launch.flags if run.launch is not None else ()) if flag.value)
    found += [(home / path).parent for path in named if path.suffix in _OF_CONFIGS and workspace.exists(home / path)]
    return next((folder for folder in found if _is_for_configs(folder, home)), None)


_OF_CONFIGS = (".json", ".yaml", ".yml")
_FOR_CONFIGS = lazy_pattern(r"conf(?:ig)?s?$|deepspeed|^ds\b|^ds_", re.IGNORECASE)
"""How a folder of configs alone is called: ``config``, ``ds_configs``, ``deepspeed``."""


def _is_for_configs(folder: Path, home: Path) -> bool:
    """Whether a folder is one of configs that the project in whose folder a process starts has: ``config`` beside
    ``src``, or above both."""
    return _FOR_CONFIGS.search(folder.name) is not None and home.is_relative_to(folder.parent)


def launcher_files(run: Run, aim: Mapping[str, object], workspace: Workspace) -> Iterator[Mapping[str, str]]:
    """The options by which a bare ``accelerate launch`` takes an Accelerate YAML of the project that has DeepSpeed at
    the stage of a plan, one that offloads as much first: the file, and the number of processes where it is another."""
    launch, spec = run.launch, run.spec
    if launch is None or launch.launcher != "accelerate" or spec is None or run.accelerate is not None:
        return
    wanted = ("zero", *(aim.get(name) for name in ("zero_stage", "offload_optimizer", "offload_param")))
    home, count = working_directory(run), 0
    found = [each for each in _configs(run, workspace, Kind.YAML) if (_zero(each) or ("", None))[:2] == wanted[:2]]
    for document in sorted(found, key=lambda each: _zero(each) != wanted):
        assert document.root is not None
        stated = {key: node.plain() for key in _PROCESSES if (node := document.root.get(key)) is not None}
        if stated.get("num_machines", 1) != spec.nodes or not document.path.is_relative_to(home):
            continue
        options = {"config_file": document.path.relative_to(home).as_posix()}
        if stated.get("num_processes") != spec.gpus and "num_processes" not in launch.invocation.options:
            options["num_processes"] = str(spec.gpus)
        yield options
        count += 1
        if count == _TRIED:
            return


_PROCESSES = ("num_processes", "num_machines")


def _as_good(new: Run, other: Run) -> bool:
    """Whether a run differs in nothing but buffers and in who makes the same Adam: the trainer, or DeepSpeed's file."""
    left = set(changed_settings(new, other)) - ZERO_SECTION - {"train_batch_size", "sizes_of_zero"}
    if new.value("zero_stage") != 3:
        left.discard("offload_param")  # which ZeRO-3 alone takes notice of
    return not left - ({"optimizer"} if same_adam(new, other) else set())


def same_adam(one: Run, other: Run) -> bool:
    """Whether both runs step by Adam as torch has it, whoever makes it: the trainer, or DeepSpeed on GPU or host."""
    optimizers = [str(run.value("optimizer")).lower() for run in (one, other)]
    return all("adam" in name and not any(word in name for word in _OTHER_ADAMS) for name in optimizers)


def _brings(other: DataDocument, document: DataDocument, run: Run) -> str:
    """What a DeepSpeed JSON decides of the training that the run's own does not, or not so; empty where they are alike.

    A scheduler in it beats that of the trainer's arguments. Gradients are clipped by what the file says or not at all:
    ``Accelerator.clip_grad_norm_`` does nothing under DeepSpeed, and ``max_grad_norm`` only fills an ``"auto"``
    (accelerate 1.11, transformers 4.57 ``HfTrainerDeepSpeedConfig``). What is a setting of a run is compared as such.
    """
    if detect.dialect(other) != "deepspeed" or detect.dialect(document) != "deepspeed":
        return ""
    if _stated(other, "scheduler") is not None and _stated(other, "scheduler") != _stated(document, "scheduler"):
        return "a schedule of its own"
    if _stated(document, "scheduler") is not None and _stated(other, "scheduler") is None:
        return "no schedule, where the run's own does"
    if not has_trainer(run) and _numbers(other) != _numbers(document):
        return "numbers of its own for the optimizer"
    scales = {_stated(each, "fp16", "loss_scale") or 0 for each in (other, document)}
    if len(scales) > 1 and run.spec is not None and run.spec.mixed_precision == "fp16":
        return "a loss scale of its own"
    if _clips(document, run) and not _clips(other, run):
        return "no clipping of gradients"
    if any((_stated(other, key) or None) != (_stated(document, key) or None) for key in _TYPES):
        return "other data types"
    return ""


def _clips(document: DataDocument, run: Run) -> bool:
    stated = _stated(document, "gradient_clipping")
    return run.value("max_grad_norm") != 0 if stated == "auto" else bool(stated)


_TYPES = ("data_types", "communication_data_type")
"""Keys by which gradients are summed in another precision."""


def _stated(document: DataDocument, *path: str) -> Any:
    node = document.root.get(*path) if document.root is not None else None
    return node.plain() if node is not None else None


def _numbers(document: DataDocument) -> dict[str, object]:
    """What the optimizer's section says in the place of a loop's own; a Trainer stops where it says otherwise."""
    params = _stated(document, "optimizer", "params")
    found = params.items() if isinstance(params, dict) else ()
    return {name: value for name, value in found if name in _OF_ARGUMENTS and value != "auto"}


_OF_ARGUMENTS = ("lr", "betas", "eps", "weight_decay")


def _fits(run: Run) -> bool:
    assert run.spec is not None
    result, capacity = estimate(run.spec), run.spec.capacity_bytes or 0
    within = result.peak.high <= capacity - run.options.margin.bytes_of(capacity)
    return within and result.verdict is Verdict.FITS


def _may_fit(run: Run) -> bool:
    """Whether a run does as well as a plan that may fit and is not sure to."""
    assert run.spec is not None
    result, capacity = estimate(run.spec), run.spec.capacity_bytes or 0
    return may_suffice(result, capacity - run.options.margin.bytes_of(capacity))


_OTHER_ADAMS = ("8bit", "4bit", "paged", "onebit", "zeroone", "adamax", "nadam", "radam")
"""Parts of the names of optimizers that are Adam's by name alone."""


def _saying(document: DataDocument, run: Run, workspace: Workspace) -> Iterator[Path]:
    """The configs with the stage and offload of a new one, the nearest first.

    They lie below a folder of the run's own: a repository of many projects has those of others, too.
    """
    wanted, found = _zero(document), 0
    elsewhere = _configs(run, workspace) if detect.dialect(document) == "deepspeed" else ()
    for other in (*_siblings(document, workspace), *elsewhere):
        if other.path == document.path:
            continue
        if wanted is not None and _zero(other) == wanted and _is_at_home(other.path, run):
            yield other.path
            found += 1
        if found == _TRIED:
            return


def _is_at_home(path: Path, run: Run) -> bool:
    """Whether a file lies below a folder of the run's own, or in one of its project's configs."""
    folders = {run.base, *(each.path.parent for each in run.documents)}
    return any(path.is_relative_to(home) for home in folders) or _is_for_configs(path.parent, working_directory(run))


def _zero(document: DataDocument) -> tuple[object, ...] | None:
    """Stage and devices of a DeepSpeed JSON or an Accelerate YAML, what it shards and offloads where that has FSDP; no
    device of the parameters below stage 3, which takes no notice of one."""
    root = document.root
    if detect.dialect(document) == "accelerate" and root is not None:
        return _of_accelerate(root)
    zero = root.get("zero_optimization") if root is not None and root.shape == "mapping" else None
    if root is None or zero is None:
        return None
    stated = zero.get("stage")
    stage = stated.value if stated is not None else None
    found = [zero.get(key, "device") for key in ("offload_optimizer", "offload_param")]
    optimizer, param = ((device.value if device is not None else None) or "none" for device in found)
    return stage, optimizer, param if stage == 3 else "none"


def _of_accelerate(root: Node) -> tuple[object, ...] | None:
    zero, fsdp = root.get("deepspeed_config"), root.get("fsdp_config")
    if fsdp is not None and root.get("distributed_type") is not None and zero is None:
        keys = ("fsdp_version", "fsdp_sharding_strategy", "fsdp_reshard_after_forward", "fsdp_offload_params")
        return ("fsdp", *(node.plain() if (node := fsdp.get(key)) is not None else None for key in keys))
    if zero is None or zero.get("zero_stage") is None:
        return None
    devices = ("zero_stage", "offload_optimizer_device", "offload_param_device")
    stage, optimizer, param = (node.plain() if (node := zero.get(key)) is not None else None for key in devices)
    return "zero", stage, optimizer or "none", (param or "none") if stage == 3 else "none"


def _siblings(document: DataDocument, workspace: Workspace) -> Iterator[DataDocument]:
    """Configs beside a new one that end as it does (``stage3_offloading.conf``, ``zero3.yaml``)."""
    suffix, folder = document.path.suffix, document.path.parent
    if suffix == ".json":
        return
    here = resolved(workspace.root / folder)
    for name in next(((names) for _, _, names in door.walk(here)), []):
        if name.endswith(suffix):
            yield from _config(folder / name, workspace, document.kind)


def _configs(run: Run, workspace: Workspace, kind: Kind = Kind.JSON) -> tuple[DataDocument, ...]:
    """The DeepSpeed JSONs, or the Accelerate YAMLs, of the project, the nearest first; those that a program has left in
    a ``cache`` (LLaMA-Factory's web UI writes its own there, ``webui/utils.py:create_ds_config``) come last."""
    base = resolved(workspace.root / run.base)
    found, asked = _OF_WORKSPACES.get(workspace, (base, kind), lambda: _noted(base, workspace, kind))
    workspace.ask(asked)
    return found


_OF_WORKSPACES: Memo[tuple[tuple[DataDocument, ...], set[Path]]] = Memo(most=32)


def _noted(base: Path, workspace: Workspace, kind: Kind) -> tuple[tuple[DataDocument, ...], set[Path]]:
    """The configs, with what was asked of the workspace for them."""
    with workspace.asked() as asked:
        return tuple(_read(base, workspace, kind)), asked


def _read(base: Path, workspace: Workspace, kind: Kind) -> Iterator[DataDocument]:
    top = resolved(workspace.root)
    paths = sorted(
        _paths(root_of(base, top), _ENDINGS[kind]),
        key=lambda path: ("cache" in path.parts, len(Path(os.path.relpath(path, base)).parts), path),
    )
    for path in paths[:MOST]:
        shown = path.relative_to(top) if path.is_relative_to(top) else path
        yield from _config(shown, workspace, kind)


def _config(path: Path, workspace: Workspace, kind: Kind = Kind.JSON) -> Iterator[DataDocument]:
    try:
        text = workspace.file(path, kind).text
        if len(text) > _LONGEST or _TELLING[kind] not in text:
            return
        document = workspace.read(path, kind)
    except ReadError:
        return
    if isinstance(document, DataDocument) and document.root is not None and detect.dialect(document) is not None:
        yield document


_ENDINGS: Mapping[Kind, tuple[str, ...]] = {Kind.JSON: (".json",), Kind.YAML: (".yaml", ".yml")}


def _paths(root: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    for here, folders, names in door.walk(root):
        folders[:] = sorted(name for name in folders if not not_searched(name))
        yield from (here / name for name in names if name.endswith(endings))
