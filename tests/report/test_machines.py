"""The formats that other programs read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import pytest

from lintfit.documents.model import Kind
from lintfit.findings.model import Severity
from lintfit.findings.results import CheckResult
from lintfit.report import REPORTERS, View, render
from lintfit.settings.model import Place
from tests.report import samples
from tests.report.samples import Story

RESULT = Story().result()


def of(name: str, result: CheckResult = RESULT) -> Any:
    return json.loads(render(name, result, View()))


@pytest.mark.parametrize("name", REPORTERS)
def test_every_format_ends_with_a_line_break_also_for_nothing(name: str) -> None:
    for result in (RESULT, CheckResult(), samples.quiet_result()):
        assert render(name, result, View()).endswith("\n")


def test_github() -> None:
    lines = render("github", RESULT, View()).splitlines()
    assert lines[0] == (
        "::warning title=lintfit (unknown-key LF801),file=ds.json,line=4,col=5,endLine=4,endColumn=25::"
        'ds.json:4:5: unknown-key (LF801) DeepSpeed does not know "overlap_comm" here%0A  help: remove it'
    )
    assert lines[1].startswith("::notice ")
    assert lines[2].startswith("::error ")


def test_github_escapes() -> None:
    finding = replace(Story().typo(), message="100 %\nof::it", fix=None)
    finding = replace(finding, place=samples.place(samples.document("a,b:c.json", "x", Kind.JSON), "x"))
    line = render("github", CheckResult(findings=(finding,)), View()).splitlines()[0]
    assert "file=a%2Cb%3Ac.json," in line
    assert line.endswith("100 %25 of::it")


def test_sarif() -> None:
    log = of("sarif")
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert len(result["partialFingerprints"]["lintfit/v1"]) == 32
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert not uri.startswith(("/", "file:"))
    (upcast,) = [result for result in run["results"] if result["ruleId"] == "forced-float32"]
    assert [related["id"] for related in upcast["relatedLocations"]] == [1, 2]
    change = upcast["fixes"][0]["artifactChanges"][0]
    assert change["artifactLocation"] == {"uri": "train.py"}
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 9, "startColumn": 1, "endLine": 10, "endColumn": 1},
            "insertedContent": {"text": "\tpass\n"},
        }
    ]
    assert upcast["level"] == "error"


def test_sarif_tells_of_the_rule_page() -> None:
    finding = replace(Story().typo(), rule="invalid-json", code="LF001")
    rule = of("sarif", CheckResult(findings=(finding,)))["runs"][0]["tool"]["driver"]["rules"][0]
    assert "## Why is this bad?" in rule["help"]["markdown"]
    assert rule["defaultConfiguration"]["level"] == "error"


def test_sarif_of_files_that_could_not_be_read() -> None:
    invocation = of("sarif", CheckResult(errors=("x.json: no such file",)))["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "x.json: no such file"


def test_columns_beyond_ascii() -> None:
    code = samples.document("a b.json", '{"😀é": 1, "k": 2}', Kind.JSON)
    finding = replace(Story().typo(), place=samples.place(code, '"k"'), fix=None)
    result = CheckResult(findings=(finding,))
    location = of("sarif", result)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["region"]["startColumn"] == 12
    assert location["artifactLocation"]["uri"] == "a%20b.json"
    assert of("rdjson", result)["diagnostics"][0]["location"]["range"]["start"]["column"] == 15
    assert of("json", result)["findings"][0]["column"] == 11


def test_fingerprints_stay_while_lines_move() -> None:
    story, moved = Story(), Story()
    moved.config = samples.document("ds.json", "// a comment\n" + samples.CONFIG, Kind.JSON)
    both = [of("gitlab", CheckResult(findings=(s.typo(), s.typo()))) for s in (story, moved)]
    names = [[issue["fingerprint"] for issue in issues] for issues in both]
    assert names[0] == names[1]
    assert len(set(names[0])) == 2


def test_gitlab() -> None:
    issue = of("gitlab")[0]
    assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert issue["severity"] == "major"
    assert issue["location"]["positions"]["begin"] == {"line": 4, "column": 5}


def test_rdjson() -> None:
    diagnostics = of("rdjson")["diagnostics"]
    assert diagnostics[0]["suggestions"] == [
        {"range": {"start": {"line": 4, "column": 5}, "end": {"line": 4, "column": 25}}, "text": ""}
    ]
    assert diagnostics[0]["message"].splitlines()[0].endswith(" (LF801)")
    verdict = next(found for found in diagnostics if found["code"]["value"] == "does-not-fit")
    assert "suggestions" not in verdict, "the plan edits another file"
    assert verdict["message"].endswith("\nshard everything"), "so that the words say what to do"
    upcast = next(found for found in diagnostics if found["code"]["value"] == "forced-float32")
    assert upcast["message"].endswith("The suggestion is unsafe: it may change how the run trains.")


def test_junit() -> None:
    root = ElementTree.fromstring(render("junit", RESULT, View()))
    assert (root.get("tests"), root.get("failures")) == ("4", "3"), "information fails nothing"
    suite = root.find("testsuite[@name='run.sh']")
    assert suite is not None
    assert [case.get("name") for case in suite] == ["launch-remark LF999 (1:27)", "does-not-fit LF901 (1:1)"]
    empty = ElementTree.fromstring(render("junit", CheckResult(), View()))
    assert (empty.get("tests"), empty.get("failures"), empty.get("skipped")) == ("1", "0", "1"), "nothing was judged"
    passed = ElementTree.fromstring(render("junit", samples.quiet_result(), View()))
    assert (passed.get("tests"), passed.get("failures"), passed.get("skipped")) == ("1", "0", "0")


def test_junit_is_well_formed_whatever_a_file_holds() -> None:
    code = samples.document('<&">.json', "x", Kind.JSON)
    finding = replace(
        Story().typo(),
        severity=Severity.WARNING,
        message='\x00 <b> & "quotes" ]]>',
        place=Place(code, samples.Span(0, 1)),
    )
    root = ElementTree.fromstring(render("junit", CheckResult(findings=(finding,)), View()))
    failure = root.find(".//failure")
    assert failure is not None and '<b> & "quotes" ]]>' in str(failure.get("message"))
