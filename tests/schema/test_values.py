"""Values against the schemas: the mistakes that are named, held against what jsonschema says of whole documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText, Node
from lintfit.documents.yaml_reader import read_yaml
from lintfit.schema.sections import SchemaName, load, section_at
from lintfit.schema.values import Mistake, described, mistakes
from lintfit.versions import before
from tests.schema.configs import configs

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"


def root_of(text: str, name: SchemaName = "deepspeed") -> Node:
    file = FileText(Path("x"), text)
    root = (read_json if name == "deepspeed" else read_yaml)(file).root
    assert root is not None
    return root


def found(text: str, name: SchemaName = "deepspeed", version: str | None = None) -> list[Mistake]:
    return list(mistakes(root_of(text, name), load(name), lambda bound: before(version, bound)))


@pytest.mark.parametrize("name", ["deepspeed", "accelerate"])
@given(data=st.data())
@settings(max_examples=150)
def test_a_valid_document_has_no_mistakes(name: SchemaName, data: st.DataObject) -> None:
    whole = load(name)
    config = data.draw(configs(whole, wrong=True))
    root = root_of(json.dumps(config))
    assert list(mistakes(root, whole)) == [] or not Draft202012Validator(whole).is_valid(config), config


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
        '{"gradient_clipping": false}',
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
def test_valid_real_files_have_no_mistakes() -> None:
    whole = load("deepspeed")
    validator = Draft202012Validator(whole)
    compared = 0
    for path in sorted(CORPUS.glob("deepspeed*/*.json")):
        root = read_json(FileText(path, path.read_text("utf-8-sig"))).root
        if root is not None and root.shape == "mapping" and validator.is_valid(root.plain()):
            assert list(mistakes(root, whole)) == [], path
            compared += 1
    assert compared > 200
