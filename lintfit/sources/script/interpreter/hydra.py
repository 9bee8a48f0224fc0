"""Hydra's configs: a primary file, its defaults list, and the ``key=value`` words of the command line.

What it composes was read in hydra-core 1.3 (``hydra/_internal/defaults_list.py``). A group's choice is put under the
group's name unless its package says otherwise; a file without ``_self_`` comes after its own defaults.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lintfit.documents.model import Kind
from lintfit.documents.steps import Steps
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
    found = composer.file(posixpath.splitext(name)[0], "") if name is not None else Table(record.node, open=True)
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

    def loaded(self, path: str) -> tuple[Table, str | None] | None:
        """A file's content and the package in its head; None where it is not at hand."""
        opener = self.interpreter.walk.open_data
        document = opener(posixpath.join(self.folder, f"{path}.yaml"), Kind.YAML) if opener is not None else None
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
            return Table(open=True)
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
            return self._of_group(group, name, beside, package, "")
        if not isinstance(entry, Table):
            return Table(open=True)
        made = Table(entry.origin)
        for key, value in entry.items.items():
            words = str(key).split()
            if words[0] == "override":
                continue
            group, _, own = words[-1].partition("@")
            word = self.words.get(group)
            if word is not None:
                self.chosen.add(group)
            option = word.value if word is not None else plain(value)
            if option is None or option == "null":
                continue
            for name in option if isinstance(option, list) else [option]:
                more = self._of_group(group, str(name), beside, package, own)
                made = omegaconf.over(made, more, self.interpreter.walk.steps)
        return made

    def _of_group(self, group: str, name: str, beside: str, package: str, own: str) -> Table:
        path = group.lstrip("/") if group.startswith("/") else posixpath.join(beside, group)
        inner = own or ".".join(part for part in (package, group.strip("/").replace("/", ".")) if part)
        return self.file(posixpath.join(path, name), "" if own == "_global_" else inner)


def _nested(table: Table, package: str) -> Table:
    for part in reversed(package.split(".") if package else []):
        table = Table(table.origin, {part: table})
    return table
