"""The YAML reader against PyYAML's safe_load, and its spans."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lintfit.documents import yaml11
from lintfit.documents.limits import TOO_MANY
from lintfit.documents.model import DataDocument, FileText
from lintfit.documents.yaml_reader import read_yaml

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
CONFIGS = sorted(path for pattern in ("accelerate*/*.yaml", "accelerate*/*.yml") for path in CORPUS.glob(pattern))


def read(text: str) -> DataDocument:
    return read_yaml(FileText(Path("accelerate.yaml"), text))


def comparable(value: object) -> object:
    """safe_load's value with keys and dates as our tree keeps them."""
    if isinstance(value, dict):
        return {str(key): comparable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(item) for item in value]
    if isinstance(value, (datetime.date, bytes)):
        return "a date"
    return "nan" if value != value else value


def plain(document: DataDocument) -> object:
    assert document.root is not None, document.problems
    return comparable(document.root.plain())


SCALARS = st.one_of(
    st.text("0123456789_+-.eExXbBo:ainfIANF", min_size=1, max_size=8),
    st.sampled_from(
        ["yes", "No", "ON", "off", "True", "y", "n", "~", "null", "Null", "nULL", "1e-5", "1e5", "1E-08", "010"]
    ),
    st.sampled_from(
        ["12:30", "1:2:3.5", "0b11", "0x_f", "0b_", "1_000", ".5", "-.5", ".inf", "-.INF", ".NaN", "=", "<<", "+1", "-"]
    ),
)


@settings(max_examples=600)
@given(SCALARS)
def test_plain_scalars_are_resolved_as_pyyaml_does(text: str) -> None:
    loader = yaml.SafeLoader("")
    try:
        node = yaml.ScalarNode(loader.resolve(yaml.ScalarNode, text, (True, False)), text)
        expected = loader.construct_document(node)
    except (yaml.YAMLError, ValueError, AttributeError):
        with pytest.raises(yaml11.Unreadable):
            yaml11.resolve(text)
        return
    value = yaml11.resolve(text)
    if isinstance(expected, datetime.date):
        assert value == text and not yaml11.is_plain_string(text)
        return
    assert type(value) is type(expected)
    assert value == expected or value != value
    assert yaml11.is_plain_string(text) == isinstance(expected, str)


# YAML 1.1 breaks lines at these three, too, and ruamel.yaml does not in every place.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=300)
@given(VALUES, st.sampled_from([None, True, False]), st.sampled_from(["|", ">", "'", '"', None]), st.booleans())
def test_dumped_values_are_read_back(value: object, flow: bool | None, style: str | None, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, default_style=style, allow_unicode=unicode)
    document = read(text)
    assert not document.problems
    assert plain(document) == comparable(yaml.safe_load(text))
    assert document.root is not None
    for _, node in document.root.walk():
        if style is None and node.shape == "scalar" and "\n" not in document.slice(node.span):
            assert yaml.safe_load(document.slice(node.span)) == node.value


LINES = [
    *(
        "a: 1",
        "b:",
        "  c: no",
        "  - x",
        "- y",
        "d: {e: 1, f: [a, b]}",
        "# c",
        "  # c",
        "",
        "g: |",
        "    text",
        "h: 'no'",
    ),
    *(
        'i: "x"',
        "a: 2",
        "j: &x",
        "  k: 1",
        "l: *x",
        "m:",
        "  <<: *x",
        "\tn: 1",
        "o: !foo 1",
        "p: !!str 1",
        "---",
        "? q",
    ),
    *(": r", "- - z", "s: [", "  t, u]", "v: >-", "w: &y 1", "x: *y", "- &x {z: 1}", "z: *nowhere", "é: ü # ä", "1: 2"),
    *("no: on", "=: 1", "-", "k: a: b", "@", "\tv]"),
]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("s: [\n\tn: 1\n  t, u]", 5),
        ("s: [\n \tt]", 6),
        ("s: [a,\tb]", 6),
        ("s: [a\n\t, b]", 6),
        ("s: {\n\ta: 1}", 5),
        ("s: {a:\t1}", 6),
        ("s: {a: 1\t}", 8),
        ("s: [\n\t# c\n t]", 5),
    ],
)
def test_a_tab_between_brackets_is_refused_as_pyyaml_refuses_it(text: str, at: int) -> None:
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(text)
    (problem,) = read(text).problems
    assert problem.detail == "a tab where YAML allows only spaces"
    assert problem.span.start == at


@pytest.mark.parametrize("text", ['s: ["a\tb", "c\n\td"]', "s: [a] # \t", "s: [a # \t b\n  , c]"])
def test_a_tab_in_a_string_or_a_comment_between_brackets_is_read(text: str) -> None:
    assert not read(text).problems
    assert plain(read(text)) == yaml.safe_load(text)


