"""The JSON contract, key by key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lintfit import __version__
from lintfit.findings.results import CheckResult
from lintfit.report import View, render
from lintfit.report.json import plain
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.settings.values import Fsdp
from tests.report import samples
from tests.report.samples import Story


@pytest.fixture
def result() -> Any:
    return json.loads(render("json", Story().result(), View()))


def test_keys_and_their_order(result: Any) -> None:
    assert list(result) == ["schema_version", "lintfit_version", "runs", "findings", "skipped", "summary"]
    assert (result["schema_version"], result["lintfit_version"]) == (1, __version__)
    assert list(result["runs"][0]) == ["id", "documents", "settings", "estimate", "verdict", "unknown", "plan"]
    assert list(result["findings"][0]) == [
        *("rule", "code", "severity", "message", "path", "line", "column", "end_line", "end_column"),
        *("related", "run", "fix"),
    ]
    counts = {"errors": 2, "warnings": 1, "infos": 1, "fixed": 0, "ignored": 0, "baselined": 0, "refused_fixes": 0}
    counts |= {"runs": {"fits": 0, "tight": 0, "does-not-fit": 1, "unknown": 0}, "files": 3, "skipped": 0}
    assert result["summary"] == counts


def test_settings_say_where_they_come_from(result: Any) -> None:
    settings = result["runs"][0]["settings"]
    assert settings["zero_stage"] == {
        "value": 2,
        "from": {"kind": "file", "path": "ds.json", "line": 3, "column": 14},
    }
    assert settings["model"]["from"] == {"kind": "option", "detail": "--model"}
    assert settings["micro_batch_size"] == {
        "value": "auto",
        "from": {"kind": "default", "detail": "transformers 4.48"},
    }
    assert settings["learning_rate"]["value"] is None
    assert settings["lora_targets"]["value"] == ["q_proj", "v_proj"]


def test_finding(result: Any) -> None:
    (finding,) = [found for found in result["findings"] if found["rule"] == "forced-float32"]
    start = samples.SCRIPT.index("\tmodel = model.float()")
    assert (finding["line"], finding["column"], finding["end_line"], finding["end_column"]) == (9, 10, 9, 23)
    assert finding["related"][1] == {
        "path": "ds.json",
        "line": 3,
        "column": 14,
        "message": "ZeRO-2 keeps all weights on every GPU",
    }
    assert finding["fix"] == {
        "applicability": "unsafe",
        "message": "delete the cast",
        "edits": [{"path": "train.py", "start": start, "end": start + 23, "text": "\tpass\n"}],
    }
    assert finding["run"] == "run.sh:1"
    assert result["findings"][0]["run"] is None


def test_plan(result: Any) -> None:
    plan = result["runs"][0]["plan"]
    assert list(plan) == [
        "applicability",
        "steps",
        "estimate",
        "verdict",
        "relative_step_time",
        "name",
        "effects",
        "files",
        "proof",
    ]
    assert plan["steps"] == [{"setting": "zero_stage", "from": 2, "to": 3, "path": "ds.json"}]
    assert (plan["verdict"], plan["relative_step_time"]) == ("fits", 1.3)


def test_components_add_up(result: Any) -> None:
    estimate = result["runs"][0]["estimate"]
    assert sum(estimate["components"].values()) == estimate["peak_bytes"]["likely"]


def test_a_run_without_estimate() -> None:
    bare = replace(samples.quiet_result().runs[0], estimate=None, verdict=samples.Verdict.UNKNOWN)
    run = json.loads(render("json", CheckResult(runs=(bare,)), View()))["runs"][0]
    assert (run["estimate"], run["verdict"], run["plan"]) == (None, "unknown", None)


def test_paths_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    story = Story()
    story.config = samples.document(str(tmp_path / "ds.json"), samples.CONFIG, samples.Kind.JSON)
    found = json.loads(render("json", CheckResult(findings=(story.typo(),)), View()))["findings"][0]
    assert found["path"] == "../ds.json"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (AUTO, "auto"),
        (UNKNOWN, None),
        (True, True),
        (1.5, 1.5),
        (float("inf"), "inf"),
        (("a", 1), ["a", 1]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"a": (UNKNOWN,)}, {"a": [None]}),
        (
            Fsdp(),
            {
                "version": 1,
                "strategy": "FULL_SHARD",
                "cpu_offload": False,
                "replicas": 1,
                "auto_wrap": True,
                "adapters_apart": True,
            },
        ),
    ],
)
def test_plain_values(value: object, shown: object) -> None:
    assert plain(value) == shown
    json.dumps(plain(value), allow_nan=False)


def test_any_text_is_valid_json_and_ascii() -> None:
    finding = replace(Story().typo(), message="名前 \udcff \x00")
    text = render("json", CheckResult(findings=(finding,)), View())
    assert text.isascii()
    assert json.loads(text)["findings"][0]["message"] == finding.message
