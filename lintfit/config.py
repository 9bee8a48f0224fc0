"""What the user asks for: flags, ``lintfit.toml`` and ``[tool.lintfit]``, each value with where it was said.

The config that governs a file is the nearest one above it. Flags win over a ``[[run]]`` table, which wins over the
rest of the config. Sizes are bytes once they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lintfit.errors import LintfitError
from lintfit.settings import Provenance
from lintfit.severity import Severity

CONFIG_NAME = "lintfit.toml"

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*", re.ASCII)
_UNITS = {"": 2**30, "gib": 2**30, "mib": 2**20, "tib": 2**40, "gb": 10**9, "mb": 10**6, "tb": 10**12}


@dataclass(frozen=True, slots=True)
class Output:
    """One ``--output-format FORMAT[:FILE]``; ``file`` is None for standard output."""

    format: str
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Margin:
    """Room that a plan is to leave on every card, beyond what its estimate already plans for: bytes, or a share."""

    size: int = 0
    share: float = 0.0

    def bytes_of(self, capacity: int) -> int:
        """The margin in bytes on a card of this size."""
        return self.size + int(self.share * capacity)

    def __str__(self) -> str:
        return f"{self.share:.0%}" if self.share else f"{self.size / 2**30:g} GiB"


@dataclass(frozen=True, slots=True)
class Glob:
    """A gitignore-like pattern and the folder that it is relative to.

    Without a slash it matches a name at any depth; with one, a path below ``root``. ``**`` spans folders.
    """

    pattern: str
    root: Path

    def matches(self, path: Path) -> bool:
        """Whether the pattern matches this path or one of its parents below ``root``."""
        relative = os.path.relpath(Path(path).absolute(), self.root).replace(os.sep, "/")
        if relative == ".." or relative.startswith("../"):
            return False
        return _compiled(self.pattern).match(relative) is not None


@dataclass(frozen=True, slots=True)
class RunGroup:
    """A ``[[run]]`` table: absolute paths of the files that are one run, and what the table says about it."""

    files: tuple[Path, ...]
    options: Options


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that the user asked for. ``origins`` names, by field, the flag or config key that stated it.

    A field that is missing from ``origins`` has its default. ``gpus`` counts all cards over all ``nodes``; memory is
    in bytes, ``gpu_memory_bytes`` of one card, ``host_memory_bytes`` of one node; ``seq_len`` in tokens.
    """

    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    isolated: bool = False
    show_plans: bool = False
    """List every kind of plan that makes a run fit, not only the best."""
    stdin_filename: Path | None = None
    """With ``stdin``: the name under which the text on standard input is checked."""
    stdin: bytes | None = None
    outputs: tuple[Output, ...] = (Output("text"),)
    no_ignores: bool = False
    """Report also what a comment ignores."""
    add_ignores: str | None = None
    """Write comments that ignore what is left, with this reason; None: do not."""
    write_baseline: Path | None = None
    """Count what is left in this file."""

    select: tuple[str, ...] = ("all",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[Glob, tuple[str, ...]], ...] = ()
    exclude: tuple[Glob, ...] = ()
    fail_on: Severity = Severity.WARNING
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """By the rule's name: how bad its findings are here, whatever the rule says."""
    baseline: Path | None = None
    """Counts of findings that are known and not reported."""

    gpu: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    gpu_memory_bytes: int | None = None
    host_memory_bytes: int | None = None
    model: str | None = None
    """A Hugging Face id, or a folder with a ``config.json``."""
    model_config: Path | None = None
    seq_len: int | None = None
    margin: Margin = Margin()
    """What plans are to leave free on every card."""

    config_path: Path | None = None
    runs: tuple[RunGroup, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def stated(self, name: str) -> bool:
        """Whether a flag or a config stated this field."""
        return name in self.origins

    def provenance(self, name: str) -> Provenance:
        """Where a stated field was stated, as an ``option``."""
        return Provenance("option", self.origins[name])

    def over(self, other: Options) -> Options:
        """This, with the other's values for what this does not state."""
        taken = {name: getattr(other, name) for name in other.origins if name not in self.origins}
        return replace(
            self,
            **taken,
            config_path=self.config_path or other.config_path,
            runs=self.runs or other.runs,
            origins={**other.origins, **self.origins},
        )

    def for_run(self, group: RunGroup, cli: Options) -> Options:
        """The options of one ``[[run]]``: flags first, then the table, then the rest of this config."""
        return cli.over(group.options.over(self))

    def group_of(self, path: Path) -> RunGroup | None:
        """The first ``[[run]]`` table that lists this file."""
        absolute = Path(os.path.normpath(Path(path).absolute()))
        return next((group for group in self.runs if absolute in group.files), None)

    def enabled(self, name: str, code: str, path: Path | None = None) -> bool:
        """Whether a rule is selected and not ignored, here and in this file."""
        if not selected(self.select, name, code) or selected(self.ignore, name, code):
            return False
        if path is None:
            return True
        return not any(selected(rules, name, code) and glob.matches(path) for glob, rules in self.per_file_ignores)

    def excluded(self, path: Path) -> bool:
        """Whether ``exclude`` names this file or a folder above it."""
        return any(glob.matches(path) for glob in self.exclude)


def selected(selectors: Iterable[str], name: str, code: str) -> bool:
    """Whether a rule is meant by its name, its code, the beginning of its code (``LF1``) or ``all``."""
    return any(
        selector in (name, code, "all") or (selector.startswith("LF") and code.startswith(selector))
        for selector in selectors
    )


def parse_size(value: object) -> int:
    """Bytes of ``23.7GiB``, ``24GB`` (10^9), ``512 MiB`` or a plain number of GiB. ValueError says what is allowed."""
    expected = 'a size such as "23.7GiB", "24GB" or a number of GiB'
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(expected)
    found = _SIZE.fullmatch(str(value))
    unit = _UNITS.get(found[2].lower()) if found else None
    if not found or unit is None:
        raise ValueError(expected)
    size = int(float(found[1]) * unit)
    if not 0 < size < 2**60:
        raise ValueError(f"{expected}, more than 0 and less than 1 EiB")
    return size


def parse_margin(value: object) -> Margin:
    """A share of the card (``10%``) or a size as :func:`parse_size` reads it. ValueError says what is allowed."""
    text = str(value).strip()
    if text.endswith("%"):
        try:
            share = float(text[:-1]) / 100
        except ValueError:
            share = -1
        if not 0 <= share < 1:
            raise ValueError('a share from "0%" to below "100%"')
        return Margin(share=share)
    if text in ("0", "0.0"):
        return Margin()
    try:
        return Margin(size=parse_size(value))
    except ValueError:
        raise ValueError('a share such as "10%", or a size such as "2GiB"') from None


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**9:
        raise ValueError("a whole number of 1 or more")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    return value.strip()


def _severity(value: object) -> Severity:
    try:
        return Severity[str(value).upper()]
    except KeyError:
        raise ValueError('"error", "warning" or "info"') from None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item for item in value):
        raise ValueError("a list of texts")
    return tuple(value)


