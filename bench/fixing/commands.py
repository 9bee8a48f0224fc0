"""The commands that a shell script starts, with every word as the shell makes it: nothing of them is run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

LAUNCHERS = ("python", "python3", "torchrun", "deepspeed", "accelerate")
NOTHING = ("rm", "mkdir", "wandb", "pip", "pip3", "conda", "module", "sleep", "git", "wget", "curl", "ln", "cp", "mv",
           "huggingface-cli", "nvidia-smi", "ulimit", "chmod", "tee", "touch", "ray", "ssh", "scp", "kill",
           "pkill")  # fmt: skip
"""What scripts do beside: it must not happen here."""
KEPT = ("dirname", "basename", "date", "seq", "tr", "cut", "head", "tail", "sort", "wc", "cat", "grep", "sed", "awk",
        "realpath", "readlink", "hostname", "bash", "sh", "env", "expr", "shuf", "ls")  # fmt: skip

_RECORD = """#!{python}
import json, os, sys
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
    environment = {"PATH": str(folder), "HOME": "/nonexistent", "USER": "user"}
    subprocess.run(
        ["/bin/bash", str(script)], cwd=cwd, env=environment, timeout=seconds, capture_output=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def well_formed(script: Path) -> bool:
    """Whether ``bash -n`` takes a script."""
    return subprocess.run(["/bin/bash", "-n", str(script)], capture_output=True, check=False).returncode == 0
