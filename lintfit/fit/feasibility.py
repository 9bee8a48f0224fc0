"""Whether the changes of a plan can be written, asked before anything is carried out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.markdown import blocks, is_page, under_one_heading
from lintfit.documents.model import DataDocument, Document, Kind, Span
from lintfit.documents.numerals import whole
from lintfit.documents.shell_elsewhere import is_python
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding
from lintfit.fit.applying import (
    AFTER_ENGINE,
    AFTER_FILE,
    EXPANDS,
    MADE_WRITABLE_BY,
    PATHS,
    VISIBLE,
    Applied,
    Change,
    LeftToPerson,
    Shown,
    applied,
    ordered,
    uncasts,
    with_edits,
)
from lintfit.fit.care import Care, generated, spoken_of
from lintfit.fit.gaps import fewer_gaps
from lintfit.fit.listing import LIST, is_list, listed
from lintfit.fit.options import Candidate
from lintfit.fit.packages import packages_of
from lintfit.fit.unfit import refusing_stage_3, unfit_for_half, unfit_for_shards
from lintfit.fit.visible import sees_all, shows_several
from lintfit.memory import estimate
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec
from lintfit.options.model import Options
from lintfit.run.engine_location import by_launcher, has_trainer
from lintfit.run.loading import on_own_gpu
from lintfit.run.model import Run
from lintfit.run.sharing import sharing
from lintfit.run.write import OF_ARGUMENTS, why_not
from lintfit.settings.model import Place
from lintfit.settings.values import InLauncherFile
from lintfit.sources.launchers.launch import Launch
from lintfit.sources.launchers.launcher_settings import GPUS
from lintfit.sources.training_arguments import EVALUATION, TRAINING
from lintfit.verdict.capped import LONG, is_cap, with_shorter
from lintfit.versions import before

Stops = Callable[[Run], Mapping[str, Finding]]
"""The errors that a run stops with, whatever its memory: what each rule says."""


def no_errors(_: Run) -> Mapping[str, Finding]:
    """None: nobody asks the rules."""
    return {}


_LONGEST_PATH = 200
"""Characters of a value that may be a path."""
_MENDS = 2
"""Errors of a plan's own that are mended with it."""


