"""What the rules call an error in real files, against what DeepSpeed and Accelerate say of them (recorded)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lintfit.checks.helpers.context import FileContext
from lintfit.checks.helpers.registry import run_file_checks
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText
from lintfit.documents.yaml_reader import read_yaml
from lintfit.findings.model import Finding, Severity
from lintfit.run.model import Hardware, Run
from lintfit.sources.accelerate import read_accelerate
from lintfit.sources.deepspeed import read_deepspeed

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here")

CONFIG_RULES = frozenset(
    {"invalid-json", "duplicate-key", "unknown-top-level-key", "unknown-nested-key", "stringly-typed-value"}
    | {"deprecated-key", "invalid-value", "key-inactive-at-stage", "required-or-unknown-key"}
    | {"precision-block-conflict", "batch-triple-inconsistent", "accelerate-yaml-plus-ds-file"}
)
"""The rules of what a parser sees; others speak of what the engine, the model or the memory make of the file."""

SPARED = {
    # Lists for the autotuner, which takes one value of each before any run reads the file: a warning.
    ("deepspeed_history/deepspeedai__DeepSpeed__deepspeed__autotuning__tests__ds_config@1e40ee4a.json", "deepspeed"),
    # Loads, and stops when Accelerator() is made: mixed_precision beside deepspeed_config_file.
    ("accelerate_history/huggingface__diffusers__examples__dreambooth__accelerate_config@3e2595e2.yaml", "accelerate"),
}


def rows(kind: str) -> list[dict[str, Any]]:
    if not CORPUS.is_dir():
        return []
    lines = (CORPUS / "index.jsonl").read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["kind"].startswith(kind)]


def findings(file: str, library: str, version: str | None) -> Iterator[Finding]:
    """The findings of a file of the corpus in a project that asks for one version of the library that reads it."""
    path = CORPUS / file
    text = FileText(path, path.read_text("utf-8-sig"))
    is_json = path.suffix == ".json"
    document = read_json(text) if is_json else read_yaml(text)
    source = None
    if document.root is not None:
        source = read_deepspeed(document) if is_json else read_accelerate(document)
    run = Run("run", (document,), {}, Hardware(), versions={library: version} if version else {})
    yield from run_file_checks(
        FileContext(document, source, (run,), named=True), lambda rule: rule.name in CONFIG_RULES
    )


def rejected(file: str, library: str, version: str | None) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings(file, library, version))


@pytest.mark.parametrize("version", ["0.14.5", "0.16.9", "0.19.8"])
def test_deepspeed(version: str) -> None:
    compared = 0
    for row in rows("deepspeed"):
        verdict = row["oracle"].get(f"deepspeed {version}")
        if verdict is not None and not any(row["file"] == file for file, _ in SPARED):
            assert rejected(row["file"], "deepspeed", version) == (verdict != "ok"), (row["file"], verdict)
            compared += 1
    assert compared > 480


def test_the_newest_is_assumed() -> None:
    compared = 0
    for row in rows("deepspeed"):
        verdict = row["oracle"].get("deepspeed 0.19.8")
        if verdict is not None and not any(row["file"] == file for file, _ in SPARED):
            assert rejected(row["file"], "deepspeed", None) == (verdict != "ok"), (row["file"], verdict)
            compared += 1
    assert compared > 480


def test_accelerate() -> None:
    compared = 0
    for row in rows("accelerate"):
        verdict = row["oracle"].get("accelerate 1.15.0 load")
        if verdict is not None and not any(row["file"] == file for file, _ in SPARED):
            assert rejected(row["file"], "accelerate", "1.15.0") == (verdict != "ok"), (row["file"], verdict)
            compared += 1
    assert compared > 150


def test_what_accelerate_launch_refuses_is_spoken_of() -> None:
    refused = [row["file"] for row in rows("accelerate") if row["oracle"].get("accelerate 1.15.0 launch args")]
    for file in refused:
        # accelerate launch 1.15.0 stops at every SageMaker file (its class lacks a field): no fault of the file.
        if "sagemaker" not in file:
            assert list(findings(file, "accelerate", "1.15.0")), file
    assert len(refused) > 8


def test_spared_files_are_reported() -> None:
    for file, library in SPARED:
        assert list(findings(file, library, None)), file
