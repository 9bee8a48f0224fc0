"""A file of known findings: how many of each rule in each file. What is within the count is not reported.

    {"lintfit_baseline": 1, "findings": {"train.py": {"forced-float32": 1}}}

Paths are relative to the folder of the baseline, files and rules sorted. Only findings at or above ``fail-on`` are
counted: the others change no exit status. Counts do not tell which finding is new; where there are more than counted,
the mildest count as known, and of equal ones those that stand first in the file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.door import MAX_BASELINE
from lintfit.documents.files import write_whole
from lintfit.documents.limits import json_parts
from lintfit.errors import LintfitError
from lintfit.findings.model import Finding
from lintfit.frozen import frozen
from lintfit.options.config import config_for
from lintfit.options.model import Options

VERSION = 1

_MAX_PARTS = 600_000
"""Brackets and colons of a baseline that is still read: three a file and one for each rule, so over 100,000 files."""

Counts = Mapping[str, Mapping[str, int]]
"""By file and rule."""


@frozen
class Split:
    """Findings beyond the baselines, those within, and a line on what a baseline counts and nobody finds any more."""

    left: tuple[Finding, ...]
    known: tuple[Finding, ...]
    notes: tuple[str, ...]


def split(findings: Sequence[Finding], checked: Iterable[Path], options: Options) -> Split:
    """Part the findings by the baselines that govern their files.

    ``checked`` are the files that were looked at: only these can have fewer findings than counted. Raises
    LintfitError for a baseline that cannot be read.
    """
    places: dict[Path, Path] = {}
    for path in dict.fromkeys((*checked, *(finding.place.document.path for finding in findings))):
        baseline = config_for(path, options).baseline
        if baseline is not None:
            places[path] = baseline
    if not places:
        return Split(tuple(findings), (), ())
    known = set(_known(findings, places, options))
    notes = (
        note for baseline in dict.fromkeys(places.values()) for note in _stale(baseline, places, findings, options)
    )
    return Split(
        tuple(finding for finding in findings if finding not in known),
        tuple(finding for finding in findings if finding in known),
        tuple(notes),
    )


def write(
    file: Path,
    findings: Iterable[Finding],
    checked: Iterable[Path],
    options: Options,
    below: Sequence[Path] | None = None,
) -> Split:
    """Count these findings in the file; of files that were not looked at, what it counted before stays.

    The file is written at once, and only below the folders ``below`` (None: anywhere). Raises LintfitError where it
    cannot be read or written.
    """
    findings = tuple(findings)
    counted = tuple(finding for finding in findings if _counts(finding, options))
    looked_at = {_key(path, file) for path in checked}
    kept = {
        name: dict(rules)
        for name, rules in (_read(file) if door.exists(file) else {}).items()
        if name not in looked_at and door.exists(file.parent / name)
    }
    for finding in counted:
        rules = kept.setdefault(_key(finding.place.document.path, file), {})
        rules[finding.rule] = rules.get(finding.rule, 0) + 1
    _write(file, kept, below)
    files = len({finding.place.document.path for finding in counted})
    note = f"{len(counted)} finding{'s' * (len(counted) != 1)} of {files} file{'s' * (files != 1)} counted in {file}"
    return Split(tuple(finding for finding in findings if finding not in counted), counted, (note,))


def _known(findings: Sequence[Finding], places: Mapping[Path, Path], options: Options) -> Iterable[Finding]:
    room: Counter[tuple[Path, str, str]] = Counter()
    for baseline in set(places.values()):
        for name, rules in read(baseline).items():
            for rule, count in rules.items():
                room[baseline, name, rule] = count
    for finding in sorted(findings, key=lambda finding: (finding.severity, finding.place.span.start)):
        governing = places.get(finding.place.document.path)
        if governing is None or not _counts(finding, options):
            continue
        key = governing, _key(finding.place.document.path, governing), finding.rule
        if room[key] > 0:
            room[key] -= 1
            yield finding


def _stale(baseline: Path, places: Mapping[Path, Path], findings: Sequence[Finding], options: Options) -> Iterable[str]:
    looked_at = {_key(path, baseline) for path, governing in places.items() if governing == baseline}
    found = Counter(
        (_key(finding.place.document.path, baseline), finding.rule) for finding in findings if _counts(finding, options)
    )
    stale = [
        (name, rule)
        for name, rules in read(baseline).items()
        for rule, count in rules.items()
        if found[name, rule] < count and (name in looked_at or not door.exists(baseline.parent / name))
    ]
    if stale:
        name, rule = stale[0]
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        shown = os.path.relpath(baseline)
        yield f"{shown} counts more than there is ({name}: {rule}{more}); --write-baseline {shown} lowers it"


def _counts(finding: Finding, options: Options) -> bool:
    return finding.severity >= config_for(finding.place.document.path, options).fail_on.severity


def _key(path: Path, baseline: Path) -> str:
    try:
        relative = os.path.relpath(Path(path).absolute(), Path(baseline).absolute().parent)
    except ValueError:  # another drive on Windows
        relative = str(Path(path).absolute())
    return relative.replace(os.sep, "/")


def read(file: Path) -> Counts:
    """The counts of a baseline. Raises LintfitError where it is missing or no baseline."""
    try:
        return _cached(file, door.state(file).st_mtime_ns)
    except ValueError:
        raise LintfitError(f"{file}: the baseline cannot be read: no file has such a name") from None
    except OSError as error:
        shown = os.path.relpath(file)
        hint = f"; --write-baseline {shown} makes it" if isinstance(error, FileNotFoundError) else ""
        raise LintfitError(f"{shown}: the baseline cannot be read: {(error.strerror or '').lower()}{hint}") from None


@cache
def _cached(file: Path, _: int) -> Counts:
    return _read(file)


def _read(file: Path) -> Counts:
    shown = os.path.relpath(file)
    try:
        text = door.read_regular(file, MAX_BASELINE)
        if json_parts(text) > _MAX_PARTS:
            raise LintfitError(f"{shown}: no baseline: more than {_MAX_PARTS} files and rules")
        content = json.loads(text)
    except OSError as error:
        raise LintfitError(f"{shown}: the baseline cannot be read: {(error.strerror or '').lower()}") from None
    except (ValueError, RecursionError) as error:
        raise LintfitError(f"{shown}: no baseline: not JSON: {error}") from None
    counts = content.get("findings") if isinstance(content, dict) else None
    if (
        not isinstance(counts, dict)
        or content.get("lintfit_baseline") != VERSION
        or not all(map(_whole, counts.values()))
    ):
        raise LintfitError(f"{shown}: no baseline of this version of lintfit; --write-baseline {shown} makes it anew")
    return counts


def _whole(rules: object) -> bool:
    return isinstance(rules, dict) and all(type(count) is int and count > 0 for count in rules.values())


def _write(file: Path, counts: Counts, below: Sequence[Path] | None) -> None:
    ordered = {name: dict(sorted(rules.items())) for name, rules in sorted(counts.items()) if rules}
    text = json.dumps({"lintfit_baseline": VERSION, "findings": ordered}, indent=2, ensure_ascii=False) + "\n"
    write_whole(file, text, below)
