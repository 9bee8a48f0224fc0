"""``lintfit estimate --spec``: JSON specs in, estimates out, one process for any number of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lintfit.documents.door import MAX_SPECS, read_stream
from lintfit.errors import LintfitError, shown
from lintfit.frozen import frozen, replace
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB, Spec

OWN_MISTAKE = "spec: lintfit cannot estimate it, and should say why; please report it with the spec"
"""What stands in the place of an estimate where nothing else says why there is none."""


@frozen
class Estimated:
    """One spec and its estimate, or the line that says why there is none."""

    spec: Spec | None = None
    estimate: Estimate | None = None
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """The estimate of the contract, or ``{"error": …}``."""
        return self.estimate.to_json() if self.estimate else {"error": self.error}


def read_specs(source: str) -> tuple[list[object], bool]:
    """The specs of a file (``-``: standard input) and whether they came as an array. Raises LintfitError."""
    name = "standard input" if source == "-" else source
    try:
        raw = _raw(source)
        if len(raw) > MAX_SPECS:
            raise LintfitError(f"{name}: more than {MAX_SPECS >> 20} MiB; give the specs in several files")
        text = raw.decode("utf-8-sig")
        if not text.strip():
            raise LintfitError(f"{name}: empty; a spec is a JSON object, or an array of them")
        twice: list[_StatedTwice] = []
        content = json.loads(text, object_pairs_hook=partial(_stated_once, twice))
    except OSError as error:
        raise LintfitError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LintfitError(f"{name}: not UTF-8") from None
    except json.JSONDecodeError as error:
        more = f"{error.msg}; several specs stand in an array" if error.msg == "Extra data" else error.msg
        raise LintfitError(f"{name}:{error.lineno}:{error.colno}: not JSON: {more}") from None
    except RecursionError:
        raise LintfitError(f"{name}: not JSON that can be read: nested too deeply") from None
    except ValueError:  # Python reads no longer ones (sys.get_int_max_str_digits)
        raise LintfitError(f"{name}: not JSON that can be read: a number has more than 4300 digits") from None
    if isinstance(content, list):
        return [_twice(spec) or spec for spec in content] if twice else content, True
    if twice:
        raise LintfitError(f"{name}: {twice[0].error}")
    if not isinstance(content, dict):
        raise LintfitError(f"{name}: a spec is a JSON object, or an array of them")
    return [content], False


def _raw(source: str) -> bytes:
    """The bytes of a file, and no more of an endless one than says that it is too long."""
    if source == "-":
        if sys.stdin is None:  # started without one (``<&-``)
            raise LintfitError("standard input: cannot be read: it is closed")
        return sys.stdin.buffer.read(MAX_SPECS + 1)
    return read_stream(Path(source), MAX_SPECS + 1)


class _StatedTwice:
    """What stands in the place of an object that states a key twice."""

    def __init__(self, error: str) -> None:
        self.error = error


def _stated_once(twice: list[_StatedTwice], pairs: list[tuple[str, Any]]) -> dict[str, Any] | _StatedTwice:
    """An object's keys and values, as long as every key is there once: nobody knows which of two was meant.

    ``twice`` takes note of every object that is none.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, value in pairs:
            if key in seen:
                error = f"{shown(key)} is stated twice, the second time as {shown(value)}; state it once"
                twice.append(_StatedTwice(error))
                return twice[-1]
            seen.add(key)
    return found


def _twice(value: object) -> _StatedTwice | None:
    """What is stated twice in a value."""
    if isinstance(value, list | dict):
        return next(filter(None, map(_twice, value.values() if isinstance(value, dict) else value)), None)
    return value if isinstance(value, _StatedTwice) else None


def _with_host(spec: Spec, found: Estimate) -> Estimate:
    """The estimate with the host in its verdict, which needs no GPU where the host is too small."""
    there = found.host_capacity_bytes
    if there is None or not found.host_is_short or found.verdict is Verdict.DOES_NOT_FIT or _is_open(spec, found):
        return found
    needed = f"{found.host.peak / GIB:.1f} GiB on each node, of {there / GIB:.1f} GiB"
    line = f"the host decides the verdict: the run needs {needed}"
    return replace(found, verdict=Verdict.DOES_NOT_FIT, assumptions=(*found.assumptions, line))


def _is_open(spec: Spec, found: Estimate) -> bool:
    """Whether something else than the GPU leaves the verdict open."""
    from lintfit.memory.estimator import decided

    return found.verdict is Verdict.UNKNOWN and (found.capacity_bytes is not None or not decided(spec))


def estimate_mapping(mapping: object) -> Estimated:
    """The estimate of one spec in the words of the contract; never raises for a bad one.

    Its verdict is that of the GPU and of the host, where the spec says how much memory that has.
    """
    from lintfit.memory.estimator import estimate
    from lintfit.memory.reading.parse import spec_from_mapping

    if isinstance(mapping, _StatedTwice):
        return Estimated(error=mapping.error)
    if not isinstance(mapping, Mapping):
        return Estimated(error=f"spec: {shown(mapping)} must be a JSON object")
    try:
        spec = spec_from_mapping(mapping)
        return Estimated(spec, _with_host(spec, estimate(spec)))
    except LintfitError as error:
        return Estimated(error=str(error))
    except Exception as error:  # a mistake of this program's own, which may not cost the other specs their estimates
        if os.environ.get("LINTFIT_DEBUG"):
            raise
        return Estimated(error=f"{OWN_MISTAKE} ({type(error).__name__}: {shown(str(error))})")
