"""What a parser takes over a range of versions."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import arguments
from lintfit.sources.flag_grammars.grammar import Grammar, ranges_of
from lintfit.sources.flag_grammars.kinds import kind_of
from lintfit.sources.flag_grammars.options import Given, Option
from lintfit.sources.flag_grammars.refused import _MOST_REFUSED, _refusals

TRAINING = ("transformers.TrainingArguments",)


def grammar(**versions: str) -> Grammar:
    ranges = ranges_of(TRAINING, {name.replace("_from", ">="): version for name, version in versions.items()})
    assert ranges is not None
    return Grammar(classes=TRAINING, ranges=ranges)


@pytest.mark.parametrize(
    ("flag", "versions", "refused"),
    [
        ("--evaluation_strategy", {}, False),
        ("--evaluation_strategy", {"transformers": "5.0.0"}, True),
        ("--evaluation_strategy", {"transformers": "4.47.0"}, False),
        ("--evaluation_strategy", {"transformers_from": "4.40"}, False),
        ("--evaluation_strategy", {"transformers_from": "5.0"}, True),
        ("--evaluation_strategy", {"transformers": "<5"}, False),
        ("--gradient_checkpoint", {}, True),
        ("--gradient_checkpoint", {"transformers": "4.31.0"}, False),
        ("--per-device-train-batch-size", {"transformers": "4.41.2"}, True),
        ("--per-device-train-batch-size", {}, False),
        ("--no_dataloader_pin_memory", {}, False),
        ("--no_bf16", {}, True),
    ],
)
def test_a_flag_is_refused_where_every_version_refuses_it(flag: str, versions: dict[str, str], refused: bool) -> None:
    words = ("4",) if "batch" in flag else ("no",) if "strategy" in flag else ()
    assert (grammar(**versions).refused(Given(flag, words)) is not None) == refused


def test_a_version_that_is_newer_than_all_studied_ones_is_not_known() -> None:
    assert ranges_of(TRAINING, {"transformers": "99.0"}) is None
    assert ranges_of(TRAINING, {"transformers>=": "99.0"}) is None
    assert ranges_of(TRAINING, {"transformers@": "0dcb46e"}) is None


def test_what_only_the_shell_knows_is_taken() -> None:
    one = Grammar(own=(Option(("--steps",), "int"),))
    assert one.refused(Given("--steps", ("$STEPS",))) is None
    refusal = one.refused(Given("--steps", ("1e3",)))
    assert refusal is not None and refusal.message == "invalid int value: '1e3'"
    assert one.refused(Given("--steps", ("3", "$MORE"))) is None


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("bool", "flag"),
        ("Optional[bool]", "bool"),
        ("bool | None", "bool"),
        ("Union[str, bool]", "flag"),
        ("Optional[List[str]]", "str..."),
        ("Union[IntervalStrategy, str]", "=no|steps"),
        ("Optional[Union[dict, str]]", "str"),
        ("'Optional[int]'", "int"),
        ("Literal['a', 'b']", "=a|b"),
        ("Any", "any"),
        ("Optional[", "any"),
    ],
)
def test_what_hfargumentparser_makes_of_a_type(annotation: str, kind: str) -> None:
    assert kind_of(annotation, "None" if "None" in annotation or "Opt" in annotation else "other",
                   {"IntervalStrategy": ["no", "steps"]}) == kind  # fmt: skip


def test_the_classes_that_people_use_are_studied() -> None:
    for name in ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig", "ModelConfig", "ScriptArguments"):
        assert arguments.knows(f"trl.{name}")


@pytest.mark.parametrize("choices", [(1, 2), (True, 2), ([1], 2)])
def test_choices_of_any_type(choices: tuple[object, ...]) -> None:
    """What was said of equal ones of another type, ``1`` and ``True``, is not said again."""
    found = Grammar(own=(Option(("--level",), choices=choices),)).refused(Given("--level", ("Tru",)))
    assert found is not None and found.meant == ("True" if choices[0] is True else None)


def test_behind_very_many_flags_that_are_refused_none_is_asked_about() -> None:
    place: Any = None
    every = [(place, Given(f"--nothing{index}")) for index in range(200)]
    found = [*_refusals([(place, Given("--bf16")), *every], grammar(transformers="5.0.0"))]
    assert [why is None for _, _, why in found] == [True, *[False] * _MOST_REFUSED]
