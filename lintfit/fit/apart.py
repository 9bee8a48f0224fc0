"""Whose else a file is that a plan changes: a config gets a copy for this run, code that others run stays as it is.

A config that other launches of the tree read, or whose name would not be true any more (``distributed_type: DEEPSPEED``
in ``fsdp_config.yaml``), is left alone: the change goes into a new file beside it, and the launch is pointed there. In
the script nothing is changed that other launches run, too, but what they need as much (:meth:`Apart._mends`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.data_edits import read_again
from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, Document, Edit, FileEdit, Kind, Span
from lintfit.documents.shell_computed import prints
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.workspace import Workspace
from lintfit.fit.listing import is_list
from lintfit.memory import estimate
from lintfit.memory.result import Verdict
from lintfit.options.model import Options
from lintfit.run.engine_location import has_trainer
from lintfit.run.key_reads import key_reads
from lintfit.run.lacking import named_recipes
from lintfit.run.model import Run
from lintfit.run.naming import pointed_at
from lintfit.run.sharing import changed_settings, sharing
from lintfit.settings.registry import ZERO, ZERO_SECTION
from lintfit.sources.recipes.keys import spelled

_STAGE = re.compile(
    r"(?P<word>zero|stage|ds|z|(?<![0-9A-Za-z])s)(?P<between>[-_]?)(?P<stage>[0-3])(?![0-9])", re.IGNORECASE
)
_ENGINES = re.compile(r"fsdp[12]?|ddp|multi[-_]?gpu|mgpu|deepspeed", re.IGNORECASE)
_OFFLOAD = re.compile(
    r"[-_]?(?<!no_)(?<!no-)(?:cpu[-_]?)?offload(?:ed|ing)?(?:[-_]cpu)?(?:[-_](?:opt(?:im(?:izer)?)?|params?)(?![0-9A-Za-z]))*",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"(?<![ \t])[ \t]++$", re.MULTILINE)
_FOR_ALL = frozenset({"whole_state_dict", "loop_outputs"})
"""Settings that may change for other runs: what is written does the same for every engine, or only lets go earlier of
what nobody uses any more."""
_OTHER_TRAINING = frozenset(
    {"method", "lora_rank", "lora_targets", "quantization", "reference_model", "seq_len", "weights_dtype"}
)
"""Changes that make another training of a run: who has asked for one of them has not asked for that of the others."""
_FOLLOWING = frozenset({"use_reentrant"})
"""What follows from a change of gradient checkpointing."""
_HALF = re.compile(r"((?:^|[-_]))(bf16|fp16)(?![0-9a-z])", re.IGNORECASE)
_NO_OFFLOAD = re.compile(r"[-_]?(?:non?|without|w[-_]?o)[-_]?offload(?:ed|ing)?", re.IGNORECASE)

_PLAIN = re.compile(r"ds_z[0-3]_config")
"""How LLaMA-Factory calls a config that offloads nothing (``examples/deepspeed``): one that does is
``ds_z3_offload_config``."""

_ON_GPU = re.compile(r"(?:^|(?<!multi)(?<!single)(?<![0-9])[-_])gpu(?:[-_]only)?(?=$|[-_])", re.IGNORECASE)
"""How a config is called that keeps all states on the GPU: ``gpu.json`` beside ``cpu.json``, no number of GPUs."""


class Apart:
    """Keeps what a plan changes apart from what is others', while it is carried out."""

    def __init__(self, run: Run, workspace: Workspace, cli: Options, changes: Iterable[tuple[str, Any]]) -> None:
        self._run, self.workspace, self._cli = run, workspace, cli
        changes = tuple(changes)
        self._aim = _aim(run, changes)
        self._halved = any(name == "mixed_precision" for name, _ in changes)
        self._shards_on_host = any(
            name == "fsdp" and value is not None and value.cpu_offload for name, value in changes
        )
        self._smaller = any(name in ZERO_SECTION for name, _ in changes)
        self._names = {name for name, _ in changes} - _OTHER_TRAINING
        self._sharing = sharing(workspace, cli)
        self.along: dict[str, Path] = {}
        """The other launches that get what the plan writes into a file that they have as well, and that are as well off
        with it: found by :meth:`why_not`."""
        self._numbered: dict[Path, Path] = {}
        """New files that no word tells from one that is there by the name that they would have."""

    @property
    def aim(self) -> Mapping[str, Any]:
        """Engine, precision, stage and offload as the plan leaves them."""
        return self._aim

    def redirected(self, run: Run, edits: Sequence[FileEdit], new: Mapping[Path, str]) -> Sequence[FileEdit] | str:
        """The edits, those of a config that is not this run's alone in a copy of it; why not, where it cannot be.

        ``run`` is the run as the changes so far have left it, ``new`` the files that they have made or changed.
        """
        edits = self._as_flags(run, edits)
        for document in dict.fromkeys((*_configs(run), *_opened(edits))):
            own = [edit.edit for edit in edits if edit.document is document]
            if not own or not self.workspace.exists(document.path):
                continue
            if not self.is_kept(document):
                continue
            others = self._sharing.others(document.path, self._run)
            text = _TRAILING.sub("", apply(document.text, own).lstrip("\r\n"))
            text = self._without_false_links(self._without_old_engine(_without_old_reasons(document.text, text)))
            text = text if text.endswith("\n") else text + document.file.newline
            path = self._free(document.path, new)
            there = self._copied_before(path, document, text)
            path = there or path
            named = pointed_at(run, document, path.name)
            if named is None and others.runs:
                return f"{others.runs[0].id} reads {document.path.as_posix()} as well"
            if named is None:
                continue
            rest = [edit for edit in edits if edit.document is not document]
            copied = FileEdit(path, Edit(Span(0, 0), _renamed(text, document.path.name, path.name)))
            copy = [copied] if there is None else []
            following = self.redirected(run, [*rest, *named], {**new, path: ""})
            return following if isinstance(following, str) else [*copy, *following]
        return edits

    def _copied_before(self, path: Path, document: DataDocument, text: str) -> Path | None:
        """The file that a copy would be called after, where a fix before this one has made the same copy already."""
        there = self._numbered.get(path)
        if there is None or not self.workspace.exists(there):
            return None
        same = self.workspace.file(there).text == _renamed(text, document.path.name, there.name)
        return there if same else None

    def _without_old_engine(self, text: str) -> str:
        """A copy's text without the comments that speak of the engine that the run has no more: they stay true of the
        file that is copied."""
        before = self._run.spec.engine if self._run.spec is not None else None
        spoken_of = _SPOKEN_OF.get(before or "")
        return text if spoken_of is None or before == self._aim["engine"] else _without_comments_of(text, spoken_of)

    def _without_false_links(self, text: str) -> str:
        """A copy's text without the lines that name where the file that is copied is from, by a stage or an engine that
        the copy has not (``# https://…/deepspeed_zero1.yaml``)."""
        return _LINK.sub(lambda found: "" if self._is_false(found["stem"]) else found[0], text)

    def is_kept(self, document: DataDocument) -> bool:
        """Whether a config stays as it is: others read it, its name would not be true any more, or the run only comes
        by it with the plan."""
        others = self._sharing.others(document.path, self._run)
        strange = all(each.path != document.path for each in self._run.documents)
        return bool(others.runs or others.more) or self._is_false(document.path.stem) or strange

    def _as_flags(self, run: Run, edits: Sequence[FileEdit]) -> Sequence[FileEdit]:
        """The edits; those of a file of arguments that other runs read as well are flags of this launch instead, which
        come before the file (``--config`` of TRL's parser, the first word of alignment-handbook's; which of them wins
        in a script that reads a file itself is the script's to say)."""
        launch, found = run.launch, list(edits)
        own = run.script is not None and not run.mentions("TrlParser", "H4ArgumentParser")
        own = own or (run.recipe is not None and run.recipe.dialect == "llamafactory")  # its YAML is all that it reads
        if launch is None or own or not has_trainer(run):
            return edits
        named = {Path(name).name for name, _ in named_recipes(launch)}
        for document in dict.fromkeys(edit.document for edit in edits):
            if not isinstance(document, DataDocument) or document.path.name not in named or document.reader is not None:
                continue
            if not self.workspace.exists(document.path) or not self._sharing.others(document.path, self._run).runs:
                continue
            stated = _stated_anew(document, [edit.edit for edit in edits if edit.document is document])
            flag = launch.set_flag(*stated) if stated is not None else None
            if flag:  # none where the launch line has it already, or behind what does not listen
                found = [*(edit for edit in found if edit.document is not document), *flag]
        return found

    def why_not(self, texts: Mapping[Path, str]) -> str:
        """Why a plan that leaves these texts would change another run of the tree; empty where it does not."""
        changed = self.workspace.with_overlay(texts)
        launch = self._run.launch
        for path in texts:
            if (there := self._numbered.get(path)) is not None:
                return f"{there.as_posix()} is there already, and is another: a new config needs a name of its own"
            if not self.workspace.exists(path) or is_list(path):
                continue
            before, after = self.workspace.read(path), changed.read(path)
            if launch is not None and isinstance(before, ShellDocument) and before.path == launch.document.path:
                line = self._other_command(launch.command, before, after, changed)
                if line:
                    return f"the command on line {line} of {path.as_posix()} takes what would change, too"
            elif reason := self._of_others(path, changed) or self._of_code(before, after):
                return reason
        return ""

    def _other_command(self, own: Command, before: ShellDocument, after: Document, changed: Workspace) -> int:
        """The line of a command of the launch's file that would change, too; 0 where there is none, or each of them is
        a launch that is as well off with it: the other branch of an ``if``, by another launcher."""
        others = _other_commands(own, before, after)
        if not others:
            return 0
        mended = set()
        for other in self._sharing.beside(self._run):
            now = self._sharing.after(other, changed)
            if now is None or other.launch is None or not self._mends(other, now, changed_settings(other, now)):
                continue
            mended.add(other.launch.command.span)
            self.along.setdefault(other.id, before.path)
        left = next((each for each in others if each.span not in mended), None)
        return before.position(left.span.start).line if left is not None else 0

    def _of_code(self, before: Document, after: Document) -> str:
        """The script that opens a file of values itself and reads one that would change, and is none of the run."""
        if not isinstance(before, DataDocument) or not isinstance(after, DataDocument):
            return ""
        if before.path in {each.path for each in _configs(self._run)}:
            return ""  # runs read it, which are asked themselves
        own = {each.path for each in self._run.documents}
        for name in _changed(before, after):
            other = key_reads(self.workspace).opened_by(before.path, name, own)
            if other is not None:
                return f'{other.as_posix()} reads "{name}" of {before.path.as_posix()} as well'
        return ""

    def changes_strangers(self, texts: Mapping[Path, str], known: Collection[str]) -> bool:
        """Whether these texts would change a run of the tree that is none of those that are looked at."""
        changed = self.workspace.with_overlay(texts)
        there = (path for path in texts if self.workspace.exists(path))
        return any(self._of_others(path, changed, known) for path in there)

    def _of_others(self, path: Path, changed: Workspace, known: Collection[str] = ()) -> str:
        others = self._sharing.others(path, self._run)
        for other in others.runs:
            if other.id in known:
                continue
            after = self._sharing.after(other, changed)
            # One that lacks a file and has not this one may be given it.
            has = not other.missing or any(each.path == path for each in other.documents)
            names = changed_settings(other, after) if after is not None and has else ("reading",)
            names = tuple(name for name in names if name not in _FOR_ALL)
            if names and after is not None and self._mends(other, after, names):
                self.along.setdefault(other.id, path)
            elif names:
                what = ", ".join(name.replace("_", " ") for name in names[:2])
                return f"{other.id} has {path.as_posix()} as well, and would change its {what}"
        return f"more launches may have {path.as_posix()} than are read" if others.unread else ""

    def _mends(self, other: Run, after: Run, names: Collection[str]) -> bool:
        """Whether another launch is as well off with what a plan writes into code that both run: it does not fit these
        GPUs either, and what it gets are the plan's own changes, which leave its training as it is and take no more."""
        before, now = other.spec, after.spec
        if before is None or now is None or after.doubtful or not self._names:
            return False
        if not set(names) <= self._names | _FOLLOWING or now.effective_batch != before.effective_batch:
            return False
        if other.origin.path == self._run.origin.path and not self._names <= set(names):
            return False  # the two may be nodes of one run: all or nothing
        was = estimate(before)
        return was.verdict is Verdict.DOES_NOT_FIT and estimate(now).peak.likely <= was.peak.likely

    def _is_false(self, stem: str) -> bool:
        """Whether a config's name says something that the plan makes untrue."""
        engines = {_engine(found) for found in _ENGINES.findall(stem)}
        stage = _STAGE.search(stem)
        zero: bool = self._aim["engine"] == "deepspeed"
        offloads = _OFFLOAD.search(_NO_OFFLOAD.sub("", stem)) is not None
        half = _HALF.search(stem) if self._halved else None
        return (
            (half is not None and half[2].lower() != self._aim["mixed_precision"])
            or (bool(engines) and self._aim["engine"] not in engines)
            or (stage is not None and (not zero or int(stage["stage"]) != self._aim["zero_stage"]))
            or (offloads and stage is not None and zero and not self._offloads)
            or (self._offloads and any(word.search(stem) for word in (_NO_OFFLOAD, _ON_GPU)))
            or (self._offloads and _PLAIN.fullmatch(stem) is not None)
        )

    @property
    def _offloads(self) -> bool:
        return bool(self._aim["engine"] == "deepspeed" and self._aim["offload_optimizer"] != "none")

    def _free(self, path: Path, new: Mapping[Path, str]) -> Path:
        """A name beside a config that says what the plan makes of it, and that no file has."""
        stem = f"{path.stem}{self._further}" if self._keeps_states(path.stem) else self._named(path.stem)
        found, number = path.with_name(f"{stem}{path.suffix}"), 2
        more = self._further or self._unscheduled(found, path) or self._on_gpu(found)
        if self._taken(found, new) and more is not None:
            stem = f"{stem}{more}"
            found = path.with_name(f"{stem}{path.suffix}")
        there = found
        while self._taken(found, new):
            found, number = path.with_name(f"{stem}_{number}{path.suffix}"), number + 1
            self._numbered[found] = there
        return found

    def _keeps_states(self, stem: str) -> bool:
        """Whether a plan changes the buffers of a config, and neither its stage nor what it has on the host: a copy
        called by those would say of the config that it has others."""
        spec = self._run.spec
        if spec is None or spec.engine != "deepspeed" or not self._smaller or self._halved:
            return False
        return all(getattr(spec, name) == self._aim[name] for name in ZERO) and not self._is_false(stem)

    def _unscheduled(self, there: Path, path: Path) -> str | None:
        """What tells a config from one that says the same and brings a schedule of its own."""
        texts = (self.workspace.file(each).text if self.workspace.exists(each) else "" for each in (there, path))
        there_has, own_has = (_SCHEDULE.search(text) for text in texts)
        if there_has is None or (own_has is not None and own_has["type"] == there_has["type"]):
            return None
        return f"_{own_has['type'].lower()}" if own_has is not None and own_has["type"] else "_no_scheduler"

    def _on_gpu(self, there: Path) -> str | None:
        """What tells a config that keeps all on the GPU from one of the same stage that does not."""
        text = self.workspace.file(there).text if self.workspace.exists(there) else ""
        return "_no_offload" if self._aim["zero_stage"] and not self._offloads and _ON_HOST.search(text) else None

    def _taken(self, path: Path, new: Mapping[Path, str]) -> bool:
        # A fix before this one may have made a file that is not written yet.
        return self.workspace.exists(path) or door.exists(self.workspace.root / path) or path in new

    @property
    def _further(self) -> str | None:
        """What tells a config from one of the same stage and offload: that is in the optimizer's, or in the buffers."""
        aim = self._aim
        if self._smaller:
            return "_small_buffers"
        if aim["zero_stage"] == 3 and self._offloads and aim["offload_param"] == "none":
            return "_optimizer"
        return f"_{aim['mixed_precision']}" if self._halved else None

    def _named(self, stem: str) -> str:
        aim = self._aim
        if self._halved and aim["mixed_precision"] in ("bf16", "fp16"):
            swapped = _HALF.sub(lambda found: found[1] + aim["mixed_precision"], stem)
            says_offload = _OFFLOAD.search(swapped) is not None
            if swapped != stem and not self._is_false(swapped) and says_offload == self._offloads:
                return swapped
            stem = swapped
        if aim["engine"] != "deepspeed":
            said = {"fsdp": "fsdp", "ddp": "ddp"}.get(aim["engine"], "")
            named = _ENGINES.sub(said, _STAGE.sub("", stem)) if _ENGINES.search(stem) else stem
            if named == stem and aim["engine"] == "fsdp" and _ENGINES.search(stem):
                changed = aim["mixed_precision"] if self._halved else "changed"
                return f"{stem}_offload" if self._shards_on_host else f"{stem}_{changed}"
            if named == stem or not said:
                return f"{stem}_{said or 'changed'}"
            return f"{named.strip('_-')}{'_offload' if self._shards_on_host else ''}"
        offload = {"cpu": "_offload", "nvme": "_nvme"}.get(aim["offload_optimizer"], "")
        plain = _OFFLOAD.sub("", _NO_OFFLOAD.sub("", stem))
        plain = _ON_GPU.sub("", plain) if offload else plain
        if (stage := _STAGE.search(plain)) is not None:
            word = f"{stage['word']}{stage['between']}{aim['zero_stage']}{offload}"
            return f"{plain[: stage.start()]}{word}{plain[stage.end() :]}"
        if _ENGINES.search(plain) is not None:
            return _ENGINES.sub(f"deepspeed_zero{aim['zero_stage']}{offload}", plain, count=1)
        return f"{plain}_zero{aim['zero_stage']}{offload}".lstrip("_")