class Feasibility:
    """Says of changes, before anything is carried out, whether somebody writes each of them.

    Each is asked of the files as they are; what another change of the plan may first make room for is asked of the
    files as that one leaves them.
    """

    def __init__(self, run: Run, workspace: Workspace, cli: Options, stops: Stops = no_errors) -> None:
        self.run, self.workspace, self.cli, self.stops = run, workspace, cli, stops
        self.care = Care(workspace)
        self._known: dict[str, str] = {}
        self._undone: dict[str, str] = {}

    def undone(self, changes: Mapping[str, Any], name: str, reason: str) -> None:
        """Note that a change was written and came to nothing, for something else in the files decides it."""
        self._undone[_in_its_place(changes, name)] = reason

    def left(self, changes: Mapping[str, Any], why: LeftToPerson) -> None:
        """Note the one change that reaches into a file of other launches, so that no other plan with it is tried."""
        if why.applied.refused:
            return  # no file of others is the reason
        for path in why.applied.texts:
            names = {each.change for each in why.applied.written if each.edit.path == path}
            if "micro_batch_size" in names:
                names.discard("gradient_accumulation_steps")  # which keeps the batch as it was
            if path.as_posix() in why and len(names) == 1 and not names - changes.keys():
                self.undone(changes, names.pop(), why)

    def brings(self, after: Run) -> Finding | None:
        """The error that a run stops with once a plan is written, and does not stop with now."""
        errors = self.stops(after)
        return next((each for rule, each in errors.items() if rule not in self._stops_now), None) if errors else None

    def mended(self, made: Applied) -> Applied | str:
        """What a plan leaves, with the errors mended that it would bring, and those that the run stops with already
        where that is safe; why not, where one that it brings cannot be."""
        for mends_left in range(_MENDS, -1, -1):
            error = self.brings(made.run)
            if error is None:
                return self._starting(made)
            fix = error.fix if mends_left else None
            edits = fix.edits if fix is not None and fix.applicability is Applicability.SAFE else ()
            after = with_edits(self.run, made, error.rule, edits, self.workspace, self.cli) if edits else ""
            if isinstance(after, str):
                return LeftToPerson(after or f"once written, {error.message}", made)
            made = after
        raise AssertionError("the last error is not mended")

    def _starting(self, made: Applied) -> Applied:
        """What a plan leaves, without the errors that the run stopped with before and that a safe fix mends."""
        errors = self.stops(made.run) if self._stops_now else {}
        for rule in self._stops_now:
            fix = errors[rule].fix if rule in errors else None
            if fix is None or fix.applicability is not Applicability.SAFE or not fix.edits:
                continue
            after = with_edits(self.run, made, rule, fix.edits, self.workspace, self.cli)
            left = self.stops(after.run) if not isinstance(after, str) else {}
            if not isinstance(after, str) and left.keys() <= self._stops_now.keys():
                made, errors = after, left
        return made

    def on_one_gpu(self, made: Applied) -> Applied | str:
        """What a plan leaves, with the one GPU shown to the run that it is judged on; why not, where nobody can write
        that.

        A Trainer in one plain process makes an ``nn.DataParallel`` of all GPUs that it sees, which gathers their logits
        on the first and takes no 4-bit weights (transformers ``Trainer._wrap_model``).
        """
        launch = made.run.launch
        if launch is None or not sees_all(made.run, launch):
            place = shows_several(made.run)
            return made if place is None else LeftToPerson(f"{place} shows one process several GPUs", made)
        edits = launch.set_variable("CUDA_VISIBLE_DEVICES", "0")
        if edits is None:
            return LeftToPerson("one process sees all GPUs: show it one (CUDA_VISIBLE_DEVICES=0)", made)
        return with_edits(self.run, made, VISIBLE, edits, self.workspace, self.cli)

    def with_fewer_gaps(self, made: Applied, result: Estimate) -> Applied:
        """What a plan leaves, with torch's allocator told to leave fewer gaps where those decide whether it fits."""
        edits = fewer_gaps(made.run, result)
        after = with_edits(self.run, made, EXPANDS, edits, self.workspace, self.cli) if edits else made
        return made if isinstance(after, str) else after

    @cached_property
    def _stops_now(self) -> Mapping[str, Finding]:
        return self.stops(self.run)

    def not_told(self, changes: Mapping[str, Any]) -> str:
        """What the files leave open that these changes do not decide either: no plan of theirs can be confirmed."""
        if self.run.engine_open and "engine" not in changes:
            return "which engine the run has is in a file that is not here"
        if self.run.missing:
            return f"{self.run.missing[0].name} is not here"
        if reason := _starts_too_many(self.run) or _called_otherwise(self.run, changes) or _loads_for_nothing(self.run):
            return reason
        if changes.get("method") == "lora" and (reason := self._has_twin()):
            return reason
        if changes.get("quantization") is not None and (reason := self._has_quantized_twin()):
            return reason
        if reason := unfit_for_half(self.run, changes):
            return reason
        left = [name for name in self.run.doubtful if name not in changes]
        if not left or not changes.keys().isdisjoint(PATHS) or uncasts(self.run, changes):
            return ""
        return f"as the files are, it is not certain what is set: {', '.join(left).replace('_', ' ')}"

    def _has_twin(self) -> str:
        """That the file of a run has one beside it that by its name is the same with adapters (``sft_lora.yaml``)."""
        path = self.run.recipe.document.path if self.run.recipe is not None else self.run.origin.path
        stem = path.stem
        names = (name for word in ("lora", "qlora") for name in (f"{stem}_{word}", f"{stem}-{word}", f"{word}_{stem}"))
        twins = (path.with_name(f"{name}{path.suffix}") for name in names if path.name)
        twin = next((each for each in twins if self.workspace.exists(each)), None)
        return f"{twin.as_posix()} trains adapters: this one trains all weights" if twin is not None else ""

    def _has_quantized_twin(self) -> str:
        """That the file of a run with adapters has one beside it that by its name is the same over quantised weights
        (``sft_qlora.sh`` beside ``sft_lora.sh``)."""
        path = self.run.recipe.document.path if self.run.recipe is not None else self.run.origin.path
        twin = path.with_name(_LORA.sub("qlora", path.name)) if path.name else path
        if twin == path or not self.workspace.exists(twin):
            return ""
        return f"{twin.as_posix()} trains adapters over quantised weights: this one leaves them as they are"

    def can(self, changes: Mapping[str, Any]) -> bool:
        """Whether every change can be written. That they can be together is what :func:`apply_changes` finds out."""
        return not self.why_not(changes)

    def why_not(self, changes: Mapping[str, Any]) -> str:
        """Why one of the changes cannot be written, the first in their order; empty where all can."""
        if reason := self.not_told(changes) or unfit_for_shards(self.run, changes) or _hard_wired(self.run, changes):
            return reason
        if reason := _told_too_late(self.run, changes) or self._refused_elsewhere(changes):
            return reason
        for name in changes if self._undone else ():
            if (known := self._undone.get(_in_its_place(changes, name))) is not None:
                return known
        wanted = list(ordered(self.run, changes))
        names = {name for name, _ in wanted}
        for name, value in wanted:
            if "engine" in names and (name in AFTER_ENGINE or isinstance(value, InLauncherFile)):
                # An Accelerate YAML takes ZeRO's settings once it says DeepSpeed, and FSDP's once it says FSDP.
                continue
            if name in AFTER_FILE and "deepspeed_config_file" in names:
                continue
            reason = self._one(name, value)
            if reason and (before := MADE_WRITABLE_BY.get(name, frozenset()) & names):
                reason = self._after([each for each in wanted if each[0] in before], (name, value))
            if reason:
                return reason
        return ""

    def _refused_elsewhere(self, changes: Mapping[str, Any]) -> str:
        """That a module raises under ZeRO-3 which the script imports by a package that is called otherwise here."""
        spec = self.run.spec
        if changes.get("zero_stage") != 3 or spec is None or spec.zero_stage == 3:
            return ""
        return refusing_stage_3([*self.run.documents, *self._under_other_names])

    @cached_property
    def _under_other_names(self) -> list[Document]:
        """Modules of the tree that the script imports below a package that is not here, while one of the same path
        below it is (``from project.trainer.dpo import …``, ``src/trainer/dpo.py``)."""
        found: list[Path] = []
        for each in _IMPORTED.finditer(self.run.script.document.text) if self.run.script is not None else ():
            package, *inside = each["module"].split(".")
            tail = (*inside[:-1], f"{inside[-1]}.py")
            there = [path for path in self.workspace.named(tail[-1]) if path.parts[-len(tail) :] == tail]
            if not any(package in path.parts for path in there):
                found += there if len(there) == 1 else ()
        return [self.workspace.read(path, Kind.PYTHON) for path in dict.fromkeys(found)]

    def for_person(self, candidate: Candidate, made: Applied) -> str:
        """Why what could be written is shown instead, with its lines; empty where it may be written."""
        if self._stops_now and (left := self.stops(made.run)):
            return LeftToPerson(f"it stops all the same: {next(iter(left.values())).message}", made)
        reason = _hard_wired(self.run, candidate.changes) or _told_too_late(self.run, candidate.changes)
        reason = reason or self._refused_elsewhere(candidate.changes) or self._lacks(candidate, made)
        reason = reason or _goes_on_elsewhere(self.run, made)
        if candidate.grows:
            reason = reason or "it asks for larger micro-batches, to spare what accumulation holds"
        if self.run.spec is not None and (shown := _of_samples(self.run, self.run.spec, candidate)):
            return Shown(shown, made)
        if shown := _brought_back(self.run, candidate.changes):
            return Shown(shown, made)
        reason = reason or _generates_less(self.run, candidate.changes) or _knows_its_batch(self.run, candidate.changes)
        reason = reason or _accumulates_twice(self.run, candidate.changes) or _trains_other(self.run, made)
        reason = reason or _has_flags_for_it(self.run, made)
        if reason:
            return LeftToPerson(reason, made)
        if reason := spoken_of(each.edit for each in made.written):
            return Shown(reason, made)
        if reason := _wired_into_branch(self.run, made):
            return LeftToPerson(reason, made)
        if shown := _config_beside(self.run, candidate.changes):
            return Shown(shown, made)
        if reason := self._written_again(made):
            return LeftToPerson(reason, made)
        if self._makes_a_file(made) and not self._counts_paths():
            return LeftToPerson(
                "nothing here starts the recipe: from which folder the path of a new file counts is not known", made
            )
        launch = self.run.launch
        path = launch.document.path if launch is not None else None
        page = path if path is not None and (is_page(path) or is_python(path)) else None
        if page is None or page not in made.texts:
            return ""
        said = _said_by_page(self.workspace.file(page).text, made.texts[page], made.run.launch)
        return Shown(f"{page.as_posix()} {said}", made) if said else ""

    def _written_again(self, made: Applied) -> str:
        """The script of the tree that writes a file which would change, or where that says itself that a program does:
        the next time it would be as it was."""
        tree = sharing(self.workspace, self.cli)
        for path in made.texts:
            if not self.workspace.exists(path) or is_list(path):
                continue
            if (by := tree.writer(path)) is not None:
                return f"{path.as_posix()} is written by {by.as_posix()}"
            if said := generated(self.workspace.read(path)):
                return f"{said} says that a program writes the file"
        return ""

    def _makes_a_file(self, made: Applied) -> bool:
        return any(not self.workspace.exists(path) for path in made.texts)

    def _counts_paths(self) -> bool:
        """Whether it is known from where the paths of a run's files count: a launch says so, and of a recipe that
        nothing starts a path that leads somewhere from here."""
        recipe = self.run.recipe
        if self.run.origin.kind != "recipe" or recipe is None or not isinstance(recipe.document, DataDocument):
            return True
        root = recipe.document.root
        values = (node.value for _, node in root.walk() if node.shape == "scalar") if root is not None else ()
        named = (value for value in values if isinstance(value, str) and "/" in value and len(value) < _LONGEST_PATH)
        inside = (Path(value) for value in named if not value.startswith(("/", "~")) and ".." not in Path(value).parts)
        return any(self._leads_somewhere(path) for path in inside)

    def _leads_somewhere(self, path: Path) -> bool:
        return self.workspace.exists(path) or door.is_folder(self.workspace.root / path)

    def installing(self, candidate: Candidate, made: Applied) -> Applied:
        """What a plan leaves, with the package that it needs and no file installs in the project's list of them; to
        several of them a person has to say yes."""
        lacking = self._lacking(candidate)
        edits = listed(self.run, self.workspace, lacking[0]) if len(lacking) == 1 else ()
        after = with_edits(self.run, made, LIST, edits, self.workspace, self.cli) if edits else made
        return made if isinstance(after, str) else after

    def _lacks(self, candidate: Candidate, made: Applied) -> str:
        lacking = [] if LIST in made.places else self._lacking(candidate)
        return f"it needs {' and '.join(lacking)}, which no file here installs" if lacking else ""

    def _lacking(self, candidate: Candidate) -> list[str]:
        packages = packages_of(self.run, self.workspace)
        needed = {name for option in candidate.options for name in option.needs}
        return sorted(needed - packages.named) if packages.stated else []

    def _one(self, name: str, value: Any) -> str:
        key = repr((name, value))
        if key not in self._known:
            self._known[key] = why_not(self.run, name, value)
        return self._known[key]

    def _after(self, before: Sequence[Change], change: Change) -> str:
        key = repr((before, change))
        if key not in self._known:
            made = applied(self.run, [*before, change], self.workspace, self.cli)
            self._known[key] = made if isinstance(made, str) else ""
        return self._known[key]


