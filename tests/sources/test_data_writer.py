from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, Span
from lintfit.sources.data_writer import Pieces


@st.composite
def texts_and_steps(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    text = draw(st.text("abc", max_size=12))
    steps = draw(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.text("xyz", max_size=4)), max_size=5))
    return text, steps


# A machine under load draws examples slowly; that says nothing about the code.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(texts_and_steps())
def test_edits_of_edits_are_edits_of_the_original(case: tuple[str, list[tuple[int, int, str]]]) -> None:
    original, steps = case
    pieces = Pieces.whole(len(original))
    text = original
    for first, second, new in steps:
        start, end = sorted((min(first, len(text)), min(second, len(text))))
        edit = Edit(Span(start, end), new)
        pieces.apply([edit])
        text = text[:start] + new + text[end:]
    assert apply(original, pieces.edits(len(original))) == text


def test_untouched_text_has_no_edits() -> None:
    assert Pieces.whole(5).edits(5) == []
