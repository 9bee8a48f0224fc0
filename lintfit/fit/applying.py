"""Carry changes out on a copy of the files in memory, reading the run again after each of them.

Every setting is written where it lives. One change at a time, so that a later one finds the places as the earlier one
left them; the edits that are shown in the end are the difference between the first and the last text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from lintfit.documents.files import is_notebook
from lintfit.documents.line_changes import line_changes
from lintfit.documents.model import Document, Edit, FileEdit, Kind, Span
from lintfit.documents.shell_computed import referenced
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.steps import A_STEP, OF_RUN
from lintfit.documents.workspace import Workspace
from lintfit.fit import reach
from lintfit.fit.apart import Apart
from lintfit.fit.axes.forced_float32 import forces_float32
from lintfit.fit.care import said_anew
from lintfit.fit.confirm import texts_after
from lintfit.fit.existing import existing, folder_of_others, launcher_files, of_stage, passed_over, same_adam
from lintfit.fit.listing import is_list
from lintfit.frozen import field, frozen, replace
from lintfit.memo import Memo
from lintfit.options.model import Options
from lintfit.run.build import build
from lintfit.run.engine_location import by_launcher, has_trainer, zero_in_launcher_file
from lintfit.run.model import Run
from lintfit.run.naming import leads_to, pointed_at
from lintfit.run.offloaded_optimizer import asked_in_vain
from lintfit.run.sharing import changed_settings
from lintfit.run.unused_search import ARGUMENT, searches_beside_reentrant, without_reentering
from lintfit.run.write import why_not, write_one
from lintfit.settings.registry import SETTINGS, ZERO, ZERO_SECTION
from lintfit.settings.values import AS_LOADED, Adapters, FourBits, InLauncherFile

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@frozen(eq=False)
class Written:
    """An edit that was made for a change, in its document as the changes before it left that."""

    change: str
    edit: FileEdit


@frozen(eq=False)
class Applied:
    """What the files look like with the changes made, the run read from them, and which file each change went to.

    ``refused`` names the changes that nothing writes: they are left to a person. ``beside``: what keeps a file that is
    there from standing in for a new one. ``along``: the launches that get the same by a file which they have as well.
    """

    texts: Mapping[Path, str]
    run: Run
    places: Mapping[str, Path]
    edits: tuple[FileEdit, ...]
    written: tuple[Written, ...]
    refused: frozenset[str] = frozenset()
    beside: str = ""
    along: Mapping[str, Path] = field(default_factory=dict)


class LeftToPerson(str):
    """Why changes are left to a person, who knows the other runs that have the files, or what no line of them says;
    with the lines that they take as far as they are known."""

    applied: Applied

    def __new__(cls, reason: str, applied: Applied) -> LeftToPerson:
        made = super().__new__(cls, reason)
        made.applied = applied
        return made


class Shown(LeftToPerson):
    """Why a plan is shown and no other is looked for that could be written: a page's text speaks of the launch, samples
    may be shorter than their cap, or only a person knows what a cut of them loses."""


Change = tuple[str, Any]
"""The name under which :func:`lintfit.run.write.write_one` knows a change, and its value."""


VISIBLE = "visible_devices"
"""Edits that show a launch some of the GPUs that there are."""
EXPANDS = "expandable_segments"
"""Edits that have torch's allocator grow its segments, which leaves fewer gaps."""
PATHS = ("engine", "method", "quantization")
"""Changes by which a script may take another way."""


def uncasts(run: Run, changes: Mapping[str, Any]) -> bool:
    """Whether weights of another dtype are written by taking away the script's cast of the whole model.

    Where adapters are switched on, the branch that casts may not be taken any more.
    """
    return "weights_dtype" in changes and "method" not in changes and forces_float32(run)


def apply_changes(run: Run, changes: Mapping[str, Any], workspace: Workspace, cli: Options) -> Applied | str:
    """Make the changes in every file that states a part of them; why not, where one of them cannot be written."""
    return applied(run, list(ordered(run, changes)), workspace, cli)