_IMPORTED = re.compile(r"^[ \t]*from[ \t]+(?P<module>\w+(?:\.\w+){2,})[ \t]+import\b", re.MULTILINE)


def _hard_wired(run: Run, changes: Mapping[str, Any]) -> str:
    """Why an engine is not written into a script or a recipe that nothing starts, for it would need a launcher from
    then on, or into one that trains by Unsloth, whose models are on the GPU before any engine is known."""
    engine, recipe = changes.get("engine"), run.recipe if run.origin.kind == "recipe" else None
    if engine == "deepspeed" and recipe is not None and recipe.dialect == "llamafactory" and run.hardware.gpus == 1:
        # "Please use `FORCE_TORCHRUN=1` to launch DeepSpeed training" (LLaMA-Factory, hparams/parser.py)
        return "LLaMA-Factory starts DeepSpeed on one GPU only with FORCE_TORCHRUN=1"
    if engine == "deepspeed" and _is_alone(run, changes):
        return "accelerate tells one process nothing of ranks, without which DeepSpeed does not start: --use_deepspeed"
    if engine in ("deepspeed", "fsdp") and run.script is not None and "unsloth" in run.script.document.text:
        return "Unsloth loads the model onto the GPU whole, whatever engine trains it"
    if engine not in ("deepspeed", "fsdp") or run.launch is not None or run.recipe is not None or run.script is None:
        return ""
    return (
        "" if by_launcher(run, engine) else "nothing here starts the script with a launcher, which it would then need"
    )


