"""Setting, removing and renaming values: the style of the result, and that nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lintfit.documents.data_edits import CannotEdit, remove, rename, same, set_value
from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText, KeyPath
from lintfit.documents.yaml_reader import read_yaml

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def read(name: str, text: str) -> DataDocument:
    file = FileText(Path(name), text)
    return read_json(file) if name.endswith(".json") else read_yaml(file)


def changed(name: str, text: str, path: KeyPath, value: Any) -> str:
    return apply(text, set_value(read(name, text), path, value))


def without(name: str, text: str, path: KeyPath) -> str:
    return apply(text, remove(read(name, text), path))


JSON_SET = [
    ('{"a": 1}', ("a",), 2, '{"a": 2}'),
    ('{"a": 1}', ("b",), True, '{"a": 1, "b": true}'),
    ('{"a":1,"b":2}', ("c",), "x", '{"a":1,"b":2,"c":"x"}'),
    ("{}", ("a", "b"), 1, '{\n  "a": {\n    "b": 1\n  }\n}'),
    ('{\n    "a": {},\n    "b": 2\n}\n', ("a", "x"), 1, '{\n    "a": {\n        "x": 1\n    },\n    "b": 2\n}\n'),
    ('{\n\t"a": 1\n}\n', ("z", "s"), 3, '{\n\t"a": 1,\n\t"z": {\n\t\t"s": 3\n\t}\n}\n'),
    ('{\r\n  "a": 1\r\n}\r\n', ("b",), None, '{\r\n  "a": 1,\r\n  "b": null\r\n}\r\n'),
    ('{\n  "a": 1, // why\n}\n', ("b",), 2, '{\n  "a": 1, // why\n  "b": 2,\n}\n'),
    ('{\n  "a": 1 // why\n}\n', ("b",), 2, '{\n  "a": 1, // why\n  "b": 2\n}\n'),
    ("{\n  a: auto\n}\n", ("b",), 2, "{\n  a: auto\n  b: 2\n}\n"),
    ("a: auto\nb: 1\n", ("c",), "x", 'a: auto\nb: 1\nc: "x"\n'),
    ("{\n  'a': 1\n}\n", ("b",), 2, "{\n  'a': 1,\n  'b': 2\n}\n"),
    ('{\n  "a": "auto"\n}\n', ("a", "b"), 2, '{\n  "a": {\n    "b": 2\n  }\n}\n'),
    ('{\n  "a": {"b": [1, 2]}\n}\n', ("a", "b", 1), 5, '{\n  "a": {"b": [1, 5]}\n}\n'),
    ('{\n  "a": 5e8, "b": 1\n}\n', ("a",), 500000, '{\n  "a": 5e5, "b": 1\n}\n'),
    ('{"a": 1, "a": 2}', ("a",), 3, '{"a": 1, "a": 3}'),
    ("", ("a",), 1, '{\n  "a": 1\n}'),
    ("{\n  // nothing yet\n}\n", ("a",), 1, '{\n  "a": 1\n  // nothing yet\n}\n'),
    ('{"a": [1, 2]}', ("a", 2), 3, '{"a": [1, 2, 3]}'),
]


@pytest.mark.parametrize(("text", "path", "value", "expected"), JSON_SET)
def test_json_values_are_set_in_the_files_own_style(text: str, path: KeyPath, value: Any, expected: str) -> None:
    assert changed("a.json", text, path, value) == expected


JSON_REMOVE = [
    ('{"a": 1, "b": 2}', ("a",), '{"b": 2}'),
    ('{"a": 1, "b": 2}', ("b",), '{"a": 1}'),
    ('{"a": 1}', ("a",), "{}"),
    ('{\n  "a": 1,\n  "b": 2\n}\n', ("a",), '{\n  "b": 2\n}\n'),
    ('{\n  "a": 1,\n  "b": 2\n}\n', ("b",), '{\n  "a": 1\n}\n'),
    ('{\n  "a": 1, // one\n  "b": 2 // two\n}\n', ("b",), '{\n  "a": 1 // one\n}\n'),
    ('{\n  "a": 1, // one\n  "b": 2, // two\n}\n', ("a",), '{\n  "b": 2, // two\n}\n'),
    ('{\n  "a": 1,\n  "b": 2}\n', ("b",), '{\n  "a": 1}\n'),
    ('{\n  "a": {\n    "x": 1\n  },\n  "b": 2\n}\n', ("a",), '{\n  "b": 2\n}\n'),
    ('{"a": 1, "b": 2, "a": 3}', ("a",), '{"b": 2}'),
    ("a: auto\nb: 1\n", ("a",), "b: 1\n"),
    ("{\n  a: auto // in\n  b: 1\n}\n", ("b",), "{\n  a: auto // in\n}\n"),
    ('{"a": [1, 2, 3]}', ("a", 1), '{"a": [1, 3]}'),
    ('{\n  "a": 1,\n\n  "b": 2,\n\n  "c": 3\n}\n', ("b",), '{\n  "a": 1,\n\n  "c": 3\n}\n'),
    ('{\r\n  "a": 1,\r\n \r\n  "b": 2,\r\n\r\n  "c": 3\r\n}', ("b",), '{\r\n  "a": 1,\r\n \r\n  "c": 3\r\n}'),
    ('{\r\n  "a": 1,\r\n  "b": 2,\r\n\r\n  "c": 3\r\n}', ("b",), '{\r\n  "a": 1,\r\n\r\n  "c": 3\r\n}'),
]


@pytest.mark.parametrize(("text", "path", "expected"), JSON_REMOVE)
def test_json_entries_are_removed_whole(text: str, path: KeyPath, expected: str) -> None:
    assert without("a.json", text, path) == expected


YAML_SET = [
    ("a: 1\n", ("a",), 2, "a: 2\n"),
    ("a: 1 # why\n", ("a",), "no", "a: 'no' # why\n"),
    ("a: 'no'\n", ("a",), "bf16", "a: 'bf16'\n"),
    ('a: "no"\n', ("a",), "fp16", 'a: "fp16"\n'),
    ("a: 1\n", ("b",), "on", "a: 1\nb: 'on'\n"),
    ("a: 1", ("b",), 1e-5, "a: 1\nb: 1.0e-05"),
    ("a: 1\n", ("b",), "1e-5", "a: 1\nb: 1e-5\n"),
    ("a:\n", ("a",), 3, "a: 3\n"),
    ("a:\n  b: 1\nc: 2\n", ("a", "d"), 5, "a:\n  b: 1\n  d: 5\nc: 2\n"),
    ("a:\n    b: 1\n", ("x", "y"), 5, "a:\n    b: 1\nx:\n    y: 5\n"),
    ("a: # c\n  b: 1\nc: 2\n", ("a",), 3, "a: 3 # c\nc: 2\n"),
    ("a: 1 # c\nc: 2\n", ("a",), {"b": {"x": "y"}}, "a: # c\n  b:\n    x: y\nc: 2\n"),
    ("a:\nc: 2\n", ("a", "b"), 1, "a:\n  b: 1\nc: 2\n"),
    ("a: {b: 1}\n", ("a", "c"), "x", "a: {b: 1, c: x}\n"),
    ("a: {}\n", ("a", "c"), "x", "a: {c: x}\n"),
    ("a:\r\n  b: 1\r\n", ("a", "c"), 2, "a:\r\n  b: 1\r\n  c: 2\r\n"),
    ("- a: 1\n- b: 2\n", (0, "c"), 3, "- a: 1\n  c: 3\n- b: 2\n"),
    ("a:\n- 1\n- 2\n", ("a", 2), 3, "a:\n- 1\n- 2\n- 3\n"),
    ("# only\n", ("a",), 1, "# only\na: 1\n"),
    ("", ("a", "b"), 1, "a:\n  b: 1\n"),
    ("x: &x\n  a: 1\ny:\n  <<: *x\n  b: 2\n", ("y", "a"), 5, "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 2\n  a: 5\n"),
    ("x: &x {a: 1}\ny: *x\n", ("y", "a"), 5, "x: &x {a: 1}\ny:\n  a: 5\n"),
    ("a: |\n  t\n\nb: 1\n", ("a",), "u", "a: u\n\nb: 1\n"),
    ("a: 1\n\n# end\n", ("b",), 2, "a: 1\nb: 2\n\n# end\n"),
    ("a: 1\nb:\n- 1\nc: 1\ne: 1\nf: 1\n", ("d",), 2, "a: 1\nb:\n- 1\nc: 1\nd: 2\ne: 1\nf: 1\n"),
    (
        "x:\n  a: 1\n  b: 1\n  d: 1\n  e: 1\n  f: 1\ny: 1\n",
        ("x", "c"),
        2,
        "x:\n  a: 1\n  b: 1\n  c: 2\n  d: 1\n  e: 1\n  f: 1\ny: 1\n",
    ),
    ("a: 1\nb: 1\nc: 1\n# of e\ne: 1\nf: 1\n", ("d",), 2, "a: 1\nb: 1\nc: 1\n# of e\ne: 1\nf: 1\nd: 2\n"),
    ("a: 1\nb: 1\nc: 1\n\ne: 1\nf: 1\n", ("d",), 2, "a: 1\nb: 1\nc: 1\n\ne: 1\nf: 1\nd: 2\n"),
    ("b: 1\na: 1\nc: 1\ne: 1\n", ("d",), 2, "b: 1\na: 1\nc: 1\ne: 1\nd: 2\n"),
    ("b: 1\nc: 1\nd: 1\ne: 1\nf: 1\n", ("a",), 2, "b: 1\nc: 1\nd: 1\ne: 1\nf: 1\na: 2\n"),
]


@pytest.mark.parametrize(("text", "path", "value", "expected"), YAML_SET)
def test_yaml_values_are_set_in_the_files_own_style(text: str, path: KeyPath, value: Any, expected: str) -> None:
    assert changed("a.yaml", text, path, value) == expected


YAML_REMOVE = [
    ("a: 1\nb: 2\n", ("a",), "b: 2\n"),
    ("# keep\na: 1 # goes\nb: 2\n", ("a",), "# keep\nb: 2\n"),
    ("a:\n  x: 1\n  y: 2\nb: 2\n", ("a",), "b: 2\n"),
    ("a:\n  x: 1\nb: 2\n", ("a", "x"), "a: {}\nb: 2\n"),
    ("a: 1\n", ("a",), "{}\n"),
    ("a: {b: 1, c: 2}\n", ("a", "b"), "a: {c: 2}\n"),
    ("a: {b: 1, c: 2}\n", ("a", "c"), "a: {b: 1}\n"),
    ("- a: 1\n  b: 2\n", (0, "a"), "- b: 2\n"),
    ("a:\n- 1\n- 2\n", ("a", 0), "a:\n- 2\n"),
    ("a: 1\nb: 2\na: 3\n", ("a",), "b: 2\n"),
    ("a: 1\n\nb: 2\n\nc: 3\n", ("b",), "a: 1\n\nc: 3\n"),
    ("a: 1\r\n\r\nb: 2\r\n \r\nc: 3\r\n", ("b",), "a: 1\r\n\r\nc: 3\r\n"),
    ("b: 2\n\nc: 3\n", ("b",), "c: 3\n"),
    ("a: 1\nb: 2\n\nc: 3\n", ("b",), "a: 1\n\nc: 3\n"),
    ("s:\n  a: 1\n\n  b: 2\n\n  c: 3\n", ("s", "b"), "s:\n  a: 1\n\n  c: 3\n"),
]


@pytest.mark.parametrize(("text", "path", "expected"), YAML_REMOVE)
def test_yaml_entries_are_removed_whole(text: str, path: KeyPath, expected: str) -> None:
    assert without("a.yaml", text, path) == expected


def test_keys_are_renamed() -> None:
    text = '{"zero": {"a": 1}, \'b\': 2}'
    document = read("a.json", text)
    assert apply(text, rename(document, ("zero",), "zero_optimization")) == '{"zero_optimization": {"a": 1}, \'b\': 2}'
    assert apply(text, rename(document, ("b",), "c")) == '{"zero": {"a": 1}, \'c\': 2}'
    with pytest.raises(CannotEdit, match="exists already"):
        rename(document, ("b",), "zero")
    text = "fp_16: 1 # c\n"
    assert apply(text, rename(read("a.yaml", text), ("fp_16",), "no")) == "'no': 1 # c\n"


def test_what_is_said_already_is_not_edited() -> None:
    assert set_value(read("a.json", '{"a": 5e8}'), ("a",), 500_000_000) == ()
    assert set_value(read("a.json", '{"a": 1}'), ("a",), True) != ()
    assert remove(read("a.json", '{"a": 1}'), ("b", "c")) == ()


def test_a_value_shared_through_an_alias_is_refused() -> None:
    document = read("a.yaml", "x: &x {a: 1}\ny: *x\n")
    with pytest.raises(CannotEdit):
        set_value(document, ("x", "a"), 2)
    with pytest.raises(CannotEdit):
        remove(document, ("y", "a"))


KEYS = st.sampled_from(["a", "b", "zero_optimization", "no", "é x", "1", "'", '"', "#"])
LEAVES = st.none() | st.booleans() | st.integers(-99, 10**12) | st.floats(allow_nan=False, allow_infinity=False)
STRINGS = st.text("abno1e-5:# '\"\\\n\té\U0001f600", max_size=6) | st.sampled_from(["no", "on", "1e-5", "auto", "0x1"])
VALUES = st.recursive(
    LEAVES | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
TREES = st.dictionaries(KEYS, VALUES, max_size=4)
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(tuple)


def check_set(document: DataDocument, path: KeyPath, value: Any) -> None:
    """The edits splice to a text that reads as the old values with the new one; set_value checks it, too."""
    try:
        edits = set_value(document, path, value)
    except CannotEdit as error:
        assert "list" in str(error), error
        return
    text = apply(document.text, edits)
    again = read(document.path.name, text)
    assert again.root is not None and document.root is not None
    found = again.root.get(*path)
    assert found is not None
    assert found.plain() == value if document.path.suffix == ".json" else same(found.plain(), value)
    assert again.strict == document.strict


@settings(max_examples=150)
@given(TREES, PATHS, VALUES, st.sampled_from([None, 2, 4, "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_any_value_can_be_set_in_json(
    tree: dict[str, Any], path: KeyPath, value: Any, indent: int | str | None, newline: str
) -> None:
    check_set(read("a.json", json.dumps(tree, indent=indent).replace("\n", newline)), path, value)


@settings(max_examples=150)
@given(
    TREES, PATHS, VALUES, st.sampled_from([None, True, False]), st.sampled_from([2, 4]), st.sampled_from(["\n", "\r\n"])
)
def test_any_value_can_be_set_in_yaml(
    tree: dict[str, Any], path: KeyPath, value: Any, flow: bool | None, indent: int, newline: str
) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, indent=indent, allow_unicode=True).replace("\n", newline)
    check_set(read("a.yaml", text), path, value)


@settings(max_examples=150)
@given(TREES, st.data(), st.sampled_from([None, 2]), st.booleans())
def test_any_value_can_be_removed(tree: dict[str, Any], data: st.DataObject, indent: int | None, is_json: bool) -> None:
    text = (
        json.dumps(tree, indent=indent)
        if is_json
        else yaml.safe_dump(tree, default_flow_style=None if indent else False)
    )
    document = read("a.json" if is_json else "a.yaml", text)
    assert document.root is not None
    paths = [path for path, _ in document.root.walk() if path]
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    again = read(document.path.name, apply(text, remove(document, path)))
    expected: Any = document.root.plain()
    parent = expected
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    assert again.root is not None and same(again.root.plain(), expected)


def corpus() -> Iterable[Path]:
    for pattern in ("deepspeed/*.json", "accelerate/*.yaml", "accelerate/*.yml"):
        yield from sorted(CORPUS.glob(pattern))


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus")
def test_real_configs_can_be_edited_anywhere() -> None:
    tried = 0
    for path in corpus():
        document = read("a" + path.suffix, path.read_bytes().decode("utf-8-sig"))
        if document.root is None or document.root.shape != "mapping" or not document.root.entries:
            continue
        is_json = path.suffix == ".json"
        nested = "zero_optimization" if is_json else "deepspeed_config"
        for where in ((nested, "stage"), ("new", "nested", "key"), (nested, "offload_optimizer", "device")):
            check_set(document, where, "cpu")
        keys = {entry.key for entry in document.root.entries}
        for key in keys:
            text = apply(document.text, remove(document, (key,)))
            kept = [line for line in document.text.split("\n") if line.strip()]
            assert (
                set(text.split("\n")) <= {*kept, "", *(line.rstrip().rstrip(",") for line in kept), "{}"}
                or "\r" in text
            )
        tried += 1
    assert tried > 100


def test_a_large_round_number_is_written_as_the_file_writes_its_own() -> None:
    document = read_json(FileText(Path("ds.json"), '{\n  "reduce_bucket_size": 5e8,\n  "stage": 3\n}\n'))
    assert apply(document.text, set_value(document, ("reduce_bucket_size",), 50_000_000)) == (
        '{\n  "reduce_bucket_size": 5e7,\n  "stage": 3\n}\n'
    )
    assert '"sub_group_size": 1e8' in apply(document.text, set_value(document, ("sub_group_size",), 100_000_000))
    assert '"stage": 2' in apply(document.text, set_value(document, ("stage",), 2))
    assert '"sub_group_size": 123456' in apply(document.text, set_value(document, ("sub_group_size",), 123_456))
