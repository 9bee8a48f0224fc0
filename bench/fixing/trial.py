"""One launch before and after: what it starts, and what the real parsers say of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.fixing import commands
from bench.fixing.served import asked

PROBE = Path(__file__).with_name("parse_probe.py")


OLD = ("v100", "t4", "p100", "titan-rtx", "rtx-20", "rtx-6000-turing")
"""How the names of GPUs older than Ampere begin."""


def probed(python: str, command: Mapping[str, Any], seconds: float = 150) -> dict[str, Any]:
    """What the probe says of a command: ``parsed``, and ``error`` with the ``stage`` where not."""
    lines, in_time = asked(python, PROBE, command, seconds)
    if not in_time:
        return {"parsed": False, "stage": "time", "error": f"longer than {seconds:.0f} s"}
    answers = [line for line in lines if line.startswith('{"parsed"')]
    said: dict[str, Any] = json.loads(answers[-1]) if answers else {"parsed": False, "stage": "probe", "error": "ended"}
    if not said.get("parsed"):
        said["stderr"] = "\n".join(line for line in lines if line not in answers)[-600:]
    return said


def said_of(python: str, root: Path, launch: str, nth: int, gpus: int, work: Path, gpu: str = "") -> dict[str, Any]:
    """What a launch comes to as the copy stands: from the folders that people start it from, the first that parses.

    The GPUs are new where ``gpu`` is not said.
    """
    script = root / launch
    if script.suffix in (".yaml", ".yml", ".toml", ".json"):
        return {"parsed": False, "stage": "no parser"}
    if not commands.well_formed(script):
        return {"parsed": False, "stage": "bash -n"}
    on = {"gpus": gpus, "old": gpu.startswith(OLD)}
    log = work / "commands.jsonl"
    commands.shims(work / "bin", python, log)
    said: dict[str, Any] = {"parsed": False, "stage": "bash", "error": "no command was started"}
    for folder in dict.fromkeys((root, script.parent, *script.parents)):
        if not folder.is_relative_to(root):
            break
        try:
            found = [each for each in commands.started(script, folder, work / "bin", log) if trains(each, folder)]
        except subprocess.TimeoutExpired:
            return {"parsed": False, "stage": "bash", "error": "the shell script does not end"}
        if not found:
            continue
        said = {**probed(python, {**found[min(nth, len(found) - 1)], **on}), "cwd": folder.relative_to(root).as_posix()}
        if said["parsed"]:
            break
    return said


def trains(command: Mapping[str, Any], folder: Path) -> bool:
    """Whether a command names a script that is there (from the folder that it is started in)."""
    words = [word for word in command["argv"][1:] if word.endswith(".py")]
    return (bool(words) and (Path(command["cwd"]) / words[0]).is_file()) or "-m" in command["argv"]
