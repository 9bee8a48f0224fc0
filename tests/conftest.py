"""What all tests have in common: commands that they start keep their bytecode, and no example has a time to keep."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

# To compile lintfit anew takes longer than most commands of the tests run, to rewrite the tests' assertions longer than
# most files of tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# On a busy machine an example takes many times as long, one with a process of its own above all.
settings.register_profile("lintfit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lintfit")
