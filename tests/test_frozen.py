"""Records: what they share with dataclasses, and what the standard library's functions for those say of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from lintfit.frozen import field, frozen, names, replace


@frozen
class Point:
    """A point with a name, and what is worked out of its numbers."""

    x: int
    y: int = 2
    tags: dict[str, int] = field(default_factory=dict)
    note: str = field(default_factory=str, compare=False)
    sum: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sum", self.x + self.y)

    @property
    def doubled(self) -> int:
        return 2 * self.sum


@frozen
class Own:
    """A class with a hash and a representation of its own."""

    value: int

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


@frozen(eq=False)
class Place:
    """Something that is equal to itself alone."""

    line: int
    words: list[str] = field(default_factory=list)


def test_a_record_without_equality_is_equal_to_itself_alone() -> None:
    one = Place(1)
    assert one == one and one != Place(1) and len({one, Place(1)}) == 2
    assert replace(one, line=2).line == 2 and repr(one) == "Place(line=1, words=[])"


def test_fields_are_given_by_place_by_name_or_by_default() -> None:
    assert (Point(1).y, Point(1, 5).y, Point(y=6, x=1).y) == (2, 5, 6)
    assert Point(1).sum == 3 and Point(1, 5).doubled == 12
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=1)  # type: ignore[call-arg]


def test_a_default_is_made_anew_for_each() -> None:
    first, second = Point(1), Point(1)
    first.tags["a"] = 1
    assert second.tags == {} and Point(1, tags={"b": 2}).tags == {"b": 2}


def test_there_is_room_for_the_fields_alone() -> None:
    with pytest.raises(AttributeError):
        Point(1).other = 1  # type: ignore[attr-defined]


def test_equality_asks_the_compared_fields() -> None:
    assert Point(1, note="a") == Point(1, note="b") != Point(2)
    assert Point(1) != (1, 2, {}) and Own(1) != Point(1)
    assert hash(Own(1)) == 7 and repr(Own(1)) == "own"
    assert repr(Point(1)) == "Point(x=1, y=2, tags={}, note='', sum=3)"


def test_a_copy_with_other_values_works_out_the_rest_anew() -> None:
    changed = replace(Point(1, note="a"), x=10)
    assert (changed.x, changed.y, changed.note, changed.sum) == (10, 2, "a", 12)
    with pytest.raises(TypeError, match="Point has no field z"):
        replace(Point(1), z=1)  # type: ignore[call-arg]
    assert names(Point) == ("x", "y", "tags", "note")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda point: pickle.loads(pickle.dumps(point))])
def test_copies_are_equal(copied: Any) -> None:
    assert copied(Point(1, 3)) == Point(1, 3)


def test_the_functions_for_dataclasses_know_them() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [part.name for part in dataclasses.fields(Point)] == ["x", "y", "tags", "note", "sum"]
    assert dataclasses.replace(Point(1), y=9).sum == 10
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "tags": {}, "note": "", "sum": 3}
    match Point(1, 4):
        case Point(x, y):
            assert (x, y) == (1, 4)
