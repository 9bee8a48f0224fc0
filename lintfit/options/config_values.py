"""The keys of a config, and how the value of each is read and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.numerals import natural
from lintfit.documents.patterns import lazy_pattern
from lintfit.errors import LintfitError
from lintfit.frozen import frozen
from lintfit.options.model import MOST_GLOBS, Glob, Margin, selected
from lintfit.severity import FailOn, Severity
from lintfit.suggest import did_you_mean
from lintfit.versions import release

_SIZE = lazy_pattern(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*", re.ASCII)
_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f]")
"""What no name of a file, model or GPU has in it."""
_LARGEST = 2**60
STATED = (
    "torch", "transformers", "trl", "peft", "deepspeed", "accelerate", "bitsandbytes", "liger-kernel", "auto-gptq",
    "gptqmodel", "litgpt",
    "axolotl", "torchtune", "unsloth",
)  # fmt: skip
"""Libraries whose versions may be stated."""
_UNITS = {"": 2**30, "gib": 2**30, "mib": 2**20, "tib": 2**40, "gb": 10**9, "mb": 10**6, "tb": 10**12}


def parse_size(value: object) -> int:
    """Bytes of ``23.7GiB``, ``24GB`` (10^9), ``512 MiB`` or a plain number of GiB. ValueError says what is allowed."""
    expected = 'a size such as "23.7GiB", "24GB" or a number of GiB'
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(expected)
    # An integer may have more digits than Python writes out, and be larger than any float.
    large = isinstance(value, int) and value.bit_length() > _LARGEST.bit_length()
    found = _SIZE.fullmatch(str(value)) if not large else None
    unit = _UNITS.get(found[2].lower()) if found else None
    if not large and (not found or unit is None):
        raise ValueError(expected)
    size = float(found[1]) * unit if found and unit is not None else math.inf
    if not 0 < size < _LARGEST:
        raise ValueError(f"{expected}, more than 0 and less than 1 EiB")
    return int(size)


def parse_margin(value: object) -> Margin:
    """A share of the GPU (``10%``) or a size as :func:`parse_size` reads it. ValueError says what is allowed."""
    text = value.strip() if isinstance(value, str) else ""
    if text.endswith("%"):
        try:
            share = float(text[:-1]) / 100
        except ValueError:
            share = -1
        if not 0 <= share < 1:
            raise ValueError('a share from "0%" to below "100%"')
        return Margin(share=share)
    if text in ("0", "0.0") or (value == 0 and not isinstance(value, (bool, str))):
        return Margin()
    try:
        return Margin(size=parse_size(value))
    except ValueError:
        raise ValueError('a share such as "10%", or a size such as "2GiB"') from None


def _whole(value: object, least: int = 1) -> int:
    if isinstance(value, str):
        value = natural(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**9:
        raise ValueError(f"a whole number of {least} or more")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    if _CONTROL.search(value):
        raise ValueError("a text without control characters")
    return value.strip()


def _severity(value: object) -> Severity:
    try:
        return Severity[str(value).upper()]
    except KeyError:
        raise ValueError('"error", "warning" or "info"') from None


def _fail_on(value: object) -> FailOn:
    if value == "unknown":
        return FailOn(Severity.WARNING, unknown=True)
    try:
        return FailOn(_severity(value))
    except ValueError:
        raise ValueError('"error", "warning", "info" or "unknown"') from None


def texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item for item in value):
        raise ValueError("a list of texts")
    return tuple(value)


def _rules(value: object) -> tuple[str, ...]:
    try:
        selectors = texts(value)
    except ValueError:
        raise ValueError("a list of rule names or codes") from None
    different = tuple(dict.fromkeys(selectors))
    for selector in different:
        _known_rule(selector)
    return different


def _known_rule(selector: str) -> None:
    if selector == "all":
        return
    from lintfit.options.rules_catalog import load_rules

    rules = load_rules()
    if any(selected((selector,), rule.name, rule.code) for rule in rules.values()):
        return

    choices = [text for rule in rules.values() for text in (rule.name, rule.code)]
    raise ValueError(f'rules that exist, and "{selector}" is none{did_you_mean(selector, choices)}')


def _severities(value: object) -> dict[str, Severity]:
    if not isinstance(value, Mapping):
        raise ValueError('a table such as {rule-name = "info"}')
    from lintfit.options.rules_catalog import find

    try:
        return {find(name).name: _severity(severity) for name, severity in value.items()}
    except LintfitError as error:
        raise ValueError(f"names or codes of rules: {error}") from None


def _versions(value: object) -> dict[str, str]:
    """``transformers=4.48.1,deepspeed=0.15.4``, or a table. ValueError says what is allowed."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",")]
        if not all(name.strip() and version.strip("= ") for name, _, version in pairs):
            raise ValueError("name=version pairs such as transformers=4.48.1")
        value = {name.strip(): version.lstrip("=").strip() for name, _, version in pairs}
    if not isinstance(value, Mapping) or not value:
        raise ValueError("name=version pairs such as transformers=4.48.1")
    found = {}
    for name, version in value.items():
        library = name.strip().lower().replace("_", "-")
        if library not in STATED:
            raise ValueError(f"libraries among {', '.join(STATED)}{did_you_mean(library, STATED)}")
        if not isinstance(version, str) or release(version.removeprefix("v")) is None:
            raise ValueError(f"a version such as 4.48.1 for {library}")
        found[library] = version.removeprefix("v")
    return found


