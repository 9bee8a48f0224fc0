from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lintfit.checks.helpers.registry import module_of, rules_for
from lintfit.commands.check import check
from lintfit.findings.model import Applicability, Severity
from lintfit.options.model import Options
from lintfit.options.rules_catalog import load_rules

HEAVY = ("libcst", "rich", "ruamel", "tree_sitter", "jsonschema")


def test_every_rule_has_a_check() -> None:
    for name in load_rules():
        module = module_of(name)
        assert {"check_file", "check_run", "check_unused"} & set(vars(module)), name


def test_rules_are_chosen_by_what_is_there() -> None:
    names = {rule.name for rule, _ in rules_for({"accelerate"})}
    assert {"accelerate-yaml-plus-ds-file", "does-not-fit"} <= names
    assert not names & {"removed-argument", "unknown-top-level-key"}


def test_rules_about_a_training_are_asked_of_a_recipe() -> None:
    of_recipes = {rule.name for rule, _ in rules_for({"training", "launcher"})}
    assert {"gradient-checkpointing-off", "full-precision-training"} <= of_recipes
    assert not of_recipes & {"forced-float32", "removed-argument"}


def test_rules_that_are_not_wanted_are_not_imported() -> None:
    assert rules_for({"deepspeed"}, lambda rule: False) == []


def test_a_config_needs_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from lintfit.checks.helpers.registry import rules_for\n"
        "rules_for({'deepspeed', 'accelerate', 'training', 'launcher'})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"


def test_a_fix_of_information_waits_however_bad_the_user_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "accelerate.yaml"
    config.write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nfp16: true\nnum_processes: 8\n")
    options = Options(isolated=True, severities={"deprecated-key": Severity.ERROR}, fix=True)
    before = config.read_text()
    (finding,) = check([config], options).findings
    assert finding.severity is Severity.ERROR
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert finding.fix.why_unsafe == "nothing here has to be mended"
    assert config.read_text() == before