def _is_alone(run: Run, changes: Mapping[str, Any]) -> bool:
    """Whether ``accelerate launch`` starts one process, and a Trainer's arguments would be what asks for DeepSpeed.

    ``prepare_simple_launcher_cmd_env`` (accelerate 1.15 ``utils/launch.py``) sets no ``RANK``, and ``MASTER_ADDR`` for
    several processes alone: ``init_distributed`` then looks for MPI (DeepSpeed 0.18 ``comm/comm.py``: mpi4py).
    """
    if run.launch is None or run.launch.launcher != "accelerate" or run.spec is None or not has_trainer(run):
        return False
    one = run.spec.engine == "single" and run.spec.nodes == 1 and changes.get("gpus", run.spec.gpus) == 1
    return one and not by_launcher(run, "deepspeed")


def _goes_on_elsewhere(run: Run, made: Applied) -> str:
    """Why the one branch of a launch script is not changed where another goes on with the same training from its
    checkpoints: both have to be the same."""
    launch, recipe = run.launch, run.recipe
    if launch is None or not launch.conditional or launch.document.path not in made.texts:
        return ""
    own = [word.text for word in launch.command.words]
    trains = recipe.document.path.name if recipe is not None else launch.script
    for command in launch.document.commands if trains else ():
        words = [word.text for word in command.words]
        same = command.span != launch.command.span and any(word.endswith(str(trains)) for word in words)
        if same and any("resume" in word for word in (*words, *own)):
            line = launch.document.position(command.span.start).line
            return f"line {line} has the same training, which one of the two resumes, and would stay as it is"
    return ""