_SCHEDULE = re.compile(r'"scheduler"(?:\s{0,99}:\s{0,99}\{\s{0,99}"type"\s{0,99}:\s{0,99}"(?P<type>\w{1,40})")?')
_ON_HOST = re.compile(r"(?:\bdevice[\"']?|offload_\w{1,20}_device)\s{0,99}:\s{0,99}[\"']?(?:cpu|nvme)\b")
_LINK = re.compile(
    r"^[ \t]*#[ \t]*https?://\S{1,300}?/(?P<stem>[\w.-]{1,80})\.(?:ya?ml|json)[ \t]*(?:\n|\Z)", re.MULTILINE
)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


def _renamed(text: str, old: str, new: str) -> str:
    """A config's text with another name of the file in its comments, which may say how a run is started with it."""
    return _COMMENT.sub(lambda found: found[0].replace(old, new), text)


_SPOKEN_OF: Mapping[str, re.Pattern[str]] = {
    "fsdp": re.compile(r"fsdp|fully[ -]sharded", re.IGNORECASE),
    "ddp": re.compile(r"\bddp\b|multi[-_]?gpu|distributed data[ -]parallel", re.IGNORECASE),
    "deepspeed": re.compile(r"deepspeed|\bzero\b|\bzero[-_ ]?[0-3]\b", re.IGNORECASE),
}
"""How comments speak of an engine."""
_BLOCK = re.compile(r"(?:^[ \t]*#[^\n]*(?:\n|\Z))+", re.MULTILINE)
_BEHIND = re.compile(r"^([^#\"'\n]{0,400}[^#\"'\s])[ \t]{1,40}(#[^\r\n]*)(?=\r?$)", re.MULTILINE)
_VALUE = re.compile(r"[^\s:]+$")


