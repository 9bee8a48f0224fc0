"""The JSON reader against json and hjson, and its problems."""

from __future__ import annotations

import json
from pathlib import Path

import hjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
CONFIGS = sorted([*CORPUS.glob("deepspeed*/*.json"), *CORPUS.glob("neox/*")])


def read(text: str, bom: bytes = b"") -> DataDocument:
    return read_json(FileText(Path("ds.json"), text, bom=bom))


def hjson_reads(text: str) -> object:
    return hjson.loads(text, object_pairs_hook=dict)


def problems(document: DataDocument) -> list[tuple[str, str]]:
    return [(problem.code, document.slice(problem.span)) for problem in document.problems]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_strict_json_is_read_as_json_reads_it(value: object, indent: int | str | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    document = read(text)
    assert document.strict and not document.problems
    assert document.root is not None and document.root.plain() == json.loads(text)
    for _, node in document.root.walk():
        assert json.loads(document.slice(node.span)) == node.plain()
        for entry in node.entries:
            assert json.loads(document.slice(entry.key_span)) == entry.key
            assert entry.span.start == entry.key_span.start and entry.span.end == entry.value.span.end


PIECES = [
    *("{", "}", "[", "]", ",", ":", "'", '"', "'''", "\\n", '"a"', "'b'", '"k":', "a:", "x:", "bare", "tru", "é"),
    *("1", "1 ", "1e8", "-0.5", "1.5e-7", "01", "-", "NaN", "true", "null", "auto"),
    *("// c", "# c", "/* c */", "\n", "\r\n", " ", "\t"),
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_text_is_read_as_hjson_reads_it(text: str) -> None:
    document = read(text)
    # DeepSpeed opens the file in text mode, which turns every line break into \n before hjson sees it.
    seen = text.replace("\r\n", "\n")
    try:
        expected = hjson_reads(seen)
    except (IndexError, OverflowError):
        return  # hjson's own crash, at an unclosed comment or ''' string, or at a number beyond a double's range
    except ValueError:
        assert document.root is None
        assert [problem.code for problem in document.problems] == ["syntax-error"]
        return
    assert document.root is not None, document.problems
    assert document.root.plain() == expected
    try:
        json.loads(text)
        strict = True
    except ValueError:
        strict = not seen.strip()
    assert document.strict == strict or not seen.strip()


@settings(max_examples=300)
@given(VALUES.filter(lambda value: isinstance(value, dict)))
def test_hjson_of_any_value_is_read(value: object) -> None:
    text = hjson.dumps(value)
    document = read(text)
    try:
        expected = hjson_reads(text)
    except hjson.HjsonDecodeError:
        assert document.root is None, "hjson cannot read what it wrote (a text of quotes and carriage returns)"
        return
    assert document.root is not None, (text, document.problems)
    assert document.root.plain() == expected


@pytest.mark.skipif(not CONFIGS, reason="no corpus")
def test_real_configs_are_read_as_hjson_reads_them() -> None:
    read_any = 0
    for path in CONFIGS:
        data = path.read_bytes()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        document = read(text)
        try:
            expected = hjson_reads(text.replace("\r\n", "\n"))
        except ValueError:
            assert document.root is None, path
            continue
        assert document.root is not None, (path, document.problems)
        assert document.root.plain() == expected, path
        read_any += 1
        try:
            json.loads(text)
            assert document.strict, path
        except ValueError:
            assert not document.strict, path
        edits = [edit for problem in document.problems for edit in problem.edits]
        if edits:
            assert json.loads(apply(text, edits)) == expected, path
    assert read_any > 400


def test_number_keeps_its_spelling() -> None:
    document = read('{"reduce_bucket_size": 5e8, "big": 1e14}')
    assert document.root is not None
    bucket = document.root.get("reduce_bucket_size")
    assert bucket is not None and bucket.value == 500_000_000 and type(bucket.value) is int
    assert document.slice(bucket.span) == "5e8"
    big = document.root.get("big")
    assert big is not None and type(big.value) is float


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: auto // x\n}", {"a": "auto // x"}),
        ("a: 1 // x\nb: two words\n", {"a": 1, "b": "two words"}),
        ("{\n  a: '''\n  one\n      two\n    '''\n}", {"a": "one\n two"}),
        ('{"a": "1" "b": 2}', {"a": "1", "b": 2}),
        ("true", True),
        ("'x'", "x"),
        ("{a: True\n}", {"a": "True"}),
        ("{a: True,\n}", {"a": "True,"}),
    ],
)
def test_hjson_traps(text: str, value: object) -> None:
    document = read(text)
    assert document.root is not None
    assert document.root.plain() == value
    assert document.root.plain() == hjson_reads(text)
    assert not document.strict or text == "true"