def _of_samples(run: Run, spec: Spec, candidate: Candidate) -> str:
    """Why a plan hangs on how long the samples are, which a person knows."""
    if "seq_len" in candidate.changes:
        cut = f"it cuts samples at {candidate.changes['seq_len']:,} tokens instead of {spec.seq_len:,}"
        return f"{cut}: what that loses is for a person to say"
    if not is_cap(run):
        return ""
    shorter = with_shorter(run, spec, estimate(spec))
    if shorter is None or shorter[1] < min(spec.seq_len // 2, LONG):
        return ""
    return f"the run fits as it is while no sample has more than {shorter[1]:,} tokens"


def _loads_for_nothing(run: Run) -> str:
    """Why a plan for the model that trains does not do: another, which it takes the place of, is on the GPU before."""
    moved = run.script.facts.moves_replaced if run.script is not None else ()
    return f"{moved[0].call.place} puts a model on the GPU that is then loaded anew: take that out" if moved else ""


def _told_too_late(run: Run, changes: Mapping[str, Any]) -> str:
    """Why a Trainer's arguments cannot give DeepSpeed to a script: by the time that it makes them, the model is on the
    GPU whole, which ZeRO-3 is to spare it, or an ``Accelerator`` has settled on another engine."""
    if changes.get("engine") != "deepspeed" or run.script is None or not has_trainer(run):
        return ""
    facts = run.script.facts
    made = [each.order for each in (facts.training_arguments, facts.parse_call) if each is not None]
    if not made or by_launcher(run, "deepspeed"):
        return ""
    if facts.accelerator is not None and facts.accelerator.taken is not False and facts.accelerator.order < min(made):
        return f"{facts.accelerator.place} makes an Accelerator before the arguments can name DeepSpeed"
    loads = (place for load in facts.loads if (place := on_own_gpu(load)) is not None and load.order < min(made))
    moves = (each.call.place for each in facts.moves if each.call.taken is not False and each.call.order < min(made))
    where = next(chain((each.place for each in loads), moves), None) if changes.get("zero_stage") == 3 else None
    return f"{where} puts the whole model on the GPU before the arguments can name DeepSpeed" if where else ""


_WORDS = re.compile(r"[^\s=]+")


def _values_alone(before: str, after: str) -> Sequence[str] | None:
    """The old values, where two texts differ in nothing but values of flags that stand in both."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) != len(new):
        return None
    others = [(one, other, flag) for one, other, flag in zip(old, new, ["", *old], strict=False) if one != other]
    alone = all(flag.startswith("--") and not other.startswith("-") for _, other, flag in others)
    return [one for one, _, _ in others] if alone else None


_ONE_GPU = "CUDA_VISIBLE_DEVICES=0 "
_OF_SIZES = re.compile(r"batch|accumul|length|sequence|tokens", re.IGNORECASE)


def _said_by_page(before: str, after: str, launch: Launch | None) -> str:
    """What a page, or a script's docstring, says that would not be true any more, or not any other, once its example is
    changed."""
    if _ONE_GPU not in before:
        after = after.replace(_ONE_GPU, "")  # on which machine it runs, whatever the text says
    old = _values_alone(before, after)
    if old is None or launch is None:
        return "shows an example, which its text speaks of"
    words = [word.text for word in launch.command.words]
    for command in launch.document.commands:
        if command.span != launch.command.span and [word.text for word in command.words] == words:
            return f"has that command already, on line {launch.document.position(command.span.start).line}"
    inside = [(block.start, block.end) for block in blocks(before)]
    if is_python(launch.document.path):
        inside = list(_but_for_docstring(before, launch))
    if _is_record(before, inside, launch.command.span.start):
        return "records the command of a training that was made"
    if (other := _OTHER_GPUS.search(_paragraph_before(before, inside, launch.command.span.start))) is not None:
        return f"speaks of {other[0]} above its example"
    for value in filter(None, old):
        for found in re.finditer(rf"(?<![\w.-]){re.escape(value)}(?![\w-]|\.\w)", before):
            start, end = before.rfind("\n", 0, found.start()) + 1, before.find("\n", found.end())
            size = not value.isdigit() or _OF_SIZES.search(before, start, end if end >= 0 else len(before))
            prose = not any(begin <= found.start() < close for begin, close in inside)
            if prose and size and under_one_heading(before, found.start(), launch.command.span.start):
                return f"speaks of {value} beside its example"
    return ""


_QUOTES = re.compile(r"""\"{3}|'{3}|^(?!#)""", re.MULTILINE)
"""What a docstring ends with, or the comment that a script begins with."""


def _but_for_docstring(text: str, launch: Launch) -> Iterator[tuple[int, int]]:
    """The parts of a script that are no prose: the command that its docstring shows, and the code behind that."""
    start, end = launch.command.span.start, launch.command.span.end
    quoted = text[text.rfind("\n", 0, start) + 1 : start].lstrip()[:1] != "#"
    closing = next((each for each in _QUOTES.finditer(text, end) if bool(each[0]) is quoted), None)
    yield start, end
    yield closing.start() if closing is not None else len(text), len(text)


