import pytest

from lintfit.documents.numerals import MOST_DIGITS, natural, whole


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), (" 8 ", 8), ("+8", 8), ("-8", -8), ("007", 7), ("9" * 100, 10**100 - 1)]
)
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize(
    "text", [None, "", "+", "--5", "+-5", "1_0", "1.0", "²", "٣", "１", "0x10", "x", "9" * (MOST_DIGITS + 1)]
)
def test_anything_else_is_none(text: str | None) -> None:
    assert whole(text) is None
    assert natural(text) is None


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("0", 0), (" 8", None), ("+8", None), ("-8", None)])
def test_a_natural_number_is_digits_alone(text: str, number: int | None) -> None:
    assert natural(text) == number
