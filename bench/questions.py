"""Twenty questions from public threads, each with the one command that should answer it.

``bench/questions.jsonl`` has a question a line, in our own words: its ``source``, what is asked (``question``), what
the thread states (``settings``, ``files``), and the ``answer`` that a maintainer would give, worked out by hand before
any command was run. ``says`` are patterns that the output has to match, each of them, and ``figures`` are amounts with
the GiB between which one has to stand there. Both are necessary, not sufficient: whether a maintainer could paste the
output as the answer is for a reader to say. ``blind`` is what a reader said of the first output, ``now`` of the one
after what was missing had been mended (with ``command`` as it is now; ``blind`` has its own where that was another).
``second`` is what another reader said of that one, who knew neither the code nor the first reader's word.

    python -m bench.questions               the table
    python -m bench.questions --show ID     one question: what is asked, the answer, and what lintfit prints
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = ROOT / "bench" / "questions.jsonl"
BAR = 16
"""Of the twenty, how many are to be answered."""
_GIB = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*(?:of \d[\d,.]*\s*)?(?:GiB|\(|−|\+|│|$)", re.M)
"""A figure as reports write it: with its unit, in a table's cell, or before ``of 79.1 GiB``."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a command printed, and which of the expected words and figures are not in it."""

    question: Mapping[str, Any]
    output: str
    missing: tuple[str, ...]


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]


def answered(question: Mapping[str, Any]) -> Answered:
    output = _output(question) if question["command"] else ""
    flat = " ".join(output.split())
    said = [pattern for pattern in question["says"] if not re.search(pattern, flat, re.I)]
    amounts = [float(text.replace(",", "")) for text in _GIB.findall(output)]
    figures = [what for what, low, high in question["figures"] if not any(low <= amount <= high for amount in amounts)]
    return Answered(question, output, (*said, *figures))


def _output(question: Mapping[str, Any]) -> str:
    """What lintfit prints for a question's files, in a folder that has nothing else."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "110", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in question["files"].items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        command = [sys.executable, "-m", "lintfit", *question["command"]]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def table(answers: Sequence[Answered]) -> str:
    lines = [f"{'question':<24}{'kind':<22}{'blind':<7}{'now':<5}missing in the output"]
    for each in answers:
        row = each.question
        marks = (_mark(row["blind"]), _mark(row["now"]))
        missing = ", ".join(each.missing) or "-"
        lines.append(f"{row['id']:<24}{row['kind']:<22}{marks[0]:<7}{marks[1]:<5}{missing}")
    for name in ("blind", "now", "second"):
        right = sum(bool((read := each.question.get(name)) and read["answers"]) for each in answers)
        lines.append(f"{name}: {right} of {len(answers)} answered, by one reader (bar {BAR})")
    whole = sum(not each.missing for each in answers)
    lines.append(f"all that is expected is printed for {whole} of {len(answers)}")
    return "\n".join(lines)


def _mark(read: Mapping[str, Any] | None) -> str:
    return "-" if read is None else "yes" if read["answers"] else "no"


def shown(each: Answered) -> str:
    row = each.question
    command = "lintfit " + " ".join(row["command"]) if row["command"] else "none"
    parts = [
        f"{row['id']}: {row['question']}",
        f"from {row['source']}",
        f"stated: {row['settings']}",
        f"a maintainer's answer: {row['answer']}",
        f"$ {command}",
        each.output,
        f"missing: {', '.join(each.missing) or 'nothing'}",
    ]
    parts += [f"read {name}: {_mark(row[name])}, {row[name]['why']}" for name in ("blind", "now") if row[name]]
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.questions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--show", metavar="ID", help="one question with what is printed for it")
    args = parser.parse_args(argv)
    asked = [row for row in questions() if args.show in (None, row["id"])]
    answers = [answered(row) for row in asked]
    print("\n\n".join(shown(each) for each in answers) if args.show else table(answers))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
