"""A second opinion on what tree-sitter cannot parse: that of bash itself, where there is one.

tree-sitter-bash (0.25) refuses 7 of 2,000 scripts that bash takes. ``bash -n`` reads commands and runs none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from lintfit.documents import door, seen

_OTHER_SHELL = re.compile(r"#![^\n]*\b(?:zsh|ksh|fish|t?csh)\b")
_BAD_SUBSTITUTION = re.compile(r"\$\{\w+[^\w:}\-=?+\[#%/^,@~]")
"""``${size*2}``, at which bash stops only when it comes to it."""
_SECONDS = 3


def refuses(text: str, written: str) -> bool:
    """Whether bash would not run this script either; ``written`` is what stands at the place in question."""
    if _OTHER_SHELL.match(text):
        return False
    if _BAD_SUBSTITUTION.search(written):
        return True
    _note_bash()
    bash = shutil.which("bash")
    if bash is None:
        return True
    try:
        done = subprocess.run(
            [bash, "--noprofile", "--norc", "-n"],
            input=text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"),
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env={},
        )
    except (OSError, subprocess.SubprocessError):
        seen.spoil("bash does not answer")
        return True
    return done.returncode != 0


def _note_bash() -> None:
    """Note which bash it is that answers, and where on the PATH there is none before it."""
    if seen.watching is not None:
        for folder in os.get_exec_path():
            if door.is_file(Path(folder, "bash")):
                door.state(Path(folder, "bash"))