_OTHER_GPUS = re.compile(r"\b(?:[AHV]\d{2,3}0?|B200|GH200|L40S?|RTX ?\d{4}|\d{2,3} ?Gi?B?(?= +(?:GPUs?|[AHV]\d)))\b")
"""GPUs as prose names them: those that a command was written for."""


_RECORDS = re.compile(
    r"\b(?:was|were|(?:has|have) been|we) +(?:\w+ +)?(?:trained|fine-?tuned|produced|obtained|created|ran|run)\b",
    re.IGNORECASE,
)
"""What a page says of a training in the past, whose command it then shows."""
_BEFORE = 300
"""Characters of the sentence in front of an example."""


def _is_record(text: str, inside: Sequence[tuple[int, int]], command: int) -> bool:
    """Whether the sentence in front of an example says that something was trained by it, as it stands."""
    paragraph = _paragraph_before(text, inside, command)
    return paragraph.endswith((":", ".")) and _RECORDS.search(paragraph) is not None


def _paragraph_before(text: str, inside: Sequence[tuple[int, int]], command: int) -> str:
    """The end of the paragraph in front of the block that a command stands in."""
    opened = next((start for start, end in inside if start <= command < end), command)
    fence = text.rfind("\n", 0, max(opened - 1, 0)) + 1
    return text[max(0, fence - _BEFORE) : fence].rstrip().rpartition("\n\n")[2]


_LORA = re.compile(r"(?<![A-Za-z])lora(?![A-Za-z])")
_FULL = re.compile(r"(?:^|[-_.])(?:full|fft)(?:[-_.]|$)", re.IGNORECASE)
_STAGE = re.compile(r"(?:^|[-_.])(?:zero|ds_?z|z|ds)[-_]?([0-3])(?=[-_.]|$)", re.IGNORECASE)
_ENGINE = re.compile(r"(?:^|[-_.])(fsdp|ddp|deepspeed)[0-9]?(?=[-_.]|$)", re.IGNORECASE)


def _called_otherwise(run: Run, changes: Mapping[str, Any]) -> str:
    """Why adapters are not written into a recipe or a launch script whose name, or folder, says that all weights train,
    nor an engine or a stage of ZeRO into one whose name has another."""
    path = run.recipe.document.path if run.recipe is not None else run.origin.path
    engine, called = changes.get("engine"), {name.lower() for name in _ENGINE.findall(path.stem)}
    stage, stages = changes.get("zero_stage"), set(map(int, _STAGE.findall(path.stem)))
    if stage is not None and stages and stage not in stages:
        return f"by its name {path.as_posix()} trains by ZeRO-{min(stages)}, not by ZeRO-{stage}"
    if engine is not None and called and engine not in called:
        return f"by its name {path.as_posix()} trains by {' and '.join(sorted(called))}, not by {engine}"
    if changes.get("method") != "lora":
        return ""
    if any(map(_FULL.search, (*path.parts[:-1], path.stem))):
        return f"by its name {path.as_posix()} trains all weights, and with adapters it is another"
    return _said_to_be_full(run.launch) if run.launch is not None else ""


_WITHOUT_ADAPTERS = re.compile(
    r"\b(?:not?|without)(?: +using)? +(?:q?lora|peft|adapters?)\b"
    r"|\bfull(?:[- ]parameters?)?[- ](?:fine-?tun\w+|weights?|training|sft)\b",
    re.IGNORECASE,
)
"""What a page says of a launch that trains all weights."""
_NAMING = frozenset({"output_dir", "run_name", "hub_model_id", "wandb_run_name"})
"""Flags by which a launch says what it makes is called."""


def _said_to_be_full(launch: Launch) -> str:
    """What a launch says itself, or the page in front of it, of a training of all weights, which it would not be with
    adapters any more."""
    for flag in launch.flags:
        parts = Path(flag.value or "").parts if flag.name in _NAMING else ()
        if any(map(_FULL.search, parts)):
            return f"by its name {flag.value} has all weights trained, and with adapters it is another"
    page = launch.document
    if is_page(page.path):
        text, start = page.file.text, launch.command.span.start
        said = _WITHOUT_ADAPTERS.search(
            _paragraph_before(text, [(each.start, each.end) for each in blocks(text)], start)
        )
        if said is not None:
            return f'{page.path.as_posix()} says "{said[0]}" in front of its example'
    return ""


def _generates_less(run: Run, changes: Mapping[str, Any]) -> str:
    """Why a micro-batch is not written where the run says how many of them are generated at once."""
    spec, micro = run.spec, changes.get("micro_batch_size")
    at_once = spec.generation.steps_per_generation if spec is not None and spec.generation is not None else None
    if spec is None or micro is None or at_once is None or micro == spec.micro_batch_size:
        return ""
    samples = at_once * spec.micro_batch_size
    return f"steps_per_generation {at_once} counts micro-batches, {samples} samples of a GPU: to be changed along"


