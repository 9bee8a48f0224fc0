"""The commands that a shell script starts, with every word as the shell makes it: nothing of them is run."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

LAUNCHERS = ("python", "python3", "torchrun", "deepspeed", "accelerate")
NOTHING = ("rm", "mkdir", "wandb", "pip", "pip3", "conda", "module", "sleep", "git", "wget", "curl", "ln", "cp", "mv",
           "huggingface-cli", "nvidia-smi", "ulimit", "chmod", "tee", "touch", "ray", "ssh", "scp", "kill",
           "pkill")  # fmt: skip
"""What scripts do beside: it must not happen here."""
KEPT = ("dirname", "basename", "date", "seq", "tr", "cut", "head", "tail", "sort", "wc", "cat", "grep", "sed", "awk",
        "realpath", "readlink", "hostname", "bash", "sh", "env", "expr", "shuf", "ls")  # fmt: skip

JOB = {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "job", "SLURM_NNODES": "1", "SLURM_JOB_NUM_NODES": "1",
       "SLURM_NODEID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1", "SLURM_ARRAY_TASK_ID": "0",
       "SLURM_JOB_NODELIST": "localhost", "SLURM_NODELIST": "localhost", "SLURM_CPUS_PER_TASK": "8"}  # fmt: skip
"""What a job of Slurm's finds set."""

_RECORD = """#!{python}
import json, os, sys
if sys.argv[1:2] == ["-c"]:
    print(8 if "device_count" in sys.argv[2] else "")
    sys.exit()
with open({log!r}, "a") as file:
    file.write(json.dumps({{"argv": [os.path.basename(sys.argv[0])] + sys.argv[1:], "cwd": os.getcwd()}}) + "\\n")
"""
_THROUGH = """#!/bin/bash
while [[ "$1" == -* || "$1" == *=* ]]; do shift; done
exec "$@"
"""


def shims(folder: Path, python: str, log: Path) -> None:
    """A folder of programs that write down how they were called."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LAUNCHERS:
        _program(folder / name, _RECORD.format(python=python, log=str(log)))
    for name in NOTHING:
        _program(folder / name, "#!/bin/bash\nexit 0\n")
    for name in ("nohup", "srun", "numactl", "time", "sudo"):
        _program(folder / name, _THROUGH)
    for name in ("uv", "poetry", "pipenv"):
        _program(folder / name, _THROUGH.replace("while", '[[ "$1" == run ]] || exit 0\nshift\nwhile'))
    _program(folder / "scontrol", "#!/bin/bash\necho localhost\n")
    for name in KEPT:
        real = next((each for each in (Path("/bin", name), Path("/usr/bin", name)) if each.exists()), None)
        if real is not None:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(real)


def _program(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def started(script: Path, cwd: Path, folder: Path, log: Path, seconds: float = 20) -> list[dict[str, Any]]:
    """What a shell script starts, in order: ``argv`` and ``cwd`` of each."""
    log.unlink(missing_ok=True)
    text = script.read_text("utf-8", errors="replace")
    for name in re.findall(r"> *\"?([\w.-][\w./-]*)/[^/\s]*", text):  # a log's folder, which mkdir has not made
        (cwd / name).mkdir(parents=True, exist_ok=True)
    environment = {"PATH": str(folder), "HOME": "/nonexistent", "USER": "user", **JOB, **left_open(text)}
    subprocess.run(
        ["/bin/bash", str(script), *["1"] * positions(text)], cwd=cwd, env=environment, timeout=seconds,
        capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if re.search(r"&[ \t]*$", text, re.M):
        time.sleep(0.5)  # it does not wait for what it starts
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def left_open(text: str) -> dict[str, str]:
    """The variables that a script reads and leaves to who starts it, each with a value; not those with a default."""
    read = set(re.findall(r"\$\{?([A-Z][A-Z0-9_]*)\b", text))
    given = set(re.findall(r"\b([A-Z][A-Z0-9_]*)\+?=", text)) | {*JOB, "PATH", "HOME", "USER", "PWD", "BASH_SOURCE"}
    asked = set(re.findall(r"\$\{([A-Z][A-Z0-9_]*)(?::?[-=?+]|\[)|-[nz] \"?\$\{?([A-Z][A-Z0-9_]*)", text))
    free = read - given - {name for names in asked for name in names}
    return {name: "1" for name in free if name not in ("RANDOM", "SECONDS", "LINENO", "CONDA_PREFIX", "PYTHONPATH")}


def positions(text: str) -> int:
    """How many words of its own command a script reads without a default, from the first on."""
    if re.search(r"\$(?:#|\{1:?-)|\bshift\b", text):
        return 0  # it asks how many there are, or takes them apart
    count = 0
    while re.search(rf"\$(?:{count + 1}\b|\{{{count + 1}\}})", text):
        count += 1
    return count


def well_formed(script: Path) -> bool:
    """Whether ``bash -n`` takes a script."""
    return subprocess.run(["/bin/bash", "-n", str(script)], capture_output=True, check=False).returncode == 0
