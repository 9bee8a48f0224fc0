"""Which other runs of the tree read a file: what a change of it would do to somebody else's training.

The files of the repository around it are searched for its name, or for that of what imports or names it in turn. Launch
lines and recipes that have it are read as runs, the nearest first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from lintfit.boundary import Mistakes
from lintfit.documents import door
from lintfit.documents.files import ReadError, kind_of
from lintfit.documents.markdown import is_page
from lintfit.documents.model import Document, Kind
from lintfit.documents.paths import resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.steps import OF_RUN
from lintfit.documents.workspace import Workspace
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.options.model import Options
from lintfit.run.build import build
from lintfit.run.discover import NAMES, NOTEBOOK, SUFFIXES, not_searched
from lintfit.run.key_reads import root_of
from lintfit.run.loading import spreads_model
from lintfit.run.model import Origin, Run
from lintfit.settings.model import UNKNOWN
from lintfit.sources import detect
from lintfit.sources.recipes.forms import front_end_of

MAX_FILES = 3000
"""Files whose text is searched, those nearest to the file that is asked for first."""

MAX_RUNS = 8
"""Other runs of one file that are told of. One that changes is enough to leave the file alone."""

MAX_READ = 48
"""Launches and recipes that are read to see whether they have a file: where more may have it, it is left alone."""

_LONGEST = 1 << 22
"""Characters of a file that is searched: launches, recipes and modules are far shorter, notebooks hold pictures."""

_STEPS = 3
"""How far names are followed: a module, what imports it, and what imports that."""

_NOTES = ".txt"
_LONGEST_NOTES = 1 << 17
"""Characters of a text file that may hold commands somebody has noted down; longer ones are data."""

_SEARCHED = frozenset(
    (NOTEBOOK, _NOTES, *(suffix for suffix, kind in SUFFIXES.items() if kind in (Kind.SHELL, Kind.PYTHON, Kind.YAML)))
)


@frozen
class Others:
    """Runs beside one that read a file. ``more``: there are launches that may read it as well and were not looked at,
    as these are enough; ``unread``: as too many had to be read to find these."""

    runs: tuple[Run, ...] = ()
    more: bool = False
    unread: bool = False


@frozen
class _Text:
    path: Path
    text: str


def sharing(workspace: Workspace, cli: Options) -> Sharing:
    """The runs around the files of a workspace: one for all that ask."""
    return _OF_WORKSPACES.get(workspace, None, lambda: Sharing(workspace, cli))


class Sharing:
    """The runs of a tree by the files that they read. Nothing is searched before the first question."""

    def __init__(self, workspace: Workspace, cli: Options) -> None:
        self._workspace, self._cli = workspace, cli
        self._top = resolved(workspace.root)
        self._texts: dict[Path, tuple[_Text, ...]] = {}
        self._built: dict[Origin, Run | None] = {}
        self._named: dict[Path, tuple[Origin, ...]] = {}
        self._asked: dict[object, set[Path]] = {}
        """What was asked of the workspace for what is remembered."""

    def others(self, path: Path, run: Run) -> Others:
        """The other runs that read a file as this one does."""
        where = self._workspace.located(path)
        found: list[Run] = []
        others = [each for each in self._origins(where) if not self._same(each, run.origin)]
        for count, origin in enumerate(others):
            if len(found) == MAX_RUNS or count == MAX_READ:
                return Others(tuple(found), more=True, unread=len(found) < MAX_RUNS)
            other = self._run(origin)
            if other is not None and not _documents(other, run) and self._has(other, where):
                found.append(other)
        return Others(tuple(found))

    def beside(self, run: Run) -> tuple[Run, ...]:
        """The other launches of the file that a run begins in."""
        origins = [each for each in self._launches(run.origin.path) if not self._same(each, run.origin)][:MAX_RUNS]
        return tuple(other for each in origins if (other := self._run(each)) is not None)

    def _has(self, other: Run, where: Path) -> bool:
        """Whether a run reads a file; or may, for it lacks one and is called with this one."""
        if any(self._is(document, where) for document in (*other.documents, *other.opened)):
            return True
        return bool(other.missing) and other.origin.path in _called_with(where, self._tree(where))

    def writer(self, path: Path) -> Path | None:
        """The script or notebook of the tree beside a file that writes it, and would write it again as it is now."""
        where = resolved(self._workspace.root / path)
        name = where.name
        for each in self._tree(where):
            path = resolved(self._top / each.path)
            if name not in each.text or path == where or not _writes(each.text, name):
                continue
            if _are_in_line(path.parent, where.parent) or f"{where.parent.name}/{name}" in each.text:
                return each.path
        return None

    def after(self, other: Run, workspace: Workspace) -> Run | None:
        """Another run as it is with the files of a changed workspace; None where that cannot be read."""
        workspace.work.all.take(OF_RUN)
        with Mistakes().end_at(other.id):
            return build(other.origin, workspace, self._cli)
        return None

    def _same(self, one: Origin, other: Origin) -> bool:
        located = self._workspace.located
        return (one.kind, one.index) == (other.kind, other.index) and located(one.path) == located(other.path)

    def _is(self, document: Document, where: Path) -> bool:
        return self._workspace.located(document.path) == where

    def _run(self, origin: Origin) -> Run | None:
        if origin not in self._built:
            self._built[origin] = None
            self._workspace.work.all.take(OF_RUN)
            with self._noted(origin), Mistakes().end_at(origin.path.as_posix()):
                self._built[origin] = build(origin, self._workspace, self._cli)
        self._workspace.ask(self._asked[origin])
        return self._built[origin]

    def _noted(self, about: object) -> AbstractContextManager[None]:
        return self._workspace.asking(self._asked.setdefault(about, set()))

    def _origins(self, where: Path) -> tuple[Origin, ...]:
        """Where runs may begin that have a file, the nearest to it first."""
        if where not in self._named:
            with self._noted(where):
                self._named[where] = tuple(self._search(where))
        self._workspace.ask(self._asked[where])
        return self._named[where]

    def _search(self, where: Path) -> Iterator[Origin]:
        texts = self._tree(where)
        meant = {where, *map(resolved, _bringing(where, self._top, texts))}
        stems = {path.name: path.stem for path in sorted(meant)}
        called = _called_with(where, texts)
        for each in texts:
            # Of a notebook the commands count, as a script's do: its cells are one run alone.
            commands = each.path.suffix in (NOTEBOOK, _NOTES)
            kind = Kind.SHELL if commands else kind_of(each.path, each.text)
            if kind not in (Kind.SHELL, Kind.YAML):
                continue
            names = [name for name, stem in stems.items() if stem in each.text]
            if each.path not in called and (not names or not self._may_mean(each, names, meant)):
                continue
            if kind is Kind.SHELL and detect.maybe_launch(each.text):
                yield from self._launches(each.path)
            elif kind is Kind.YAML and front_end_of(each.text, kind) is not None:
                yield Origin("recipe", each.path)

    def _may_mean(self, text: _Text, called: Iterable[str], meant: Collection[Path]) -> bool:
        """Whether a text names one of these files, ``called`` so, and not only others that are called alike and lie
        where its own words lead: ``train.py`` of an example is its own ``train.py``."""
        found = (each for name in called for each in re.finditer(_mention(name), text.text))
        names = dict.fromkeys(_word(text.text, each) for each in found)
        if not names:
            return False
        if all(self._is_of_another_page(text.path, name, meant) for name in names):
            return False
        entered = _entered(text.text)
        if entered is None or len(names) > _MOST_NAMES:
            return True
        here = self._top / text.path.parent
        bases = [here, *(base for base in here.parents if base.is_relative_to(self._top))]
        bases += [base / folder for base in bases for folder in entered]
        for name in names:
            paths = [base / name for base in bases] if name is not None else []
            there = [resolved(path) for path in paths if self._workspace.exists(path)]
            # Whoever enters no folder takes the nearest, as ``Locator.bases`` has it.
            if not there or any(path in meant for path in (there if entered else there[:1])):
                return True
        return False

    def _is_of_another_page(self, path: Path, name: str | None, meant: Collection[Path]) -> bool:
        """Whether a page that lies in none of the folders above a file names another: by a path that is not the end of
        its own, or with no folder one of several that are called so."""
        if name is None or not is_page(path):
            return False
        folder, parts = resolved(self._top / path.parent), Path(name).parts
        if any(each.is_relative_to(folder) for each in meant) or ".." in parts:
            return False
        if len(parts) > 1:
            return not any(each.parts[-len(parts) :] == parts for each in meant)
        return len(self._workspace.named(name)) > 1

    def _launches(self, path: Path) -> Iterator[Origin]:
        from lintfit.sources.launchers.launcher import count_launches

        with Mistakes().end_at(path.as_posix()):
            yield from (
                Origin("launch", path, index) for index in range(count_launches(self._workspace.read(path, Kind.SHELL)))
            )

    def _tree(self, where: Path) -> tuple[_Text, ...]:
        """The texts of the repository around a file, the nearest first."""
        root = root_of(where.parent, self._top)
        if root not in self._texts:
            with self._noted(("texts", root)):
                self._texts[root] = tuple(self._read(root))
        self._workspace.ask(self._asked["texts", root])
        near = where.parent
        return tuple(sorted(self._texts[root], key=lambda each: _distance(self._top / each.path, near)))

    def _read(self, root: Path) -> Iterator[_Text]:
        count = 0
        for here, folders, files in door.walk(root):
            folders[:] = sorted(name for name in folders if not not_searched(name))
            for name in sorted(files):
                path = here / name
                if name not in NAMES and path.suffix not in _SEARCHED:
                    continue
                count += 1
                if count > MAX_FILES:
                    return
                shown = path.relative_to(self._top) if path.is_relative_to(self._top) else path
                try:
                    text = self._workspace.file(shown).text
                except ReadError:
                    continue
                if len(text) <= (_LONGEST_NOTES if path.suffix == _NOTES else _LONGEST):
                    yield _Text(shown, text)


_OF_WORKSPACES: Memo[Sharing] = Memo(most=4)


def changed_settings(before: Run, after: Run) -> tuple[str, ...]:
    """The settings that are not as they were, in their order."""
    names = dict.fromkeys((*before.settings, *after.settings))
    changed = tuple(name for name in names if _value(before, name) != _value(after, name))
    if changed:
        return changed
    if _zero(before) != _zero(after):
        return ("sizes_of_zero",)
    return ("device_map",) if spreads_model(before) != spreads_model(after) else ()


def _documents(other: Run, run: Run) -> bool:
    """Whether a launch line is but the written command of a run that is looked at: the same training.

    That is the command of a recipe that is looked at alone, or the recipe of a command that is, and a command of a page
    that comes to the run's own settings.
    """
    if other.origin.kind == "recipe" and run.recipe is not None:
        return resolved(other.origin.path) == resolved(run.recipe.document.path)
    if not is_page(other.origin.path) and not (run.origin.kind == "recipe" and run.recipe is not None):
        return False
    started, own = (each.recipe or each.script for each in (other, run))
    if started is None or own is None or resolved(started.document.path) != resolved(own.document.path):
        return False
    return set(changed_settings(run, other)) <= _OF_MACHINES


_OF_MACHINES = frozenset({"gpus", "nodes", "visible_devices"})


def _zero(run: Run) -> object:
    """What a script's own DeepSpeed dict says of ZeRO: the sizes of its buffers are no settings of the run."""
    return run.script.zero_of_dict if run.script is not None else None