def _rules(value: object) -> tuple[str, ...]:
    try:
        selectors = _texts(value)
    except ValueError:
        raise ValueError("a list of rule names or codes") from None
    for selector in selectors:
        _known_rule(selector)
    return selectors


def _known_rule(selector: str) -> None:
    if selector == "all":
        return
    from lintfit.rules_catalog import load_rules

    rules = load_rules()
    if any(selected((selector,), rule.name, rule.code) for rule in rules.values()):
        return
    from lintfit.suggest import did_you_mean

    choices = [text for rule in rules.values() for text in (rule.name, rule.code)]
    raise ValueError(f'rules that exist, and "{selector}" is none{did_you_mean(selector, choices)}')


def _severities(value: object) -> dict[str, Severity]:
    if not isinstance(value, Mapping):
        raise ValueError('a table such as {rule-name = "info"}')
    from lintfit.rules_catalog import find

    try:
        return {find(name).name: _severity(severity) for name, severity in value.items()}
    except LintfitError as error:
        raise ValueError(f"names or codes of rules: {error}") from None


@dataclass(frozen=True, slots=True)
class _Key:
    """One key of the config: the field it sets, how its value is read, and whether a ``[[run]]`` may have it."""

    field: str
    read: Callable[[Any, Path], Any]
    per_run: bool = False