@frozen
class Key:
    """One key of the config: the field it sets, how its value is read, and whether a ``[[run]]`` may have it."""

    field: str
    read: Callable[[Any, Path], Any]
    per_run: bool = False


def _model(value: object, root: Path) -> str:
    name = _text(value)
    return str(root / name) if door.is_file(root / name / "config.json") else name


def _per_file(value: object, root: Path) -> tuple[tuple[Glob, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise ValueError('a table such as {"tests/*" = ["rule-name"]}')
    return tuple(zip(_globs([*value], root), map(_rules, value.values()), strict=True))


def _globs(patterns: Sequence[str], root: Path) -> tuple[Glob, ...]:
    if len(patterns) > MOST_GLOBS:
        raise ValueError(
            f"at most {MOST_GLOBS} patterns, not {len(patterns)}: a folder's takes in all that lies below it"
        )
    return tuple(Glob(pattern, root) for pattern in patterns)


KEYS: Mapping[str, Key] = {
    "gpu": Key("gpu", lambda value, _: _text(value), per_run=True),
    "gpus": Key("gpus", lambda value, _: _whole(value), per_run=True),
    "nodes": Key("nodes", lambda value, _: _whole(value), per_run=True),
    "gpu-memory": Key("gpu_memory_bytes", lambda value, _: parse_size(value), per_run=True),
    "host-memory": Key("host_memory_bytes", lambda value, _: parse_size(value), per_run=True),
    "model": Key("model", _model, per_run=True),
    "model-config": Key("model_config", lambda value, root: root / _text(value), per_run=True),
    "seq-len": Key("seq_len", lambda value, _: _whole(value), per_run=True),
    "images": Key("images", lambda value, _: _whole(value, 0), per_run=True),
    "versions": Key("versions", lambda value, _: _versions(value), per_run=True),
    "nvme-path": Key("nvme_path", lambda value, _: _text(value), per_run=True),
    "margin": Key("margin", lambda value, _: parse_margin(value), per_run=True),
    "select": Key("select", lambda value, _: _rules(value)),
    "ignore": Key("ignore", lambda value, _: _rules(value)),
    "per-file-ignores": Key("per_file_ignores", _per_file),
    "exclude": Key("exclude", lambda value, root: _globs(texts(value), root)),
    "fail-on": Key("fail_on", lambda value, _: _fail_on(value)),
    "severity": Key("severities", lambda value, _: _severities(value)),
    "baseline": Key("baseline", lambda value, root: root / _text(value)),
}
"""What a config may say, by key; flags have the same names."""
