"""What all tests have in common: commands that they start keep their bytecode, and no example has a time to keep."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# To compile lintfit anew takes longer than most commands of the tests run, to rewrite the tests' assertions longer than
# most files of tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# On a busy machine an example takes many times as long, one with a process of its own above all.
settings.register_profile("lintfit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lintfit")
# What is installed on the machine that tests is no fact about the projects that are tested.
os.environ.pop("VIRTUAL_ENV", None)


@pytest.fixture(autouse=True)
def nothing_installed_beside_lintfit(monkeypatch: pytest.MonkeyPatch) -> None:
    from lintfit.run import environment

    monkeypatch.setattr(environment, "_own", dict)
