"""Hydra's configs: a primary file, its defaults list, and the ``key=value`` words of the command line.

What it composes was read in hydra-core 1.3 (``hydra/_internal/defaults_list.py``). A group's choice is put under the
group's name unless its package says otherwise; a file without ``_self_`` comes after its own defaults. An ``override``
of any file's defaults chooses for a group that is named elsewhere, as words of the command line do before it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lintfit.documents.model import Kind
from lintfit.documents.steps import Steps
from lintfit.frozen import frozen
from lintfit.settings.model import UNKNOWN
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter import config_files, omegaconf
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import Const, Items, Record, Table, Value, plain

_PACKAGE = re.compile(r"\A(?:\s*#[^\n]*\n)*?\s*#\s*@package\s+(?P<name>[\w.]+)")
_MAX_FILES = 200
"""Files that one config may be composed of."""


def composed(interpreter: Evaluator, options: Mapping[str, Value], record: Record) -> Table:
    """The config that ``@hydra.main(config_path=…, config_name=…)`` hands to its function."""
    walk = interpreter.walk
    walk.parses = True
    words = {word.name: word for word in walk.overrides}
    files = walk.steps.within(_MAX_FILES, "files of one config")
    composer = _Composer(interpreter, _folder(interpreter, options), words, files)
    name = _option(interpreter, options, "config_name")
    if name is not None:
        composer.find_overrides(name)
    found = composer.file(name, "") if name is not None else Table(record.node, open=True)
    if not walk.assume:
        return _config(omegaconf.over(found, Table(record.node, open=True), walk.steps), walk.steps)
    for word in walk.overrides:
        path = f"{word.name}/{word.value}"
        if word.name in composer.chosen or word.name in found.items or not word.value:
            continue
        if composer.loaded(path) is not None:
            composer.chosen.add(word.name)
            found = omegaconf.over(found, composer.file(path, word.name.replace("/", ".")), walk.steps)
    values = [word for word in walk.overrides if word.name not in composer.chosen]
    return _config(omegaconf.over(found, omegaconf.dotted(values, record), walk.steps), walk.steps)


def _config(table: Table, steps: Steps) -> Table:
    made = omegaconf.config(table, steps)
    assert isinstance(made, Table)
    return made


def _option(interpreter: Evaluator, options: Mapping[str, Value], name: str) -> str | None:
    flag = interpreter.walk.flags.get(name)
    known = flag.value if flag is not None else plain(options[name]) if name in options else None
    return known if isinstance(known, str) and "$" not in known else None


def _folder(interpreter: Evaluator, options: Mapping[str, Value]) -> str:
    """Where the files are: the path of ``@hydra.main`` is seen from the script, that of a flag from where it runs."""
    flag = interpreter.walk.flags.get("config_path") or interpreter.walk.flags.get("config_dir")
    if flag is not None and flag.value:
        return flag.value
    script = interpreter.globals.names.get("__file__")
    own = posixpath.dirname(str(script.value)) if isinstance(script, Const) else ""
    return posixpath.normpath(posixpath.join(own, _option(interpreter, options, "config_path") or ""))


@dataclass(slots=True)
class _Composer:
    """Reads the files of one config. ``chosen`` are the words that choose a group's file."""

    interpreter: Evaluator
    folder: str
    words: Mapping[str, Flag]
    files: Steps
    """Files that may still be read; merging them draws from the whole walk's."""
    chosen: set[str] = field(default_factory=set)
    overridden: dict[str, object] = field(default_factory=dict)
    """What ``override`` entries choose, by group and package."""
    looked_at: set[str] = field(default_factory=set)
    """Files whose ``override`` entries are noted."""

    def loaded(self, path: str) -> tuple[Table, str | None] | None:
        """A file's content and the package in its head; None where it is not at hand."""
        opener = self.interpreter.walk.open_data
        document = (
            opener(posixpath.join(self.folder, f"{path.removesuffix('.yaml')}.yaml"), Kind.YAML)
            if opener is not None
            else None
        )
        if document is None or document.root is None:
            return None
        content = config_files.content(self.interpreter, document, document.root)
        if not isinstance(content, Table):
            return None
        header = _PACKAGE.match(document.text)
        return content, header["name"] if header is not None else None

    def file(self, path: str, package: str) -> Table:
        """A file with its defaults, nested as its package (dotted; empty for the root) says."""
        found = self.loaded(path) if self.files.take() else None
        if found is None:
            return _nested(Table(open=True), package)
        content, header = found
        package = package if header is None else header.removeprefix("_global_").lstrip(".")
        own = Table(content.origin, {key: value for key, value in content.items.items() if key != "defaults"})
        own = _nested(own, package)
        result, said, steps = Table(content.origin), False, self.interpreter.walk.steps
        defaults = content.items.get("defaults")
        for entry in defaults.items if isinstance(defaults, Items) else ():
            itself = isinstance(entry, Const) and entry.value == "_self_"
            said |= itself
            more = own if itself else self._default(entry, posixpath.dirname(path), package)
            result = omegaconf.over(result, more, steps)
        return result if said else omegaconf.over(result, own, steps)

    def _default(self, entry: Value, beside: str, package: str) -> Table:
        """One entry of a defaults list: another file, or a group with the file that is chosen of it."""
        if isinstance(entry, Const) and isinstance(entry.value, str):
            group, _, name = entry.value.rpartition("/")
            return self.file(posixpath.join(_absolute(group, beside), name), _package(group, "", package))
        if not isinstance(entry, Table):
            return Table(open=True)
        made = Table(entry.origin)
        for named in _groups(entry):
            if not named.overrides:
                inner, group = _package(named.group, named.own, package), _absolute(named.group, beside)
                choice = self._choice(named, group, inner)
                if choice is UNKNOWN and named.choice in (None, "null"):
                    inner = ""  # what is left out by itself (an experiment) may well be about the whole config
                more = self._chosen(group, inner, choice)
                made = omegaconf.over(made, more, self.interpreter.walk.steps)
        return made

    def _choice(self, named: _Group, group: str, package: str) -> object:
        """The file or files of a group: a word of the command line wins, then an ``override`` of another file."""
        word = self.words.get(named.group)
        if word is not None:
            self.chosen.add(named.group)
            return word.value if word.value is not None and "$" not in word.value else UNKNOWN
        return self.overridden.get(f"{group}@{package}" if named.own else group, named.choice)

    def _chosen(self, group: str, package: str, choice: object) -> Table:
        if choice is UNKNOWN:
            return _nested(Table(open=True), package)
        made = Table()
        for name in choice if isinstance(choice, list) else [choice]:
            if name not in (None, "null"):
                more = self.file(posixpath.join(group, str(name)), package)
                made = omegaconf.over(made, more, self.interpreter.walk.steps)
        return made

    def find_overrides(self, path: str) -> None:
        """Note what ``override`` entries choose in the files of a config: of several for a group the last one."""
        if path in self.looked_at or not self.files.take():
            return
        self.looked_at.add(path)
        found = self.loaded(path)
        defaults = found[0].items.get("defaults") if found is not None else None
        beside = posixpath.dirname(path)
        for entry in reversed(defaults.items if isinstance(defaults, Items) else []):
            if isinstance(entry, Const) and isinstance(entry.value, str) and entry.value != "_self_":
                self.find_overrides(posixpath.join(_absolute("", beside), entry.value.lstrip("/")))
            for named in _groups(entry) if isinstance(entry, Table) else ():
                group = _absolute(named.group, beside)
                if named.overrides:
                    self.overridden.setdefault(f"{group}@{named.own}" if named.own else group, named.choice)
                    continue
                choice = self._choice(named, group, named.own)
                if isinstance(choice, str) and choice != "null":
                    self.find_overrides(posixpath.join(group, choice))


@frozen
class _Group:
    """An entry ``group@package: choice`` of a defaults list, which may be an ``override`` of another entry."""

    group: str
    own: str
    choice: object
    overrides: bool


def _groups(entry: Table) -> Iterator[_Group]:
    for key, value in entry.items.items():
        words = str(key).split()
        group, _, own = words[-1].partition("@") if words else ("", "", "")
        yield _Group(group, own, plain(value), "override" in words[:-1])


def _absolute(group: str, beside: str) -> str:
    """A group's folder below that of the configs; one without a slash in front is seen from its file's."""
    return group.lstrip("/") if group.startswith("/") else posixpath.normpath(posixpath.join(beside, group)).lstrip(".")


def _package(group: str, own: str, package: str) -> str:
    """Where the content of a group's file goes: under its name, or what it says itself, in its parent's package."""
    if own.startswith("_global_"):
        return own.removeprefix("_global_").lstrip(".")
    own = "" if own == "_here_" else own or group.strip("/").replace("/", ".")
    return ".".join(part for part in (package, own) if part)


def _nested(table: Table, package: str) -> Table:
    for part in reversed(package.split(".") if package else []):
        table = Table(table.origin, {part: table})
    return table
