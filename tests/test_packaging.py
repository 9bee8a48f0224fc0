"""What travels: the wheel has what runs, the source archive what the tests need as well."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.plugin.interface import BuilderInterface
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _packed(builder: BuilderInterface) -> set[str]:
    return {file.distribution_path for file in builder.recurse_included_files()}


@pytest.fixture(scope="module")
def source_archive() -> set[str]:
    return _packed(SdistBuilder(str(ROOT)))


def test_the_license_that_is_declared_is_there(source_archive: set[str]) -> None:
    assert (PROJECT["license"], PROJECT["license-files"]) == ("Apache-2.0", ["LICENSE"])
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "LICENSE" in source_archive
    assert WheelBuilder(str(ROOT)).metadata.core.license_files == ["LICENSE"]


def test_the_source_archive_has_what_the_tests_import_and_read(source_archive: set[str]) -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py") if "projects" not in path.parts)
    imported = set(re.findall(r"^(?:from|import) (bench|tools|lintfit|tests)\b", text, re.MULTILINE))
    read = set(re.findall(r'\bROOT / "([^"]+)"', text))
    assert {"bench", "lintfit"} <= imported and "rules" in read
    packed = {path for file in source_archive for path in (file, *map(str, Path(file).parents))}
    assert imported | read <= packed


def test_the_wheel_has_the_rules_and_schemas(tmp_path: Path) -> None:
    packed = zipfile.ZipFile(next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])))
    names = [name for name in packed.namelist() if name.startswith("lintfit/")]
    assert "lintfit/_rules/does-not-fit.md" in names and "lintfit/_schemas/deepspeed.schema.json" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in packed.namelist())


def test_every_name_taken_from_click_is_in_the_oldest_allowed() -> None:
    """``NoArgsIsHelpError`` came with click 8.2; what asks for less installs and does not start."""
    floor = next(requirement for requirement in PROJECT["dependencies"] if requirement.startswith("click"))
    taken = "NoArgsIsHelpError" in (ROOT / "lintfit" / "__main__.py").read_text("utf-8")
    assert not taken or tuple(map(int, floor.removeprefix("click>=").split("."))) >= (8, 2)