def test_not_strict_constructs_are_reported_once_and_mended() -> None:
    text = """\
# first
{
  // second
  'zero': {stage: 3, /* third */ x: [1, 2,],},
  "bf16": {"enabled": true}, // fourth
  word: auto
  "a": "1" "b": 2,
}
"""
    document = read(text)
    assert problems(document) == [
        ("not-strict-json", "# first"),
        ("not-strict-json", "'zero'"),
        ("not-strict-json", "stage"),
        ("not-strict-json", ","),
        ("not-strict-json", "auto"),
        ("not-strict-json", ""),
    ]
    fixed = apply(text, [edit for problem in document.problems for edit in problem.edits])
    assert document.root is not None
    assert json.loads(fixed) == document.root.plain() == hjson_reads(text)
    assert (
        fixed
        == """\
{
  "zero": {"stage": 3, "x": [1, 2]},
  "bf16": {"enabled": true},
  "word": "auto",
  "a": "1", "b": 2
}
"""
    )


def test_missing_braces_are_added() -> None:
    text = "stage: 3 // why\nlr: 1e-5"
    document = read(text)
    fixed = apply(text, [edit for problem in document.problems for edit in problem.edits])
    assert json.loads(fixed) == {"stage": 3, "lr": 1e-5}


def test_swallowed_comma_is_said_and_not_mended() -> None:
    document = read('{"enabled": True,\n "x": 1}')
    (word, comma) = document.problems
    assert 'HJSON reads all of "True,"' in word.detail
    assert not word.edits and not document.strict
    assert document.slice(comma.span) == "" and "comma" in comma.detail


def test_byte_order_mark_is_not_strict() -> None:
    document = read('{"a": 1}', bom=b"\xef\xbb\xbf")
    assert not document.strict
    assert [problem.detail for problem in document.problems] == ["a byte-order mark"]


def test_not_a_number_is_for_json_a_number() -> None:
    document = read('{"a": NaN\n}')
    assert document.strict
    assert "NaN" in document.problems[0].detail
    document = read('{"a": NaN}')
    assert document.root is None and document.strict


def test_duplicate_keys_are_reported_and_kept() -> None:
    document = read('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}')
    assert [(problem.code, problem.span.start) for problem in document.problems] == [
        ("duplicate-key", 23),
        ("duplicate-key", 32),
    ]
    assert document.problems[1].related[0][0].start == 1
    assert document.root is not None and document.root.plain() == {"a": 3, "b": {"c": 2}}
    assert document.strict


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('{"a": 1', "{", "'}' is missing"),
        ('{"a": {"b": ["x"}', "}", "the ']' is missing"),
        ('{"a": [1, 2}', "}", "the ']' is missing"),
        ('{"a": 1]', "]", "does not close"),
        ('{"a": 1}}', "}", "closes nothing"),
        ('{"a": "b\n}', '"b', "never closed"),
        ('{"a" 1}', '"a"', "':' is missing"),
        ('{"a": }', "}", "value is missing"),
        ('{"a": , "b": 1}', ",", "value is missing"),
        ('{"a": "\\x"}', "\\x", "escape"),
        ('{"a": "\\u12"}', "\\u", "hexadecimal"),
        ('{"a": 1 /* }', "/*", "never closed"),
        ("{a: auto, b: 1}", "auto, b: 1}", "put it in quotes"),
        ('{"a": 1} x', "x", "after the end"),
        ('{"a": 1e999}', "1e999", "larger than any number"),
        ('{"a": "\x01"}', "\x01", "control character"),
        ("", "", "empty"),
        ("// nothing\n", "", "empty"),
        ("[1, 2", "[", "']' is missing"),
        ('{"a":\n', "{", "'}' is missing"),
        ("'''abc", "'''", "never closed"),
    ],
)
def test_syntax_errors_have_a_place_and_a_reason(text: str, place: str, reason: str) -> None:
    document = read(text)
    (problem,) = [problem for problem in document.problems if problem.code == "syntax-error"]
    assert document.slice(problem.span) == place
    assert reason in problem.detail and "\n" not in problem.detail


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_nesting_is_one_problem(text: str) -> None:
    document = read(text)
    (problem,) = document.problems
    assert document.root is None and "levels deep" in problem.detail


def test_large_text_is_one_problem() -> None:
    document = read("[" + "1," * 2_600_000 + "1]")
    (problem,) = document.problems
    assert document.root is None and problem.detail == "larger than 2 MiB: not a config"