_OF_ITS_BATCH = re.compile(r"^[ \t]*(?:labels?|targets?)[ \t]*=[ \t]*(?:torch\.)?arange\(", re.MULTILINE)
"""Labels that are the samples' own numbers: each is to be told from the others of its micro-batch."""


_SUMMED = re.compile(
    r"^[ \t]*\w*loss\w*[ \t]*=[^#\n]*\.sum\(\)[ \t]*/[ \t]*(?:(?:self\.)?(?:args\.)?max_\w+|\d[\d_.]*)[ \t]*(?:#.*)?$",
    re.MULTILINE,
)
"""A loss that is a sum over all tokens of a micro-batch by a number that does not go with its samples."""
_BY_ITS_BATCH = (
    (_OF_ITS_BATCH, "tells samples of a micro-batch from one another"),
    (_SUMMED, "sums over the micro-batch: in smaller ones, whose gradients are averaged, it counts for less"),
)


def _wired_into_branch(run: Run, made: Applied) -> str:
    """Why checkpointing is not switched on by a statement of a script that has flags, in the branch that one of them
    takes: every launch that comes by there would get it, and no flag would say so."""
    script = run.script
    load = script.reading.found.trained_load if script is not None else None
    written = (each for each in made.written if each.change == "gradient_checkpointing")
    if script is None or load is None or not script.walk.parsed:
        return ""
    places = (script.reading.calls.place(test) for test in load.tests)
    if all("__name__" in place.document.slice(place.span) for place in places):
        return ""
    if not any(".gradient_checkpointing_enable()" in each.edit.edit.text for each in written):
        return ""
    return "the script has a flag for each way that it takes: checkpointing wants one of its own"


_SAYS_STEPS = re.compile(r"^[ \t#]*[\"']?gradient_accumulation_steps[\"']?[ \t]*:[ \t]*(?P<steps>\d+)\b", re.MULTILINE)
_OF_DEEPSPEED = re.compile(r"\bdeepspeed_config[\"']?[ \t]*:|\bzero_optimization[\"']?[ \t]*:")
_TEXTS = re.compile(r"\"{3}.{0,9999}?\"{3}|'{3}.{0,9999}?'{3}|(?:^[ \t]*#[^\n]*\n)+", re.DOTALL | re.MULTILINE)
"""Docstrings, and comments of whole lines."""


def _config_beside(run: Run, changes: Mapping[str, Any]) -> str:
    """Where a script that no launch line of the tree starts shows DeepSpeed's config for its launch in its docstring or
    comments, with an accumulation that would be another: transformers refuses the two beside each other ("Please
    correct the following DeepSpeed config values that mismatch TrainingArguments values",
    ``integrations/deepspeed.py``)."""
    steps = changes.get("gradient_accumulation_steps")
    if steps is None or run.script is None or run.deepspeed is not None or run.accelerate is not None:
        return ""
    document = run.script.document
    for text in _TEXTS.finditer(document.text) if _OF_DEEPSPEED.search(document.text) is not None else ():
        found = _SAYS_STEPS.search(text[0]) if _OF_DEEPSPEED.search(text[0]) is not None else None
        if found is not None and whole(found["steps"]) != steps:
            start, end = (text.start() + offset for offset in found.span("steps"))
            return (
                f"{Place(document, Span(start, end))} shows a config for its launch that accumulates {found['steps']}"
            )
    return ""


_REWARDS = re.compile(
    r"^(?P<indent>[ \t]*)(?:async[ ]+)?def \w+\([^()]{0,400}\bcompletions\b[^()]{0,400}\)[^\n:]{0,80}:[^\n]*\n"
    r"(?P<body>(?:(?P=indent)[ \t]+\S[^\n]*\n|[ \t]*\n)+)",
    re.MULTILINE,
)
"""A function of rewards, by the argument that TRL hands it."""
_SPREAD_OVER = re.compile(r"^[^#\n]*?(?:\.(?:var|std)\(|\bstatistics\.p?(?:stdev|variance)\()", re.MULTILINE)
"""A spread over the samples that it got."""


def _scales_rewards(run: Run, text: str) -> Span | None:
    """Where a function of rewards works out how far its samples are apart, of which one alone has no spread (NaN).

    Before TRL 0.17 it gets a micro-batch of one process (0.16 ``grpo_trainer.py:_generate_and_score_completions``),
    after that as much for each step that is accumulated.
    """
    if run.spec is None or run.spec.generation is None or before(run.versions.get("trl"), "0.17") is False:
        return None
    for function in _REWARDS.finditer(text):
        if (found := _SPREAD_OVER.search(function["body"])) is not None:
            start = function.start("body")
            return Span(start + found.start(), start + found.end())
    return None