def _value(run: Run, name: str) -> object:
    setting = run.settings.get(name)
    return None if setting is None else "unknown" if setting.value is UNKNOWN else setting.value


def _bringing(where: Path, top: Path, texts: tuple[_Text, ...]) -> tuple[Path, ...]:
    """The files (whole paths) that import a file or name it, those that do so with them, and so on."""
    known: dict[Path, None] = {where: None}
    for _ in range(_STEPS):
        stems = {path.stem for path in known}
        found = [
            path
            for each in texts
            if (path := top / each.path) not in known
            and any(stem in each.text for stem in stems)
            and any(_takes(each, path.parent, other) for other in known)
        ]
        if not found:
            break
        known.update(dict.fromkeys(found))
    return tuple(known)[1:]


_SCRIPT = lazy_pattern(r"[\w./-]{1,200}\.(?:sh|bash)\b")


def _called_with(where: Path, texts: Collection[_Text]) -> frozenset[Path]:
    """The shell scripts that some line names beside a config: as it calls them with it, they need not name it."""
    if where.suffix not in (".yaml", ".yml", ".json"):
        return frozenset()
    found: set[str] = set()
    for each in texts:
        if where.name in each.text:
            lines = (line for line in each.text.splitlines() if where.name in line)
            found.update(Path(word).name for line in lines for word in _SCRIPT.findall(line))
    return frozenset(each.path for each in texts if each.path.name in found)


