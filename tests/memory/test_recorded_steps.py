"""Steps and evaluations of small models as torch counted them (``tests/recordings/``, ``bench/record.py``)."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bench import record
from bench.record import Case
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping


@pytest.mark.parametrize("case", record.cases("steps"), ids=str)
def test_a_step(case: Case) -> None:
    """The peak of a whole step."""
    found = estimate(spec_from_mapping(case.spec)).allocated_bytes
    assert found == pytest.approx(case.bytes, rel=case.within)


@pytest.mark.parametrize("case", record.cases("phases"), ids=str)
def test_a_phase(case: Case) -> None:
    """The peak of a phase of a step."""
    moments = estimate(spec_from_mapping(case.spec)).moments
    found = max(moment.allocated for moment in moments if moment.phase == case.phase)
    assert found == pytest.approx(case.bytes, rel=case.within)


@pytest.mark.parametrize("case", record.cases("evaluations"), ids=str)
def test_an_evaluation(case: Case) -> None:
    """The peak of an evaluation between two steps."""
    moments = estimate(spec_from_mapping(case.spec)).moments
    found = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert found == pytest.approx(case.bytes, rel=case.within)


@pytest.mark.parametrize("kind", ["steps", "phases", "evaluations"])
def test_what_is_recorded_is_said_to_be_known(kind: str) -> None:
    assert {case.group for case in record.cases(kind) if not known(spec_from_mapping(case.spec).facts)} == set()


@pytest.mark.parametrize("kind", ["steps", "phases", "evaluations"])
def test_nothing_is_left_unsaid_to_the_programs_that_measure(kind: str) -> None:
    for group in record.read(kind)["groups"]:
        for case in group["cases"]:
            assert {*record.PLAIN, "attention", "masked_words"} <= record.whole(group, case).keys()


@pytest.mark.parametrize("case", record.cases("published_peaks"), ids=str)
def test_a_peak_that_others_have_published(case: Case) -> None:
    """``torch.cuda.max_memory_allocated`` of real runs."""
    found = estimate(spec_from_mapping(case.spec)).allocated_bytes
    assert found == pytest.approx(case.bytes, rel=case.within)


@pytest.mark.parametrize("kind", record.KINDS)
def test_a_recording_is_as_its_program_writes_it(kind: str) -> None:
    recording = record.read(kind)
    assert record.written(recording) == (record.FOLDER / f"{kind}.json").read_text("utf-8")
    made = kind in record.PRODUCERS
    assert set(recording["versions"]) >= {"torch", "transformers"} or not made
    assert made or all(group["kept"] for group in recording["groups"])
    assert [name for name, count in Counter(map(str, record.cases(kind))).items() if count > 1] == []
    for group in recording["groups"]:
        assert group["about"] and 0 < group["within"] <= (0.01 if made else 0.05)
        assert {case["model"] for case in group["cases"] if "model" in case} == set(group["models"])


def test_a_figure_is_put_in_the_place_of_an_older_one_where_it_differs() -> None:
    case = {"name": "a", "spec": {}, "mib": 100.25}
    same, other = int(100.2498 * record.MIB), int(100.26 * record.MIB)
    assert record.renewed(case, same) == case
    assert record.renewed(case, other) == {**case, "mib": 100.26}
    assert record.renewed({"name": "a", "spec": {}, "bytes": 5}, 7) == {"name": "a", "spec": {}, "bytes": 7}


def test_a_measurement_is_written_in_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    recording = {
        "versions": {},
        "groups": [
            {
                "name": "small", "about": "a", "within": 0.001, "spec": {"seq_len": 8}, "models": {"m": {}},
                "cases": [{"name": name, "model": "m", "spec": {}, "mib": 2.0} for name in ("one", "two")],
            },
            {
                "name": "old", "about": "b", "within": 0.001, "kept": "nobody makes it", "spec": {}, "models": {},
                "cases": [{"name": "three", "spec": {}, "mib": 2.0}],
            },
        ],
    }  # fmt: skip
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(record, "PRODUCERS", {"steps": lambda group, case: 3 * record.MIB})
    file = record.FOLDER / "steps.json"
    file.write_text(record.written(recording))
    assert record.again("steps", "two", update=False) == 1, "a check writes nothing"
    assert json.loads(file.read_text()) == recording
    assert record.again("steps", "two", update=True) == 1
    figures = [[case["mib"] for case in group["cases"]] for group in record.read("steps")["groups"]]
    assert figures == [[2.0, 3.0], [2.0]]
    assert record.again("steps", "", update=True) == 1
    assert record.again("steps", "", update=True) == 0, "nothing differs any more"


def test_recordings_of_two_versions_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "made_with", lambda versions: dict.fromkeys(versions, "0"))
    monkeypatch.setattr(record, "PRODUCERS", {"steps": lambda *_: pytest.fail("measured")})
    assert record.again("steps", "albert", update=True) == 2
    assert record.again("steps", "", update=False) == 2