def _knows_its_batch(run: Run, changes: Mapping[str, Any]) -> str:
    """Why a micro-batch is not written where the loss holds its samples against one another, or adds them up:
    accumulation brings the others of a step back to the gradient, and not to that comparison or at that weight."""
    spec, micro = run.spec, changes.get("micro_batch_size")
    if spec is None or micro is None or micro == spec.micro_batch_size:
        return ""
    for document in run.documents:
        for pattern, does in _BY_ITS_BATCH if document.kind is Kind.PYTHON else ():
            if (found := pattern.search(document.text)) is not None:
                return f"{Place(document, Span(*found.span()))} {does}"
        if document.kind is Kind.PYTHON and (span := _scales_rewards(run, document.text)) is not None:
            return f"{Place(document, span)} holds the rewards of a process's own samples against one another"
    return ""


def _accumulates_twice(run: Run, changes: Mapping[str, Any]) -> str:
    """Why another accumulation is not written where the loop calls the engine's step only every so many micro-batches:
    DeepSpeed counts in ``step()`` itself (0.18 ``runtime/engine.py``: ``micro_steps``), so that an update has the one
    times the other, and what is written once changes it twice, or not as the batch is worked out."""
    engine = run.script.facts.initialize if run.script is not None else None
    if "gradient_accumulation_steps" not in changes or run.script is None or engine is None or not engine.assigned_to:
        return ""
    document = run.script.document
    if "%" not in document.text:
        return ""
    from lintfit.sources.script.reading import loops

    for loop in loops.loops(document):
        if (found := loops.guarded_step(loop, engine.assigned_to)) is not None:
            test, step, _ = found
            waits = f"{loops.place(document, step)} waits for {loops.text(document, test)} before {engine.assigned_to}"
            return f"{waits}.step(), in which DeepSpeed counts what it accumulates as well"
    return ""


def _has_flags_for_it(run: Run, made: Applied) -> str:
    """Why the call of ``TrainingArguments`` stays as it is where the launch sets fields of it by flags of their own
    (``--training_args.output_dir``), which other launches of the script do without."""
    if run.launch is None:
        return ""
    groups = (found["group"] for flag in run.launch.flags if (found := OF_ARGUMENTS.fullmatch(flag.name)) is not None)
    group = next(groups, None)
    code = (each for each in made.written if each.edit.document is not None and each.edit.document.kind is Kind.PYTHON)
    fields = {"gradient_checkpointing": ("gradient_checkpointing",), **TRAINING, **EVALUATION}
    name = next((fields[each.change][0] for each in code if each.change in fields), None)
    if group is None or name is None:
        return ""
    return f"{run.launch.place} has flags of its own for it: add --{group}.{name} there"


def _trains_other(run: Run, made: Applied) -> str:
    """Why a switch is not written that takes other modules from what is trained along: a script may train the embedding
    beside adapters, and not beside those over quantised weights."""
    was, now = run.spec, made.run.spec
    if was is None or now is None or was.method != "lora" or now.method != "lora":
        return ""
    lost = [name for name in was.lora_modules_to_save if name not in now.lora_modules_to_save]
    return f"with it the script does not train {' and '.join(lost)} any more" if lost else ""


def _brought_back(run: Run, changes: Mapping[str, Any]) -> str:
    """Why a micro-batch is not written into a run that goes on from a checkpoint, which brings its own back:
    ``Trainer.train`` takes ``train_batch_size`` of ``trainer_state.json`` (transformers 4.36 to 5.0, 4.57
    ``trainer.py:2300``; 5.24 with ``auto_find_batch_size`` alone)."""
    spec, stated = run.spec, run.versions.get("transformers")
    if spec is None or not spec.resumes or not has_trainer(run) or "micro_batch_size" not in changes:
        return ""
    if before(stated, "4.36") is True or before(stated, "5.1") is False:
        return ""
    place = run.settings["resumes"].provenance.place if "resumes" in run.settings else None
    where = f"{place} goes on from a checkpoint" if place is not None else "it goes on from a checkpoint"
    return f"{where}, which brings micro-batch {spec.micro_batch_size} back (transformers 4.36 to 5.0)"


def _starts_too_many(run: Run) -> str:
    """Why no plan can be written for the GPUs that somebody names: the launch starts more processes on each machine, on
    a number of machines that its line leaves open."""
    launch, gpus = run.launch, run.settings.get("gpus")
    if launch is None or gpus is None or gpus.provenance.kind != "option" or launch.launcher == "accelerate":
        return ""
    option = launch.invocation.options.get(GPUS.get(launch.invocation.launcher, ""))
    count = (whole(option.value) if option is not None and option.value is not None else None) or 0
    there = (run.hardware.gpus or 0) // max(1, run.hardware.nodes)
    return (
        f"the launch starts {count} processes on each machine, and there are {there} GPUs" if count > there > 0 else ""
    )


def _in_its_place(changes: Mapping[str, Any], name: str) -> str:
    return repr(
        (name, changes.get(name), [(other, changes[other]) for other in (*PATHS, "weights_dtype") if other in changes])
    )