_MOST_NAMES = 50
"""Ways in which one text names files that are looked up; a text with more may mean any."""

_AROUND_WORDS = lazy_pattern(r"[\s\"'`=:,;|&()<>\[\]]")
_LONGEST_WORD = 300

_ENTERS = lazy_pattern(
    r"\b(?:cd|pushd)[ \t]+(\"?\$\(dirname|[^\s;&|]+)|\b(?:working[-_]?dir(?:ectory)?|WORKDIR|chdir)\b|[ \t]-C[ \t]"
)


def _entered(text: str) -> list[Path] | None:
    """Folders that a text's own ``cd`` leads to, from where it starts; None where that cannot be told."""
    folders: list[Path] = []
    for found in _ENTERS.finditer(text):
        folder = (found[1] or "$").strip("\"'")
        if folder.startswith("$(dirname"):
            continue  # its own folder, or one above
        if folder.startswith(("/", "~", "-")) or "$" in folder or "`" in folder or len(folders) == _MOST_NAMES:
            return None
        folders.append(Path(folder))
    return folders


def _word(text: str, found: re.Match[str]) -> str | None:
    """The path that a name is a part of in a text, or that of a module; None where the shell or the machine decides."""
    if found[0].startswith("-m"):
        return f"{found[0][2:].strip().replace('.', '/')}.py"
    before = _AROUND_WORDS.split(text[max(0, found.start() - _LONGEST_WORD) : found.start()])[-1]
    behind = _AROUND_WORDS.split(text[found.end() : found.end() + _LONGEST_WORD], maxsplit=1)[0]
    word = before + found[0] + behind
    return None if word.startswith(("/", "~")) or any(mark in word for mark in "$*?{}") else word


