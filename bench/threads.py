"""What ``lintfit check`` says of real out-of-memory threads, rebuilt as folders, against what happened.

python -m bench.threads FILE [--only ID]... [--show] [--checkouts DIR]

FILE holds one JSON object a line: ``id``, ``outcome`` (``oom``, ``oom-at-save``, ``host-oom``, ``ran``), ``front_end``,
``model_hint`` (stated with ``--model`` where the thread names the model in its words) and ``files``, by name. A run is
answered where its verdict is not ``unknown``; the answer is wrong where a death ``fits`` or a run that ended well
``does-not-fit``. Of several runs in a folder the worst for a death, the best for a survivor counts: the thread does
not say which it was. ``tight`` is wrong for neither.

``thread_scripts.jsonl`` says which files of which commit a thread's run has beside those of its line: ``repo``,
``commit``, ``paths`` (files, and folders with all in them) and ``strip``, a folder that their names lose. With
``--checkouts DIR`` they are read from the repositories there, bare ones as ``owner+name/repo`` or clones as
``owner+name``. A file that the thread has itself is its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bench.checkouts import files_at
from lintfit.cli.main import lintfit as cli

_SCRIPTS = Path(__file__).parent / "thread_scripts.jsonl"
_WORST = ("does-not-fit", "tight", "fits", "unknown")
_BEST = ("fits", "tight", "does-not-fit", "unknown")
_RIGHT = {"ran": ("fits", "tight")}
_DEATH = ("does-not-fit", "tight")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="ID")
    parser.add_argument("--show", action="store_true", help="print the text report of each thread")
    parser.add_argument("--checkouts", type=Path, metavar="DIR", help="take the repositories' scripts from here")
    arguments = parser.parse_args()
    threads = _lines(arguments.file)
    answered = wrong = 0
    chosen = [thread for thread in threads if not arguments.only or thread["id"] in arguments.only]
    for thread in chosen:
        if arguments.checkouts:
            _complete(thread, arguments.checkouts)
        verdict, why = _said(thread, arguments.show)
        right = verdict in _RIGHT.get(thread["outcome"], _DEATH)
        answered += verdict != "unknown"
        wrong += verdict != "unknown" and not right
        mark = "?" if verdict == "unknown" else "+" if right else "-"
        print(f"{mark} {thread['id']:16} {thread['outcome']:12} {verdict:13} {thread['front_end']}")
        if why:
            print(f"      {why}")
    print(f"{len(chosen)} threads: {answered} answered, {wrong} of them wrong")
    return 0


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _complete(thread: dict[str, Any], folder: Path) -> None:
    """The thread with the scripts of its repository."""
    for row in _lines(_SCRIPTS):
        if row["id"] == thread["id"]:
            found = files_at(folder, row["repo"], row["commit"], row["paths"])
            prefix = f"{row['strip']}/" if "strip" in row else ""
            thread["files"] = {name.removeprefix(prefix): text for name, text in found.items()} | thread["files"]


def _said(thread: dict[str, Any], show: bool) -> tuple[str, str]:
    """The verdict on a thread, and why there is none where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in thread["files"].items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        hint = ["--model", thread["model_hint"]] if thread["model_hint"] else []
        arguments = ["check", folder, "--exit-zero", *hint]
        if show:
            print(CliRunner().invoke(cli, arguments).stdout.replace(f"{folder}/", ""))
        report = json.loads(CliRunner().invoke(cli, [*arguments, "--output-format", "json"]).stdout)
    runs = report["runs"]
    order = _BEST if thread["outcome"] == "ran" else _WORST
    verdicts = sorted((run["verdict"] for run in runs), key=order.index)
    if verdicts and verdicts[0] != "unknown":
        return verdicts[0], ""
    reasons = [reason for run in runs for reason in run.get("unknown", [])]
    reasons += [f"skipped {each['path']}: {each['reason']}" for each in report["skipped"]]
    return "unknown", " | ".join(dict.fromkeys(reasons)).replace(f"{folder}/", "")[:600] or "no run"


if __name__ == "__main__":
    raise SystemExit(main())
