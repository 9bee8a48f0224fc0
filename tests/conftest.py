"""Commands that tests start keep their bytecode: to compile lintfit anew takes longer than most of them run."""

from __future__ import annotations

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