@settings(max_examples=600)
@given(st.lists(st.sampled_from(LINES), max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_lines_are_read_as_pyyaml_reads_them(lines: list[str], newline: str, end: bool) -> None:
    text = newline.join(lines) + (newline if end else "")
    document = read(text)
    errors = [problem for problem in document.problems if problem.code == "syntax-error"]
    try:
        expected = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        assert errors, text
        return
    if expected is None or any("inside its own anchor" in problem.detail for problem in errors):
        return  # PyYAML makes a value that holds itself; a tree with places cannot
    assert not errors, errors
    keys_are_strings = {"1: 2", "no: on"}.isdisjoint(lines)
    if keys_are_strings:
        assert plain(document) == comparable(expected)
    for problem in document.problems:
        assert problem.code == "duplicate-key"
    assert document.root is not None
    for _, node in document.root.walk():
        for entry in node.entries:
            assert document.slice(entry.key_span).split() == entry.key.split()
            assert entry.span.start == entry.key_span.start


@pytest.mark.skipif(not CONFIGS, reason="no corpus")
def test_real_configs_are_read_as_pyyaml_reads_them() -> None:
    compared = 0
    for path in CONFIGS:
        text = path.read_text(encoding="utf-8-sig")
        document = read(text)
        try:
            expected = yaml.safe_load(text)
        except yaml.YAMLError:
            assert document.problems, path
            continue
        assert not [problem for problem in document.problems if problem.code != "duplicate-key"], path
        assert plain(document) == comparable(expected), path
        compared += 1
        assert document.root is not None
        for _, node in document.root.walk():
            if node.shape == "scalar":
                assert yaml.safe_load(document.slice(node.span)) == node.value
    assert compared > 120


def test_places() -> None:
    text = "a: 'no'\nb:\n  - 1\n  -\nc:\nd: &x {e: auto}\nf: *x\ng:\n  <<: *x\n  h: |\n    t\n\ni: 1\n"
    document = read(text)
    root = document.root
    assert root is not None

    def at(*path: str | int) -> str:
        node = root.get(*path)
        assert node is not None
        return document.slice(node.span)

    assert at("a") == "'no'"
    assert at("b") == "- 1\n  -"
    assert at("b", 1) == ""
    assert at("c") == "" and root.get("c").span.start == text.index("c:") + 2  # type: ignore[union-attr]
    assert at("d") == "{e: auto}"
    assert at("f") == "*x" and at("f", "e") == "auto"
    assert at("g") == "<<: *x\n  h: |\n    t"
    assert at("g", "e") == "auto"
    assert at("g", "h") == "|\n    t"
    assert root.get("g", "h").value == "t\n"  # type: ignore[union-attr]
    assert document.slice(root.span) == text[:-1]


def test_accelerate_traps() -> None:
    document = read("mixed_precision: no\nlr: 1e-5\nport: 12:30\nn: 010\n")
    assert document.root is not None
    assert document.root.plain() == {"mixed_precision": False, "lr": "1e-5", "port": 750, "n": 8}


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("a: 1\n\tb: 2\n", "\t", "tab"),
        ("a:\n\tb: 2\n", "\t", "tab"),
        ("a: [1, 2\n", "", ""),
        ("a: b: c\n", ":", "mapping values are not allowed"),
        ("a: !foo 1\n", "!foo", "does not know the tag !foo"),
        ("a: !!python/object:os.system x\n", "!!python/object:os.system", "does not know the tag"),
        ("a: 1\n---\nb: 2\n", "---", "second YAML document"),
        ("a: *x\n", "*x", "no anchor"),
        ("a: &x [*x]\n", "*x", "inside its own anchor"),
        ("a: 2024-13-01\n", "2024-13-01", "date"),
        ("a: =\n", "=", "quotes"),
        ("a: \x01\n", "\x01", "character"),
        ("", "", "empty"),
        ("# nothing\n", "", "empty"),
        ("[a]: 1\n", "[a]", "key"),
        ("<<: 1\n", "1", "mapping"),
        ("a: 'x\n", "", ""),
    ],
)
def test_what_safe_load_refuses_is_a_problem(text: str, place: str, reason: str) -> None:
    document = read(text)
    (problem,) = document.problems
    assert problem.code == "syntax-error" and document.slice(problem.span) == place
    assert reason in problem.detail and "\n" not in problem.detail


def test_duplicate_keys_are_reported_and_kept() -> None:
    document = read("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert [document.position(problem.span.start).line for problem in document.problems] == [4, 5]
    assert document.root is not None and document.root.plain() == {"a": 3, "b": {"c": 2}}


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 25_000, "- " * 50_000])
def test_deep_nesting_is_one_problem(text: str) -> None:
    (problem,) = read(text).problems
    assert "levels deep" in problem.detail


def test_aliases_that_unfold_without_end_are_one_problem() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    (problem,) = read(text).problems
    assert problem.detail == TOO_MANY
