"""Values against the schemas: the small validator against the jsonschema package, and the mistakes that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText, Node
from lintfit.documents.yaml_reader import read_yaml
from lintfit.run.versions import before
from lintfit.schema.sections import Schema, SchemaName, load, section_at
from lintfit.schema.values import KEYWORDS, Mistake, described, mistakes, valid
from tests.schema.configs import configs

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

ANNOTATIONS = frozenset({"$schema", "$id", "$defs", "title", "description", "default", "deprecated"})


def root_of(text: str, name: SchemaName = "deepspeed") -> Node:
    file = FileText(Path("x"), text)
    root = (read_json if name == "deepspeed" else read_yaml)(file).root
    assert root is not None
    return root


def found(text: str, name: SchemaName = "deepspeed", version: str | None = None) -> list[Mistake]:
    return list(mistakes(root_of(text, name), load(name), lambda bound: before(version, bound)))


@pytest.mark.parametrize("name", ["deepspeed", "accelerate"])
def test_the_validator_knows_every_keyword_of_the_schemas(name: SchemaName) -> None:
    def keywords(schema: Any, named: bool) -> Iterator[str]:
        if isinstance(schema, dict):
            for key, value in schema.items():
                if not named:
                    yield key
                if named or key not in ("default", "enum", "const"):
                    yield from keywords(value, key in ("properties", "patternProperties", "$defs") and not named)
        elif isinstance(schema, list):
            for one in schema:
                yield from keywords(one, False)

    unknown = {key for key in keywords(load(name), False) if not key.startswith("x-")} - KEYWORDS - ANNOTATIONS
    assert unknown == set()


@pytest.mark.parametrize("name", ["deepspeed", "accelerate"])
@given(data=st.data())
@settings(max_examples=150)
def test_the_validator_is_jsonschemas(name: SchemaName, data: st.DataObject) -> None:
    whole = load(name)
    config = data.draw(configs(whole, wrong=True))
    node = root_of(json.dumps(config))
    assert valid(node, whole, whole) == Draft202012Validator(whole).is_valid(config), config


SMALL: tuple[tuple[Schema, str], ...] = (
    ({"type": "integer"}, "1.0"),
    ({"type": "integer"}, "true"),
    ({"enum": [1, "1"]}, "true"),
    ({"const": 1}, "1.0"),
    ({"const": [1, 2]}, "[1, 2]"),
    ({"type": ["number", "null"], "minimum": 0, "maximum": 1}, "null"),
    ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, "[1]"),
    ({"type": "array", "items": {"type": "number"}}, '[1, "a"]'),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, '{"a": 1}'),
    ({"if": {"required": ["a"]}, "else": {"required": ["b"]}}, "{}"),
    ({"properties": {"a": {"not": {}}}}, '{"a": null}'),
    ({"patternProperties": {"^_": True}, "additionalProperties": False}, '{"_a": 1, "b": 2}'),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"b": 1}'),
)


@pytest.mark.parametrize(("schema", "text"), SMALL, ids=str)
def test_keywords_one_by_one(schema: Schema, text: str) -> None:
    assert valid(root_of(text), schema, schema) == Draft202012Validator(schema).is_valid(json.loads(text))


@pytest.mark.parametrize(
    ("text", "path", "literal", "refused", "coerced"),
    [
        ('{"train_batch_size": "32"}', "train_batch_size", "32", True, False),
        ('{"zero_optimization": {"stage": "3"}}', "zero_optimization.stage", "3", False, True),
        ('{"zero_optimization": {"stage": "7"}}', "zero_optimization.stage", None, True, False),
        ('{"zero_optimization": {"sub_group_size": "1e9"}}', "zero_optimization.sub_group_size", "1e9", True, False),
        ('{"zero_optimization": {"overlap_comm": "True"}}', "zero_optimization.overlap_comm", "true", False, True),
        ('{"steps_per_print": "10"}', "steps_per_print", "10", False, False),
        ('{"gradient_clipping": true}', "gradient_clipping", None, False, False),
        ('{"fp16": {"loss_scale": true}}', "fp16.loss_scale", None, True, False),
        ('{"optimizer": {"params": {"betas": [0.9]}}}', "optimizer.params.betas", None, False, False),
    ],
)
def test_what_deepspeed_makes_of_it(text: str, path: str, literal: str | None, refused: bool, coerced: bool) -> None:
    (mistake,) = found(text)
    assert ".".join(map(str, mistake.path)) == path
    assert (mistake.literal, mistake.refused, mistake.coerced) == (literal, refused, coerced)


def test_versions_decide_what_is_refused() -> None:
    (mistake,) = found('{"zero_optimization": {"reduce_bucket_size": 0}}', version="0.19.5")
    assert not mistake.refused
    (mistake,) = found('{"zero_optimization": {"reduce_bucket_size": 0}}', version="0.19.6")
    assert mistake.refused
    (mistake,) = found('{"fp16": {"hysteresis": 1.5}}', version="0.16.9")
    assert not mistake.refused


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization": {"overlap_comm": "auto", "offload_param": "auto"}}',
        '{"train_batch_size": "${BATCH}", "bf16": {"enabled": "{{ bf16 }}"}}',
        '{"communication_data_type": "FP32", "checkpoint": {"tag_validation": "WARN"}}',
        '{"zero_optimization": {"reduce_bucket_size": 5e8, "contiguous_gradients": 1}}',
        '{"amp": 7, "zero_optimisation": {"stage": 9}, "optimizer": {"params": {"anything": []}}}',
        '{"_train_batch_size": "x", "bf16": null}',
        '{"bf16": {"enabled": true}, "bfloat16": {"enabled": "maybe"}}',
    ],
)
def test_quiet(text: str) -> None:
    assert found(text) == []


def test_accelerate_sections_are_environment_variables() -> None:
    text = "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: '2'\n  fsdp_min_num_params: '1e8'\n"
    assert found(text, "accelerate") == []
    (mistake,) = found(text + "  fsdp_auto_wrap_policy: SIZE\n", "accelerate")
    assert mistake.path == ("fsdp_config", "fsdp_auto_wrap_policy")
    (mistake,) = found("distributed_type: NO\ngpu_ids: 0\n", "accelerate")
    assert mistake.text and mistake.refused


def test_words() -> None:
    zero = section_at(load("deepspeed"), "zero_optimization")["properties"]
    assert described(zero["stage"]) == '0, 1, 2, 3 or "auto"'
    assert described(zero["sub_group_size"]) == 'a whole number of 0 or more or "auto"'
    assert described(zero["offload_param"]) == "a section or null"
    ratio = zero["offload_optimizer"]["properties"]["ratio"]
    assert described(ratio) == 'a number from 0 to 1 or "auto"'


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here")
def test_the_validator_is_jsonschemas_on_real_files() -> None:
    whole = load("deepspeed")
    validator = Draft202012Validator(whole)
    compared = 0
    for path in sorted(CORPUS.glob("deepspeed*/*.json")):
        root = read_json(FileText(path, path.read_text("utf-8-sig"))).root
        if root is not None and root.shape == "mapping":
            assert valid(root, whole, whole) == validator.is_valid(root.plain()), path
            compared += 1
    assert compared > 400
