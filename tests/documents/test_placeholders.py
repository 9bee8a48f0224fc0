from __future__ import annotations

import pytest

from lintfit.documents.placeholders import is_to_fill_in


@pytest.mark.parametrize(
    "word",
    ["__DS__", "out/__RUN_NAME__", "@MODEL@", "%MODEL%", "<MODEL>", "{{ model }}", "{{model}}", "your_model", "???"],
)
def test_it_stands_for_another_word(word: str) -> None:
    assert is_to_fill_in(word)


@pytest.mark.parametrize(
    "word",
    ["__init__", "__main__.py", "user@host", "me@here@there", "100%", "%Y-%m-%d", "<eos>", "<|im_end|>", '{"a": 1}'],
)
def test_it_stands_for_itself(word: str) -> None:
    assert not is_to_fill_in(word)
