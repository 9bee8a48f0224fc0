"""One training step of every launch of a table of bench/fixes.py, before its plan and with its diff.

python -m bench.fixing.steps CHECKOUTS TABLE --python PYTHON [--only WORD] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.checkouts import checkout
from bench.fixing import carry, commands
from bench.fixing.served import asked
from bench.fixing.trial import OLD, trains

PROBE = Path(__file__).with_name("step_probe.py")


def stepped(
    python: str, root: Path, launch: str, nth: int, gpus: int, work: Path, seconds: float, gpu: str = ""
) -> dict[str, Any]:
    """What the probe says of a launch, from the first of the folders that people start it from in which it steps."""
    script = root / launch
    commands.shims(work / "bin", python, work / "log")
    said: dict[str, Any] = {"stepped": False, "stage": "bash", "error": "no command was started"}
    for folder in dict.fromkeys((root, script.parent, *script.parents)):
        if not folder.is_relative_to(root):
            break
        found = [each for each in commands.started(script, folder, work / "bin", work / "log") if trains(each, folder)]
        if found:
            said = _probed(
                python, {**found[min(nth, len(found) - 1)], "gpus": gpus, "old": gpu.startswith(OLD)}, seconds
            )
        if said["stepped"]:
            break
    return said


def _probed(python: str, command: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    lines, in_time = asked(python, PROBE, command, seconds)
    if not in_time:
        return {"stepped": False, "stage": "time", "error": f"longer than {seconds:.0f} s"}
    answers = [line for line in lines if line.startswith('{"stepped"')]
    if not answers:
        return {"stepped": False, "stage": "probe", "error": "ended: " + "\n".join(lines)[-200:]}
    said: dict[str, Any] = json.loads(answers[-1])
    return said


def patched(root: Path, diff: str) -> None:
    """The diff in the copy. It does not say where a file has no last line end, so that each gets one first."""
    for line in diff.splitlines():
        path = root / line.removeprefix("+++ b/")
        if line.startswith("+++ b/") and path.is_file() and not path.read_bytes().endswith(b"\n"):
            path.write_bytes(path.read_bytes() + b"\n")
    words = ["patch", "-p1", "--silent", "--no-backup-if-mismatch"]
    subprocess.run(words, cwd=root, input=diff + "\n", text=True, check=True, capture_output=True)


def both(
    source: Path, found: Mapping[str, Any], python: str, seconds: float, before: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The step of one row of the table as the launch was (``before``, where that is known), and with its diff."""
    path = found["launch"].rpartition(":")[0]
    with TemporaryDirectory() as folder:
        work, root = Path(folder), Path(folder, "copy")
        carry.copied(source, root)
        before = before or stepped(python, root, path, found.get("nth", 0), found["gpus"], work, seconds)
        said: dict[str, Any] = {"before": before, "after": None}
        if said["before"]["stepped"] and found["written"]:
            patched(root, found["diff"])
            count, gpu = found["gpus"], found["gpu"]
            said["after"] = stepped(python, root, path, found.get("nth", 0), count, work, seconds, gpu)
    return {key: found[key] for key in ("repo", "launch", "gpu", "gpus", "plan")} | said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--python", required=True, help="an interpreter that has the real libraries")
    parser.add_argument("--only", default="", help="launches whose repository or path has this word")
    parser.add_argument("--seconds", type=float, default=60, help="the limit of one step")
    parser.add_argument("--out", type=Path, help="write what was said there, as JSON")
    args = parser.parse_args()
    rows = [row for row in json.loads(args.table.read_text("utf-8")) if row["written"]]
    said = []
    before: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        source, name = checkout(args.checkouts, row["repo"]), (row["repo"], row["launch"])
        if source is None or args.only not in "/".join(name) or not row["launch"].rpartition(":")[0]:
            continue
        if name in before and not before[name]["stepped"]:
            continue
        said.append(both(source, row, args.python, args.seconds, before.get(name)))
        before[name] = said[-1]["before"]
        print(*name, row["gpu"], said[-1]["before"], said[-1]["after"], flush=True)
        if args.out:
            args.out.write_text(json.dumps(said, indent=1), "utf-8")
    made = [each for each in said if each["before"]["stepped"]]
    print(f"launches that step before: {len({(each['repo'], each['launch']) for each in made})}")
    print(f"plans whose launch steps before: {len(made)}; after: {sum(each['after']['stepped'] for each in made)}")


if __name__ == "__main__":
    sys.exit(main())