def _without_old_reasons(before: str, after: str) -> str:
    """A copy's text without the comments behind values that are others in it (``FULL_SHARD  # ZeRO-2: …``): they stay
    true of the file that is copied. One that names the new value, too, stays (``3  # 2 or 3``), or has changed with
    it."""
    lines, comments = set(before.splitlines()), {found[2] for found in _BEHIND.finditer(before)}

    def kept(line: re.Match[str]) -> str:
        value = _VALUE.search(line[1])
        if line[0] in lines or line[2] not in comments or value is None:
            return line[0]
        named = re.search(rf"(?<![\w.]){re.escape(value[0])}(?![\w.])", line[2], re.IGNORECASE)
        return line[0] if named is not None else line[1]

    return _BEHIND.sub(kept, after)


_BLANKS = re.compile(r"(\r?\n)(?:[ \t]*\r?\n){2,}")


def _without_comments_of(text: str, spoken_of: re.Pattern[str]) -> str:
    """The text without the comments that a pattern is found in: blocks of lines, and what stands behind a value."""
    if spoken_of.search(text) is None:
        return text
    kept = _BLOCK.sub(lambda block: "" if spoken_of.search(block[0]) else block[0], text)
    kept = _BEHIND.sub(lambda line: line[1] if spoken_of.search(line[2]) else line[0], kept)
    return _BLANKS.sub(r"\1\1", kept).strip("\r\n")