def _model(value: object, root: Path) -> str:
    name = _text(value)
    return str(root / name) if _is_file(root / name / "config.json") else name


def _per_file(value: object, root: Path) -> tuple[tuple[Glob, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise ValueError('a table such as {"tests/*" = ["rule-name"]}')
    return tuple((Glob(pattern, root), _rules(rules)) for pattern, rules in value.items())


KEYS: Mapping[str, _Key] = {
    "gpu": _Key("gpu", lambda value, _: _text(value), per_run=True),
    "gpus": _Key("gpus", lambda value, _: _whole(value), per_run=True),
    "nodes": _Key("nodes", lambda value, _: _whole(value), per_run=True),
    "gpu-memory": _Key("gpu_memory_bytes", lambda value, _: parse_size(value), per_run=True),
    "host-memory": _Key("host_memory_bytes", lambda value, _: parse_size(value), per_run=True),
    "model": _Key("model", _model, per_run=True),
    "model-config": _Key("model_config", lambda value, root: root / _text(value), per_run=True),
    "seq-len": _Key("seq_len", lambda value, _: _whole(value), per_run=True),
    "margin": _Key("margin", lambda value, _: parse_margin(value), per_run=True),
    "select": _Key("select", lambda value, _: _rules(value)),
    "ignore": _Key("ignore", lambda value, _: _rules(value)),
    "per-file-ignores": _Key("per_file_ignores", _per_file),
    "exclude": _Key("exclude", lambda value, root: tuple(Glob(item, root) for item in _texts(value))),
    "fail-on": _Key("fail_on", lambda value, _: _severity(value)),
    "severity": _Key("severities", lambda value, _: _severities(value)),
    "baseline": _Key("baseline", lambda value, root: root / _text(value)),
}
"""What a config may say, by key; flags have the same names."""


def from_flags(values: Mapping[str, Any], **switches: Any) -> Options:
    """Options from flags by their names without dashes (``gpu-memory``); None is a flag that was not given.

    ``switches`` are fields that only flags have (``fix=True``). Raises LintfitError for a value that is not allowed.
    """
    stated: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, value in values.items():
        if value is None:
            continue
        key = KEYS[name]
        try:
            stated[key.field] = key.read(value, Path.cwd())
        except ValueError as error:
            shown = ",".join(value) if isinstance(value, (list, tuple)) else value
            raise LintfitError(f"--{name} {shown}: expected {error}") from None
        origins[key.field] = f"--{name}"
    return Options(**stated, **switches, origins=origins)


def config_for(path: Path, cli: Options) -> Options:
    """The options that govern a file or folder: the flags over the nearest config above it.

    Raises LintfitError where that config cannot be read.
    """
    if cli.isolated:
        return cli
    absolute = Path(os.path.normpath(Path(path).absolute()))
    found = load_config(absolute if absolute.is_dir() else absolute.parent)
    return cli.over(found) if found else cli


@cache
def load_config(start: Path) -> Options | None:
    """The nearest ``lintfit.toml`` or ``[tool.lintfit]`` at or above a folder, None where there is none."""
    own = start / CONFIG_NAME
    if _is_file(own):
        return _read(own, ())
    project = start / "pyproject.toml"
    if _is_file(project) and _mentions_lintfit(project):
        found = _read(project, ("tool", "lintfit"))
        if found is not None:
            return found
    return None if start.parent == start else load_config(start.parent)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be searched
        return False


def _mentions_lintfit(path: Path) -> bool:
    try:
        return b"lintfit" in path.read_bytes()
    except OSError:
        return False


def _read(path: Path, table: Sequence[str]) -> Options | None:
    import tomllib

    shown = os.path.relpath(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        content: Any = tomllib.loads(text)
    except OSError as error:
        raise LintfitError(f"{shown}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LintfitError(f"{shown}: not UTF-8, which TOML must be") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise LintfitError(f"{shown}: not TOML: {error}") from None
    for name in table:
        content = content.get(name)
        if content is None:
            return None
        if not isinstance(content, dict):
            raise LintfitError(f"{shown}: {'.'.join(table)} must be a table")
    reader = _Reader(path, text, ".".join(table))
    groups = content.pop("run", [])
    options = reader.options(content, KEYS)
    return replace(options, config_path=path, runs=reader.groups(groups))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the tables of one config file."""

    path: Path
    text: str
    prefix: str

    def options(self, table: Mapping[str, Any], allowed: Mapping[str, _Key], where: str = "") -> Options:
        stated: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, value in table.items():
            key = allowed.get(name)
            if key is None:
                self.unknown(name, allowed, where)
                continue
            try:
                stated[key.field] = key.read(value, self.path.parent)
            except ValueError as error:
                raise self.error(name, f"{name} = {_shown(value)}: expected {error}", where) from None
            origins[key.field] = f"{where}{name} in {os.path.relpath(self.path)}"
        return Options(**stated, origins=origins)

    def groups(self, tables: object) -> tuple[RunGroup, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.error("run", "run: expected [[run]] tables")
        allowed = {name: key for name, key in KEYS.items() if key.per_run}
        groups = []
        for table in tables:
            content = dict(table)
            try:
                names = _texts(content.pop("files", None))
            except ValueError as error:
                raise self.error("run", f"[[run]]: files: expected {error}") from None
            files = tuple(Path(os.path.normpath(self.path.parent / name)) for name in names)
            groups.append(RunGroup(files, self.options(content, allowed, "run.")))
        return tuple(groups)

    def unknown(self, name: str, allowed: Mapping[str, _Key], where: str) -> None:
        from lintfit.suggest import did_you_mean

        extra = ["files"] if where else ["run"]
        hint = did_you_mean(name, [*allowed, *extra]) or f"; known are {', '.join([*allowed, *extra])}"
        raise self.error(name, f'unknown key "{where}{name}"{hint}', where)

    def error(self, name: str, message: str, where: str = "") -> LintfitError:
        """With the line where the key stands, as far as a search for it can tell."""
        heading = rf"^\s*\[\[?\s*(?:{re.escape(self.prefix)}\.)?{re.escape(name)}\s*\]|"
        after = self.text.find("[[") if where else 0
        if self.prefix and not where:
            after = max(self.text.find(f"[{self.prefix}"), 0)
        found = re.compile(rf"""{heading}^\s*["']?{re.escape(name)}["']?\s*[=.]""", re.MULTILINE).search(
            self.text, after
        )
        place = os.path.relpath(self.path)
        if found:
            line = self.text.count("\n", 0, found.start() + len(found[0]) - len(found[0].lstrip())) + 1
            place = f"{place}:{line}"
        return LintfitError(f"{place}: {message}")


def _shown(value: object) -> str:
    import json

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression over a path with slashes; it also matches everything below a folder."""
    body = pattern.strip("/")
    anchored = "/" in pattern.rstrip("/")
    parts: list[str] = []
    index = 0
    while index < len(body):
        rest = body[index:]
        if rest.startswith("**/"):
            parts.append("(?:[^/]+/)*")
            index += 3
        elif rest.startswith("**"):
            parts.append(".*")
            index += 2
        elif rest[0] == "*":
            parts.append("[^/]*")
            index += 1
        elif rest[0] == "?":
            parts.append("[^/]")
            index += 1
        else:
            parts.append(re.escape(rest[0]))
            index += 1
    start = "" if anchored else "(?:.*/)?"
    return re.compile(f"{start}{''.join(parts)}(?:/.*)?$", re.DOTALL)
