"""What reads a script draws from one counter: what comes after it is spent is not known, and nothing fails."""

from __future__ import annotations

import libcst as cst
import pytest

from lintfit.documents.steps import Steps
from lintfit.sources.script.interpreter import omegaconf
from lintfit.sources.script.interpreter.interpreter import Interpreter
from lintfit.sources.script.interpreter.state import Defaults, Walk
from lintfit.sources.script.interpreter.values import Const, Record, Table, Unknown, held


def walked(text: str, steps: Steps) -> Interpreter:
    walk = Walk(flags={}, words=None, environment={}, defaults=Defaults(), steps=steps)
    interpreter = Interpreter(cst.parse_module(text), walk)
    interpreter.run()
    return interpreter


def test_expressions_of_a_script() -> None:
    text = "a = 1\nb = 2\nc = 3\n"
    assert set(walked(text, Steps(100, "expressions")).globals.names) >= {"a", "b", "c"}
    found = walked(text, Steps(2, "expressions"))
    assert "a" in found.globals.names and "c" not in found.globals.names
    assert found.walk.steps.reason == "more than 2 expressions: what comes after is not followed"


@pytest.mark.parametrize("made", [str([0] * 4000), "'a' * 40000"])
def test_what_is_added_in_place_takes_as_many_steps_as_what_is_added(made: str) -> None:
    text = f"a = {made}\nfor i in {[*range(10)]}:\n    b = a\n    {{}}\n"
    added, in_place = (
        walked(text.format(line), Steps(1_000_000, "expressions")).walk.steps.taken for line in ("b = b + a", "b += a")
    )
    assert in_place == pytest.approx(added, rel=0.01)


@pytest.mark.parametrize("most", range(0, 60, 3))
def test_configs_that_a_script_merges(most: int) -> None:
    text = (
        "from omegaconf import OmegaConf\n"
        "a = OmegaConf.create({'x': {'y': 1, 'z': 2}, 'w': '${x.y}'})\n"
        "b = OmegaConf.merge(a, {'x': {'y': 3}})\n"
        "c = b.w\n"
    )
    whole, cut = walked(text, Steps(100, "expressions")), walked(text, Steps(most, "expressions"))
    found, made = ([name for name in "abc" if name in walk.globals.names] for walk in (cut, whole))
    assert made == ["a", "b", "c"] and found == made[: len(found)]
    assert bool(cut.walk.steps.reason) is (found != made)
    value = cut.globals.names.get("c", Const(None, 3))
    assert isinstance(value, Const) and value.value == 3, "what is found is right"


def test_merging_takes_a_step_a_key() -> None:
    below, above = (Table(items={"a": Const(None, value), "b": Const(None, value)}) for value in (1, 2))
    whole = omegaconf.over(below, above, Steps(2, "keys"))
    assert set(whole.items) == {"a", "b"} and not whole.open
    cut = omegaconf.over(below, above, Steps(1, "keys"))
    assert set(cut.items) == {"a"} and cut.open


def test_a_copy_of_a_config_takes_a_step_a_value() -> None:
    table = Table(items={"a": Const(None, 1), "b": Const(None, 2)})
    made = omegaconf.config(table, Steps(2, "values"))
    assert isinstance(made, Table)
    assert isinstance(made.items["a"], Const) and isinstance(made.items["b"], Unknown)


def test_merge_of_values_without_steps_is_open(record: Record) -> None:
    made = omegaconf.merged([Table(items={"a": Const(None, 1)})], record, Steps(0, "keys"))
    assert isinstance(made, Table) and made.open and not made.items


@pytest.fixture
def record() -> Record:
    interpreter = walked("f()\n", Steps(100, "expressions"))
    return interpreter.walk.records[0]


def test_references_that_refer_to_many() -> None:
    items = {f"a{n}": Const(None, f"${{a{n + 1}}}" * 50) for n in range(8)}
    table = Table(items={**items, "a8": Const(None, "x")})
    table.root = table
    assert isinstance(held(table, "a0"), Unknown)
    assert isinstance(held(table, "a7"), Const)
