"""What ``lintfit check`` says of real out-of-memory threads, rebuilt as folders, against what happened.

python -m bench.threads FILE [--only ID]... [--show]

FILE holds one JSON object a line: ``id``, ``outcome`` (``oom``, ``oom-at-save``, ``host-oom``, ``ran``), ``front_end``,
``model_hint`` (stated with ``--model`` where the thread names the model in its words) and ``files``, by name. A run is
answered where its verdict is not ``unknown``; the answer is wrong where a death ``fits`` or a run that ended well
``does-not-fit``. Of several runs in a folder the worst for a death, the best for a survivor counts: the thread does
not say which it was. ``tight`` is wrong for neither.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lintfit.cli.main import lintfit as cli

_WORST = ("does-not-fit", "tight", "fits", "unknown")
_BEST = ("fits", "tight", "does-not-fit", "unknown")
_RIGHT = {"ran": ("fits", "tight")}
_DEATH = ("does-not-fit", "tight")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="ID")
    parser.add_argument("--show", action="store_true", help="print the text report of each thread")
    arguments = parser.parse_args()
    threads = [json.loads(line) for line in arguments.file.read_text(encoding="utf-8").splitlines()]
    answered = wrong = 0
    chosen = [thread for thread in threads if not arguments.only or thread["id"] in arguments.only]
    for thread in chosen:
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
