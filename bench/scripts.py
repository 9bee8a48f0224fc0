"""The rules on real training scripts: every error and warning against what a person who read the code says of it.

``CHECKOUTS`` holds one folder for each repository, named ``owner+name`` or ``owner/name``, at the commit of its rows in
``precision/scripts.jsonl``. Each row is a finding in a Python file, its ``judgement`` *right*, *wrong* or *arguable*,
and the reason. Rows marked ``mended`` were wrong once and must not come back.

    python bench/scripts.py CHECKOUTS [REPOSITORY ...]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lintfit.commands.check import check  # noqa: E402
from lintfit.findings.model import Finding, Severity  # noqa: E402
from lintfit.options.model import Options  # noqa: E402

TABLE = ROOT / "bench" / "precision" / "scripts.jsonl"
FORCED = "forced-float32"


@dataclass(frozen=True, slots=True, order=True)
class Spoken:
    """A finding by where it stands."""

    repo: str
    path: str
    rule: str
    line: int


def rows() -> list[dict[str, Any]]:
    """The table of judgements."""
    return [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]


def checkout(folder: Path, repo: str) -> Path | None:
    """Where a repository's files are, None where they are not there."""
    found = (folder / name for name in (repo.replace("/", "+"), repo))
    return next((path for path in found if path.is_dir()), None)


def key(row: Mapping[str, Any]) -> Spoken:
    """Where the finding of a row stands."""
    return Spoken(row["repo"], row["path"], row["rule"], row["line"])


def spoken(repo: str, root: Path, paths: Iterable[str] = ()) -> Iterator[tuple[Spoken, Severity]]:
    """The errors and warnings in Python files: of the whole repository, and of each of these scripts on its own."""
    with chdir(root):
        for each in (".", *paths):
            for finding in check([Path(each)], Options(isolated=True)).findings:
                if finding.severity >= Severity.WARNING and finding.place.document.path.suffix == ".py":
                    yield _spoken(repo, finding), finding.severity


def _spoken(repo: str, finding: Finding) -> Spoken:
    document = finding.place.document
    return Spoken(repo, document.path.as_posix(), finding.rule, document.position(finding.place.span.start).line)


def float_calls(repo: str, root: Path) -> tuple[int, set[Spoken]]:
    """How many ``.float()`` calls the Python files of a repository have, and which of them are reported."""
    texts = {path: path.read_text("utf-8", errors="replace") for path in root.rglob("*.py")}
    reported: set[Spoken] = set()
    with chdir(root):
        for path in sorted(path for path, text in texts.items() if ".float()" in text):
            name = path.relative_to(root)
            for finding in check([name], Options(isolated=True)).findings:
                where = _spoken(repo, finding)
                if where.rule == FORCED and ".float()" in finding.place.text and where.path == name.as_posix():
                    reported.add(where)
    return sum(text.count(".float()") for text in texts.values()), reported


def _judged(found: Mapping[Spoken, Severity], table: Mapping[Spoken, Mapping[str, Any]]) -> list[str]:
    """A Markdown table of the judgements by rule, the errors and the warnings together, and what nobody has judged."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    lines: list[str] = []
    for where, severity in sorted(found.items()):
        judgement = table[where]["judgement"] if where in table else "not judged"
        for name in (where.rule, "all"):
            counts.setdefault((str(severity), name), Counter())[judgement] += 1
        if judgement in ("not judged", "wrong"):
            lines.append(f"{judgement}: {where.repo} {where.path}:{where.line} {severity} {where.rule}")
    lines += ["| severity | rule | right | arguable | wrong | not judged |", "| --- | --- | --: | --: | --: | --: |"]
    for (level, rule), each in sorted(counts.items()):
        cells = " | ".join(str(each[name]) for name in ("right", "arguable", "wrong", "not judged"))
        lines.append(f"| {level} | {rule} | {cells} |")
    return lines


def main() -> int:
    """Compare, print the table, and say what is new or has come back."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("repositories", nargs="*")
    options = parser.parse_args()
    table = {key(row): row for row in rows()}
    found: dict[Spoken, Severity] = {}
    for repo in options.repositories or sorted({row["repo"] for row in rows()}):
        root = checkout(options.checkouts.resolve(), repo)
        if root is None:
            print(f"absent: {repo}")
            continue
        own = sorted({where.path for where in table if where.repo == repo})
        for where, severity in spoken(repo, root, own):
            found[where] = max(severity, found.get(where, severity))
    print("\n".join(_judged(found, table)))
    missing = [where for where, row in table.items() if where not in found and row["judgement"] == "right"]
    silent = [where for where in missing if not options.repositories or where.repo in options.repositories]
    for where in silent:
        print(f"no longer reported: {where.repo} {where.path}:{where.line} {where.rule}")
    returned = [where for where in found if where in table and table[where].get("mended")]
    return 1 if returned or silent else 0


if __name__ == "__main__":
    sys.exit(main())