def _are_in_line(one: Path, other: Path) -> bool:
    """Whether one of two folders is the other or lies in it: what is written by a name alone lies there, or below."""
    return one.is_relative_to(other) or other.is_relative_to(one)


_TO_FILE = r"(?:open\({0}\s*,\s*[\"']w|Path\({0}\)\.write_text\(|\b{0}\.write_text\()"
"""How Python writes a text file of a name."""


def _writes(text: str, name: str) -> bool:
    """Whether a script writes a file of this name whole: by ``open(…, "w")`` of the name itself or of a variable or
    parameter that has it, or by a here-document."""
    quoted = rf"[\"'](?:[^\"'\n{{}}]{{0,200}}/)?{re.escape(name)}[\"']"
    held = re.findall(rf"\b(\w+)[ \t]*(?::[ \t]*\w+[ \t]*)?=[ \t]*(?:Path\()?{quoted}", text)
    written = "|".join((quoted, *(rf"\b{each}\b" for each in dict.fromkeys(held))))
    if re.search(_TO_FILE.format(f"(?:{written})"), text) is not None:
        return True
    word = rf"[\"']?(?:[^\s\"'<>|;&]{{0,200}}/)?{re.escape(name)}[\"']?"
    return any(_is_document_of(line, word) for line in text.splitlines() if "<<" in line and name in line)


def _is_document_of(line: str, word: str) -> bool:
    """Whether a line of a shell script puts a here-document into a file: ``cat <<EOF > name``, ``cat > name <<EOF``."""
    code = line.partition("#")[0]
    begins = code.find("<<")
    if begins >= 0 and re.search(rf">[ \t]*{word}(?:\s|$)", line[begins:]) is not None:
        return True
    return re.search(rf">[ \t]*{word}[ \t]*<<", code) is not None


def _takes(text: _Text, folder: Path, other: Path) -> bool:
    """Whether a file in a folder is a part of runs only by what it brings along: a module, or a config that a script or
    an Accelerate YAML names itself."""
    if other.stem not in text.text:
        return False
    is_module = other.suffix == ".py"
    if text.path.suffix == ".py" and is_module:
        lines = re.finditer(rf"^[ \t]*(?:from|import)\b.*\b{re.escape(other.stem)}\b", text.text, re.MULTILINE)
        # What a file imports by a name alone lies beside it, or above it where the script is started.
        near = folder == other.parent or folder.is_relative_to(other.parent)
        return any(near or re.search(rf"\b{re.escape(other.parent.name)}\b", line[0]) for line in lines)
    if is_module or other.name not in text.text:
        return False
    is_config = text.path.suffix in (".yaml", ".yml") and front_end_of(text.text, Kind.YAML) is None
    return is_config or text.path.suffix == ".py"


def _mention(name: str) -> str:
    """A file's name in a launch: as it is, or a module's behind ``-m``."""
    stem = re.escape(Path(name).stem)
    suffix = re.escape(Path(name).suffix)
    module = rf"|-m[ \t]+[\w.]*\b{stem}\b" if name.endswith(".py") else ""
    return rf"(?<![\w-]){stem}{suffix}\b{module}"


def _distance(path: Path, folder: Path) -> tuple[int, str]:
    """How many folders lie between a file and a folder."""
    shared = 0
    for one, other in zip(path.parent.parts, folder.parts, strict=False):
        if one != other:
            break
        shared += 1
    return len(path.parent.parts) + len(folder.parts) - 2 * shared, path.as_posix()