def _changed(before: DataDocument, after: DataDocument) -> Iterator[str]:
    """The keys that two readings of a file give different values."""
    if before.root is None or after.root is None:
        return
    was = {path: node.plain() for path, node in before.root.walk() if node.shape == "scalar"}
    for path, node in after.root.walk():
        if node.shape == "scalar" and path and isinstance(path[-1], str) and was.get(path) != node.plain():
            yield path[-1]


def _aim(run: Run, changes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Engine, stage and offload as a plan leaves them."""
    spec = run.spec
    aim: dict[str, Any] = {name: getattr(spec, name, None) for name in ("engine", "mixed_precision", *ZERO)}
    for name, value in changes:
        if name in ("deepspeed", "deepspeed_config_file") and isinstance(value, Mapping):
            aim |= {"engine": "deepspeed", **{key: value[key] for key in ZERO if key in value}}
        elif name in aim:
            aim[name] = value
        elif name == "fsdp" and value is not None:
            aim["engine"] = "fsdp"
    return aim


def _engine(word: str) -> str:
    word = word.lower()
    return "fsdp" if word.startswith("fsdp") else "deepspeed" if word == "deepspeed" else "ddp"


def _configs(run: Run) -> Iterator[DataDocument]:
    """The engine's config files of a run, the one that is named by the other first."""
    for source in (run.deepspeed, run.accelerate):
        document: Document | None = source.document if source is not None else None
        if isinstance(document, DataDocument) and document.reader is None:
            yield document


def _opened(edits: Iterable[FileEdit]) -> Iterator[DataDocument]:
    """The JSONs that edits are in: a script may open one itself that its launch names."""
    for edit in edits:
        if isinstance(edit.document, DataDocument) and edit.document.kind is Kind.JSON and edit.document.reader is None:
            yield edit.document


def _stated_anew(document: DataDocument, edits: Sequence[Edit]) -> tuple[str, str] | None:
    """The one key at the top of a file that edits give another value, and its word; None where they do more."""
    root, after = document.root, read_again(document, apply(document.text, edits)).root
    if root is None or after is None or root.shape != "mapping":
        return None
    before = {entry.key: entry.value.plain() for entry in root.entries}
    changed = {
        entry.key: entry.value.plain() for entry in after.entries if before.get(entry.key) != entry.value.plain()
    }
    if len(changed) != 1 or before.keys() - {entry.key for entry in after.entries}:
        return None
    ((key, value),) = changed.items()
    return (key, spelled(value)) if isinstance(value, (bool, int, float, str)) else None


def _other_commands(own: Command, before: ShellDocument, after: Document) -> list[Command]:
    """The commands beside the run's own whose words are not as they were."""
    if not isinstance(after, ShellDocument) or len(before.commands) != len(after.commands):
        return []
    return [
        one
        for one, other in zip(before.commands, after.commands, strict=True)
        if one.span != own.span
        and not prints(one)
        and [word.text for word in one.words] != [word.text for word in other.words]
    ]
