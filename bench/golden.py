"""What lintfit says of many inputs, to be held against what it says after its code was rearranged.

python -m bench.golden record DIR [--trees FOLDER]   write what lintfit says now, one JSON a case
python -m bench.golden compare DIR [--trees FOLDER]  say it again and print what differs; exit status 1 for a difference

A case is a folder (of ``examples``, ``tests/projects``, and every folder below ``--trees``: checkouts of public
repositories) with its JSON report and the diff of all its fixes, or a batch of specs with their estimates. Estimates
may move by ``TOLERANCE``; all else is equal to the letter. ``timings.json`` holds processor time of whole processes as
multiples of ``python -c pass``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.speed import ROOT, measured, planned

TOLERANCE = 0.005
"""Share by which an amount of memory may move: the least that moves a realistic run's verdict."""
SPECS = 1000
FLAGS = ("--gpu", "RTX 3090")
_SHOWN = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trees", type=Path, help="a folder of checkouts")
    parser.add_argument("--only", help="part of the names of the cases to look at")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    cases = {name: case for name, case in _cases(given.trees) if given.only is None or given.only in name}
    with ProcessPoolExecutor(given.jobs) as pool:
        said = dict(zip(cases, pool.map(_say, cases.values()), strict=True))
    if given.only is None:
        said["timings"] = _timings()
    if given.what == "record":
        given.folder.mkdir(parents=True, exist_ok=True)
        for name, report in said.items():
            (given.folder / f"{name}.json").write_text(json.dumps(report, indent=1, sort_keys=True))
        return 0
    return _compare(given.folder, said)


def _cases(trees: Path | None) -> Iterator[tuple[str, list[Any] | str]]:
    folders = [*(ROOT / "examples").iterdir(), *(path / "input" for path in (ROOT / "tests" / "projects").iterdir())]
    for folder in sorted(filter(Path.is_dir, folders)):
        yield f"tree.{folder.relative_to(ROOT).as_posix().replace('/', '.')}", str(folder)
    for folder in sorted(trees.iterdir()) if trees is not None else ():
        yield f"tree.{folder.name}", str(folder)
    yield "specs.planned", planned(SPECS)
    yield "specs.measured", measured(SPECS)


def _say(case: list[Any] | str) -> Any:
    if isinstance(case, str):
        with tempfile.TemporaryDirectory() as folder:
            # Apart from this repository, whose code would count as the tree's.
            tree = str(shutil.copytree(case, Path(folder) / "tree", symlinks=True))
            report, _ = _lintfit("check", ".", *FLAGS, "--output-format", "json", cwd=tree)
            fixes, _ = _lintfit("check", ".", *FLAGS, "--unsafe-fixes", "--diff", cwd=tree)
        return {"report": _json(report), "fixes": fixes}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(case, file)
        file.flush()
        return _json(_lintfit("estimate", "--spec", file.name, cwd=str(ROOT))[0])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _lintfit(*arguments: str, cwd: str) -> tuple[str, float]:
    """Standard output of the command line, run from this checkout, and its seconds of processor time."""
    return _process([sys.executable, "-m", "lintfit", *arguments], cwd)


def _process(command: list[str], cwd: str) -> tuple[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode == 2:
        return f"{done.stdout}{done.stderr}", 0.0
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _timings() -> dict[str, float]:
    """Processor time of a config and of a thousand specs, as multiples of an interpreter that does nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(planned(SPECS), file)
        file.flush()
        commands = {
            "config": ["check", str(ROOT / "examples" / "minicpm-v" / "ds_config_zero2.json")],
            "specs": ["estimate", "--spec", file.name],
        }
        empty = min(_process([sys.executable, "-c", "pass"], str(ROOT))[1] for _ in range(9))
        return {
            name: round(min(_lintfit(*command, cwd=str(ROOT))[1] for _ in range(5)) / empty, 2)
            for name, command in commands.items()
        }


def _compare(folder: Path, said: dict[str, Any]) -> int:
    different = 0
    for name, now in said.items():
        file = folder / f"{name}.json"
        before = json.loads(file.read_text()) if file.exists() else None
        if name == "timings":
            print(f"timings, multiples of python -c pass: {before} before, {now} now")
            continue
        found = list(_differences(before, now, ""))
        different += bool(found)
        for line in found[:_SHOWN]:
            print(f"{name}: {line}")
        if len(found) > _SHOWN:
            print(f"{name}: … and {len(found) - _SHOWN} more")
    print(f"{different} of {len(said)} cases differ")
    return int(different > 0)


def _differences(before: Any, now: Any, place: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in _keys(before, now):
            if key not in now:
                yield f"{place}.{key} is gone: {_short(before[key])}"
            elif key not in before:
                yield f"{place}.{key} is new: {_short(now[key])}"
            else:
                yield from _differences(before[key], now[key], f"{place}.{key}")
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{place}: {len(before)} items before, {len(now)} now"
        for index, (old, new) in enumerate(zip(before, now, strict=False)):
            yield from _differences(old, new, f"{place}[{index}]")
    elif isinstance(before, str) and isinstance(now, str) and "\n" in before:
        yield from _lines(before, now, place)
    elif before != now and not _close(before, now):
        yield f"{place}: {_short(before)} → {_short(now)}"


def _keys(before: dict[str, Any], now: dict[str, Any]) -> Iterable[str]:
    return dict.fromkeys((*before, *now))


def _lines(before: str, now: str, place: str) -> Iterator[str]:
    import difflib

    for line in difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0):
        if line[:1] in "+-" and line[:3] not in ("+++", "---"):
            yield f"{place}: {line}"


def _close(before: Any, now: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, now))
    return numbers and max(before, now) > 2**20 and abs(now - before) <= TOLERANCE * max(abs(before), abs(now))


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


if __name__ == "__main__":
    sys.exit(main())