def applied(
    run: Run, asked: Sequence[Change], workspace: Workspace, cli: Options, first: Sequence[Change] = ()
) -> Applied | str:
    """Changes carried out in their order; one that is refused is tried again after those behind it. ``first``: what
    goes with them, and makes other lines needless that they would bring."""
    copy = _Copy(run, workspace, cli, asked)
    for name, value in first:
        copy.change(name, value)
    wanted = asked
    while wanted:
        refused: list[tuple[Change, str]] = []
        for name, value in wanted:
            reason = copy.change(name, value)
            if reason:
                refused.append(((name, value), reason))
        if len(refused) == len(wanted):
            names = frozenset(name for (name, _), _ in refused)
            return LeftToPerson(refused[0][1], copy.so_far(names)) if copy.written else refused[0][1]
        wanted = [change for change, _ in refused]
    if asked_in_vain(copy.run) is not None and asked_in_vain(run) is None:
        copy.change("optimizer", "adamw_torch")  # what then trains is DeepSpeed's AdamW
    if searches_beside_reentrant(copy.run) and not searches_beside_reentrant(run):
        along = without_reentering(copy.run)
        if along and not first and any(_OPENING in each.edit.edit.text for each in copy.written):
            return applied(run, asked, workspace, cli, along)  # nothing needs to open the input then
        for name, value in along or ((ARGUMENT, False),):
            copy.change(name, value)
    copy.take_existing()
    copy.keep_variables()
    reason = copy.apart.why_not(copy.texts)
    made = copy.so_far()
    return LeftToPerson(reason, made) if reason else made


_READ: Memo[tuple[Run, Options]] = Memo(most=64)


def with_edits(
    run: Run, made: Applied, name: str, edits: Sequence[FileEdit], workspace: Workspace, cli: Options
) -> Applied | str:
    """What changes have left, with further edits under a name; why not, where those reach into other runs."""
    copy = _Copy(run, workspace, cli, ())
    copy.run, copy.texts, copy.places = made.run, dict(made.texts), dict(made.places)
    copy.written = list(made.written)
    reason = copy.edit(name, edits) or copy.apart.why_not(copy.texts)
    return reason or copy.so_far()


_OPENING = ".enable_input_require_grads()"
"""What reentrant checkpoints of a frozen base need, others do not (``sources/script/writing/opened_input.py``)."""

_TRIED = 3
"""Configs of the tree from which a plan may go on."""


