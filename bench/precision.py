"""How many findings on real config files are right: what lintfit reports today against judgements made by hand.

``bench/precision/configs.jsonl`` has one row for each judged finding: a file of the corpus (``file``, checked alone) or
of a repository (``repo``, ``commit``, ``path``, and in ``with`` the launch script that it was checked with), the rule,
the line, ``right``, ``wrong`` or ``arguable``, and the reason. Rows of a finding that is no longer reported stay as
``mended`` where it was wrong; arguable ones count against the precision. Findings without a row are listed.

``bench/precision/findings.jsonl`` are errors and warnings on whole repositories that no rule was tuned on, as
they stood when they were judged (``check . --isolated --gpu "RTX 3090" --gpus 8``), by one ``judge`` or by several who
did not know of each other. It is a record: a wrong one whose cause is mended says
so (``mended``), with a case on the rule's page. ``bench/precision/unseen.jsonl`` fixes the repositories, and their
commits, of the next judgement: nobody looks at them before.

    python -m bench.precision [CHECKOUTS] [--json FILE]

``CHECKOUTS`` holds a folder for each repository, named ``owner+name``, at the commit of its rows; without it only the
corpus is looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lintfit.commands import check  # noqa: E402
from lintfit.findings.model import Finding, Severity  # noqa: E402
from lintfit.options.model import Options  # noqa: E402

TABLE = ROOT / "bench" / "precision" / "configs.jsonl"
CORPUS = ROOT.parent / "shared" / "corpus"
PASSED_OVER = frozenset({"memory-unknown"})
"""What says only that nothing is known about a run: there is nothing to judge."""

Key = tuple[str, str, int]
"""The file, the rule and the line of a finding."""


@dataclass
class Outcome:
    """The judgements of the findings that are reported today, by (rule, severity), and those without one."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        rows = [
            {"rule": rule, "severity": severity, "judgement": judgement, "count": count}
            for (rule, severity, judgement), count in sorted(self.counts.items())
        ]
        day = datetime.now(UTC).date().isoformat()
        return {"date": day, "rows": rows, "mended": dict(sorted(self.mended.items())), "missing": len(self.missing)}


def judgements() -> list[dict[str, Any]]:
    """The rows of the table."""
    return [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]


def _reported(folder: Path, paths: Sequence[str]) -> Iterator[Finding]:
    with chdir(folder):
        result = check.check([Path(path) for path in paths], Options())
        yield from (finding for finding in result.findings if finding.rule not in PASSED_OVER)


def _line(finding: Finding) -> int:
    return finding.place.document.position(finding.place.span.start).line


def corpus() -> Iterator[tuple[Key, Finding]]:
    """What is reported of each file of the corpus alone."""
    for row in map(json.loads, (CORPUS / "index.jsonl").read_text("utf-8").splitlines()):
        path = CORPUS / row["file"]
        for finding in _reported(path.parent, [path.name]):
            yield (row["file"], finding.rule, _line(finding)), finding


def repositories(checkouts: Path, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Key, Finding]]:
    """What is reported of the judged files where they stand, with the launch script that uses them."""
    places = {(row["repo"], row["path"], row.get("with")) for row in rows if "repo" in row}
    for repo, path, partner in sorted(places, key=str):
        folder = checkouts / repo.replace("/", "+")
        if not (folder / path).is_file():
            continue
        for finding in _reported(folder, [path, *([partner] if partner else [])]):
            if finding.place.document.path.as_posix() == path:
                yield (f"{repo}:{path}", finding.rule, _line(finding)), finding


def compare(checkouts: Path | None) -> Outcome:
    """Today's findings against the table."""
    rows = judgements()
    known = {(row.get("file") or f"{row['repo']}:{row['path']}", row["rule"], row["line"]): row for row in rows}
    found = dict(corpus()) if CORPUS.is_dir() else {}
    if checkouts is not None:
        found.update(repositories(checkouts, rows))
    outcome = Outcome()
    for key, finding in found.items():
        row = known.get(key)
        if row is None or row.get("mended"):
            outcome.missing.append(f"{key[0]}:{key[2]} {finding.rule}: {finding.message}")
        else:
            outcome.counts[finding.rule, str(finding.severity.name).lower(), row["judgement"]] += 1
    outcome.mended.update(row["rule"] for row in rows if row.get("mended"))
    return outcome


def precision(counts: Mapping[str, int]) -> float:
    """The share of findings that are right."""
    return counts.get("right", 0) / max(1, sum(counts.values()))


def table(result: Mapping[str, Any]) -> str:
    """The result as Markdown: each severity as a whole, then each rule."""
    names = [severity.name.lower() for severity in sorted(Severity, reverse=True)]
    groups: dict[tuple[str, str], Counter[str]] = {}
    for row in result["rows"]:
        for group in (("all", row["severity"]), (row["rule"], row["severity"])):
            groups.setdefault(group, Counter())[row["judgement"]] += row["count"]
    lines = ["| rule | severity | right | wrong | arguable | precision |", "| --- | --- | --: | --: | --: | --: |"]
    for rule, severity in sorted(groups, key=lambda group: (group[0] != "all", group[0], names.index(group[1]))):
        found = groups[rule, severity]
        cells = " | ".join(str(found[judgement]) for judgement in ("right", "wrong", "arguable"))
        lines.append(f"| {rule} | {severity} | {cells} | {precision(found):.1%} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="?", type=Path)
    parser.add_argument("--json", type=Path, help="write the counts here, for bench.report")
    options = parser.parse_args(arguments)
    outcome = compare(options.checkouts)
    result = outcome.to_json()
    print(table(result))
    print(f"\nwrong before and mended: {dict(outcome.mended)}")
    print("\n".join(["", f"{len(outcome.missing)} findings are not judged:", *outcome.missing]))
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
