import re

import pytest

from lintfit.documents.patterns import lazy_pattern, occurs


def test_pattern_is_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: compiled.append(text) or compile_now(text, flags))
    found = lazy_pattern(r"a(b)", re.IGNORECASE)
    assert not compiled
    assert [found.fullmatch("AB")[1], found.pattern, found.sub("-", "xabx")] == ["B", r"a(b)", "x-x"]
    assert compiled


def test_wrong_pattern_is_an_error_when_it_is_used() -> None:
    with pytest.raises(re.error):
        lazy_pattern("(").search("text")


def test_a_text_has_what_a_pattern_matches() -> None:
    for pattern in (lazy_pattern(r"^b", re.MULTILINE), re.compile(r"^b", re.MULTILINE)):
        for _ in range(2):
            assert occurs(pattern, "a\nb") and not occurs(pattern, "ab")