class _Copy:
    """The files of a run as the changes so far have left them, and the run that they make."""

    def __init__(self, run: Run, workspace: Workspace, cli: Options, wanted: Sequence[Change]) -> None:
        self.run, self._workspace, self._cli = run, workspace, cli
        self.apart = Apart(run, workspace, cli, wanted)
        self.texts: dict[Path, str] = {}
        self.places: dict[str, Path] = {}
        self.written: list[Written] = []

    def so_far(self, refused: frozenset[str] = frozenset()) -> Applied:
        edits = tuple(difference(self.texts, self._workspace))
        beside = passed_over(self.run, self.texts, self._workspace)
        along = dict(self.apart.along)
        return Applied(self.texts, self.run, self.places, edits, tuple(self.written), refused, beside, along)

    def change(self, name: str, value: Any) -> str:
        """Make a change, bit by bit; why not, where it cannot be made."""
        spec = self.run.spec
        if name in _FOLLOWING and spec is not None and getattr(spec, name) == value:
            return ""  # worked out from what has changed already
        if name == "deepspeed" and isinstance(value, Mapping):
            folder = folder_of_others(self.run, self._workspace)
            value = value if folder is None else {**value, "folder": folder}
        if name == "engine" and value == "deepspeed" and self._takes_launcher_file():
            return ""
        if name == "zero_stage":
            self._goes_on_from_file()
        for _ in range(SETTINGS[name].bits if name in SETTINGS else 1):
            made = write_one(self.run, name, value)
            if made is None:
                return why_not(self.run, name, value)
            if not made:
                break
            if reason := self.edit(name, made):
                return reason
            if name == "deepspeed" and (path := self._lost()) is not None:
                return f"{path.as_posix()} would not be found from where the run is started"
            if name == "deepspeed_config_file":
                self.places.update(dict.fromkeys(ZERO, self.places[name]))
        return ""

    def _takes_launcher_file(self) -> bool:
        """Name an Accelerate YAML of the tree that has the engine already, where the launch names none; what the plan
        says beside the file is changed in it, or in a copy, as in any other."""
        before, spec = (self.run, dict(self.texts), dict(self.places), list(self.written)), self.run.spec
        for options in launcher_files(self.run, self.apart.aim, self._workspace):
            edits = self.run.launch.add_options(options) if self.run.launch is not None else None
            if edits and spec is not None and not self.edit("engine", edits):
                now = self.run.spec
                as_before = now is not None and (now.gpus, now.effective_batch) == (spec.gpus, spec.effective_batch)
                half = now is not None and now.mixed_precision == self.apart.aim["mixed_precision"]
                if now is not None and as_before and half and now.engine == "deepspeed" and not self.run.doubtful:
                    return True
            self.run, self.texts, self.places, self.written = before
            before = (self.run, dict(self.texts), dict(self.places), list(self.written))
        return False

    def _goes_on_from_file(self) -> None:
        """Name a DeepSpeed JSON of the tree that has the stage already, where the run's own would only be copied: what
        the plan says beside the stage is changed in it, or in a copy."""
        before, document = self.run, self.run.deepspeed.document if self.run.deepspeed is not None else None
        if document is None or document.path in self.texts or not self.apart.is_kept(document):
            return
        state = self.run, dict(self.texts), dict(self.places), list(self.written)
        for other in islice(of_stage(self.run, self.apart.aim, self._workspace), _TRIED):
            named = pointed_at(self.run, document, os.path.relpath(other.path, document.path.parent))
            if named and not self.edit("zero_stage", named) and not self.run.doubtful:
                now = self.run.deepspeed.document.path if self.run.deepspeed is not None else None
                left = set(changed_settings(before, self.run)) - ZERO_SECTION - set(ZERO)
                left -= {"optimizer"} if same_adam(before, self.run) else set()
                if now == other.path and not left:
                    return
            self.run, self.texts, self.places, self.written = state[0], dict(state[1]), dict(state[2]), list(state[3])

    def _lost(self) -> Path | None:
        """A DeepSpeed file that was made and that the process, as it names it, does not find."""
        path = self.run.deepspeed.document.path if self.run.deepspeed is not None else None
        if path is None or path not in self.texts or self._workspace.exists(path) or leads_to(self.run, path):
            return None
        return path

    def edit(self, name: str, made: Sequence[FileEdit]) -> str:
        """Make the edits of a change, those of a config that others have in a copy of it; why not, where they reach
        further."""
        edits = self.apart.redirected(self.run, [*made, *said_anew(made)], self.texts)
        if isinstance(edits, str):
            return edits
        if reason := reach.why_not(edits, self._workspace):
            return reason
        self.texts.update(texts_after(edits, self._workspace.with_overlay(self.texts)))
        for edit in edits:
            self._note(Written(name, edit))
        self.places.setdefault(name, edits[0].path)
        self._read_again()
        return ""

    def _note(self, made: Written) -> None:
        """Keep an edit; of one that replaces what another one has just written there, only what comes of both."""
        edit, document = made.edit.edit, made.edit.document
        for index, earlier in enumerate(self.written):
            first = earlier.edit
            if (
                document is not None
                and first.document is not None
                and first.path == made.edit.path
                and first.edit.span.start == edit.span.start
                and first.edit.text == document.text[edit.span.start : edit.span.end]
            ):
                del self.written[index]
                made = Written(made.change, replace(first, edit=replace(first.edit, text=edit.text)))
                break
        self.written.append(made)

    def _read_again(self) -> None:
        """Read the run from the files as they are now, once for all plans that leave them so: plans have most of their
        changes in common."""
        origin, cli, texts = self.run.origin, self._cli, dict(self.texts)
        key = (origin, id(cli), frozenset(texts.items()))

        def read() -> tuple[Run, Options]:
            commands = texts.get(origin.path, "") if origin.kind == "launch" else ""
            self._workspace.work.all.take(OF_RUN + len(commands) // A_STEP)
            return build(origin, self._workspace.with_overlay(texts), cli), cli

        self.run = _READ.get(self._workspace, key, read)[0]

    def take_existing(self) -> None:
        """Let a config of the tree that says the same stand in for one that was made or changed."""
        found = existing(self.run, self.texts, self._workspace, self._cli)
        if found is None:
            return
        old, new = found.dropped.name, found.name
        self.run, self.texts = found.run, dict(found.texts)
        here = found.taken
        self.places = {name: here if path == found.dropped else path for name, path in self.places.items()}
        left = [each for each in self.written if each.edit.path != found.dropped]
        self.written = [
            Written(
                each.change,
                replace(each.edit, edit=replace(each.edit.edit, text=each.edit.edit.text.replace(old, new))),
            )
            for each in left
        ]
        if self._workspace.exists(found.dropped):  # which the run has named all along
            changes = dict.fromkeys(name for name, path in self.places.items() if path == here)
            self.written += [Written(next(iter(changes), "deepspeed"), edit) for edit in found.named]

    def keep_variables(self) -> None:
        """Let a launch name its variables again that a later change has brought to the value written in their place."""
        launch = self.run.launch
        path = launch.document.path if launch is not None else None
        if path is None or path not in self.texts or not self._workspace.exists(path):
            return
        before = self._workspace.read(path)
        text = referenced(before, self.texts[path]) if isinstance(before, ShellDocument) else self.texts[path]
        if text != self.texts[path]:
            self.texts[path] = text
            self._read_again()


WRITTEN_WITH: Mapping[str, str] = {
    "method": "method",
    "lora_rank": "method",
    "lora_targets": "method",
    "quantization": "quantization",
}
"""Settings of adapters and their base, by the setting whose change writes them."""

AFTER_ENGINE = frozenset({*ZERO, "fsdp", "deepspeed_config_file"})
AFTER_FILE = frozenset({*ZERO_SECTION, *ZERO})
MADE_WRITABLE_BY: Mapping[str, frozenset[str]] = {
    "quantization": frozenset({"method", "weights_dtype"}),
    "gpus": frozenset({"engine"}),
    "gradient_accumulation_steps": frozenset({"micro_batch_size", "gpus"}),
    "micro_batch_size": frozenset({"gradient_accumulation_steps"}),
    "reference_model": frozenset({"method"}),
    "weights_dtype": frozenset({"method"}),
}
"""Changes for which another makes room: a flag for adapters may take the branch that casts the model away, what starts
one process has no number of them until it starts several, and of accumulation and micro-batch a launch script may work
out either from the other. A trainer makes no reference model beside adapters, and a front end may load what they leave
frozen in 16 bits."""

_FOLLOWING = frozenset(
    {
        "eval_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "micro_batch_size",
        "reference_model", "weights_dtype",
    }
)  # fmt: skip
"""Changes that may have come of those before them."""


def ordered(run: Run, changes: Mapping[str, Any]) -> Iterator[Change]:
    """Changes in the order in which they can be written; those that follow from others are left out."""
    spec = run.spec
    wanted = dict(changes)
    if uncasts(run, changes):
        del wanted["weights_dtype"]
        yield "weights_dtype", AS_LOADED
    zero = {name: changes.get(name, getattr(spec, name, None)) for name in ZERO}
    yield from _engine(run, wanted)
    yield from _file_of_its_own(run, wanted, zero)
    together = _takes_adapters(run) and not wanted.keys().isdisjoint(WRITTEN_WITH)
    # Where adapters are switched on by a flag, the branch that cast the whole model may not be taken any more.
    late = {"weights_dtype", "reference_model"} if together else set()
    if together and "method" not in wanted:
        late.add("gradient_checkpointing")  # a script's own preparation of a quantized base may switch it on
    asked = [(name, value) for name, value in wanted.items() if spec is None or getattr(spec, name, None) != value]
    if _divides_its_batch(run):
        asked.sort(key=lambda change: change[0] != "gradient_accumulation_steps")  # the micro-batch follows
    yield from ((name, value) for name, value in asked if not together or name not in {*WRITTEN_WITH, *late})
    if together:
        yield from _adapted(run, {**wanted, "engine": changes.get("engine", spec.engine if spec else None)})
    yield from ((name, value) for name, value in asked if name in late)


def _divides_its_batch(run: Run) -> bool:
    """Whether a script works the micro-batch out of a batch by the steps of accumulation (``batch_size // steps``)."""
    setting = run.settings.get("micro_batch_size")
    place = setting.provenance.place if setting is not None else None
    return (
        place is not None
        and place.document.kind is Kind.PYTHON
        and _DIVIDED.search(place.document.slice(place.span)) is not None
    )


_DIVIDED = re.compile(r"//?[^/]*(?:acc|step)", re.IGNORECASE)


def _engine(run: Run, wanted: dict[str, Any]) -> Iterator[Change]:
    """Another engine, where the launcher's file or the trainer's arguments say which; takes what goes with it."""
    engine, spec = wanted.pop("engine", None), run.spec
    if engine is None or (spec is not None and spec.engine == engine):
        return
    yield from _to_engine(run, engine, wanted)
    if engine != "fsdp" and spec is not None and spec.engine == "fsdp" and spec.gradient_checkpointing:
        # FSDP may have been what recomputes activations (``activation_checkpointing`` of its config).
        yield "gradient_checkpointing", True


def _to_engine(run: Run, engine: str, wanted: dict[str, Any]) -> Iterator[Change]:
    spec, sharding = run.spec, wanted.pop("fsdp", None)
    if engine == "ddp":
        yield "engine", engine
    elif by_launcher(run, engine):
        yield "engine", engine
        if engine == "deepspeed":
            yield from _zero_of_launcher(run, wanted)
        else:
            yield "fsdp", sharding
    elif engine == "fsdp":
        yield "fsdp", sharding
    else:
        half = wanted.pop("mixed_precision", None)
        yield "mixed_precision", half
        if spec is not None and spec.engine == "fsdp":
            yield "fsdp", None
        yield "deepspeed", {**{name: wanted.pop(name) for name in ZERO}, "mixed_precision": half}


def _zero_of_launcher(run: Run, wanted: dict[str, Any]) -> Iterator[Change]:
    """ZeRO in Accelerate's file: all of it, for the file may have had a section of it that nothing read."""
    spec = run.spec
    if "mixed_precision" in wanted:
        yield "mixed_precision", wanted.pop("mixed_precision")
    nvme = {name for name in ZERO if wanted.get(name) == "nvme"}
    yield from ((name, wanted.pop(name)) for name in ZERO if name in wanted and name not in nvme)
    if spec is None:
        return
    if has_trainer(run) and spec.engine == "fsdp":
        yield "fsdp", None
    steps = wanted.get("gradient_accumulation_steps", spec.gradient_accumulation_steps)
    yield "gradient_accumulation_steps", InLauncherFile(steps)


def _file_of_its_own(run: Run, wanted: dict[str, Any], zero: Mapping[str, Any]) -> Iterator[Change]:
    """A DeepSpeed JSON for the ZeRO of an Accelerate YAML, where the plan needs what only a JSON can say."""
    needed = not ZERO_SECTION.isdisjoint(wanted) or any(wanted.get(name) == "nvme" for name in ZERO)
    if not needed or not zero_in_launcher_file(run):
        return
    yield from ((name, wanted.pop(name)) for name in ZERO if name in wanted and wanted[name] != "nvme")
    yield "deepspeed_config_file", zero


def _takes_adapters(run: Run) -> bool:
    """Whether what trains can be given adapters: a script, or a recipe that says so."""
    return run.recipe is None or "method" in run.recipe.adjustable


def _adapted(run: Run, wanted: Mapping[str, Any]) -> Iterator[Change]:
    """Four bits, adapters and what stands between them, after all that they depend on."""
    four_bits = wanted.get("quantization")
    ranks = run.spec.data_parallel if run.spec is not None else 1
    if four_bits is not None:
        yield "quantization", FourBits(four_bits, ranks)
    if wanted.get("method") == "lora":
        yield "method", Adapters(wanted["lora_rank"], wanted["engine"])
    if four_bits is not None:
        yield "kbit_upcast", "all"


def difference(texts: Mapping[Path, str], workspace: Workspace) -> Iterator[FileEdit]:
    """The edits that lead from the files as they are to the given texts, one per changed run of lines."""
    for path, after in texts.items():
        if not workspace.exists(path):
            yield FileEdit(path, Edit(Span(0, 0), after))
            continue
        document = _as_text(path, workspace) if is_notebook(path) or is_list(path) else workspace.read(path)
        for edit in line_edits(document.text, after):
            yield FileEdit(path, edit, document)


def _as_text(path: Path, workspace: Workspace) -> Document:
    """A file that is changed as it stands: of a notebook its JSON, and a list of requirements."""
    return Document(workspace.file(path), Kind.JSON if is_notebook(path) else Kind.SHELL)


def line_edits(before: str, after: str) -> Iterator[Edit]:
    """Edits from one text to another: changed lines, without what they have in common at both ends."""
    old, new = _LINES.findall(before), _LINES.findall(after)
    starts = [0, *accumulate(map(len, old))]
    for first, last, begin, end in line_changes(old, new):
        yield _trimmed(starts[first], "".join(old[first:last]), "".join(new[begin:end]))


def _trimmed(start: int, old: str, new: str) -> Edit:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[len(old) - 1 - tail] == new[len(new) - 1 - tail]:
        tail += 1
    return Edit(Span(start + head, start + len(old) - tail), new[head : len(new) - tail])
