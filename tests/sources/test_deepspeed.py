from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.sources.deepspeed import DeepSpeedSource, new_config, read_deepspeed

Read = Callable[[str], DataDocument]


def values(source: DeepSpeedSource) -> dict[str, Any]:
    return {name: setting.value for name, setting in source.settings.items()}


FULL = """{
  // the Trainer fills the rest
  "bf16": {"enabled": "auto"},
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "none"},
    "reduce_bucket_size": 5e8,
    "stage3_prefetch_bucket_size": "auto"
  },
  "optimizer": {"type": "AdamW", "params": {"lr": 2e-5, "betas": [0.9, 0.95], "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}},
  "gradient_clipping": 1.0,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": "auto",
  "train_batch_size": 128
}
"""


def test_settings_of_a_whole_config(json_document: Read) -> None:
    source = read_deepspeed(json_document(FULL))
    assert values(source) == {
        "bf16": AUTO,
        "zero_stage": 3,
        "offload_optimizer": "cpu",
        "offload_param": "none",
        "reduce_bucket_size": 500_000_000,
        "stage3_prefetch_bucket_size": AUTO,
        "optimizer": "AdamW",
        "learning_rate": 2e-5,
        "adam_beta1": 0.9,
        "adam_beta2": 0.95,
        "weight_decay": AUTO,
        "scheduler": "WarmupLR",
        "warmup_steps": 100,
        "max_grad_norm": 1.0,
        "micro_batch_size": 4,
        "gradient_accumulation_steps": AUTO,
        "train_batch_size": 128,
    }


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [("zero_stage", "3", 5), ("offload_optimizer", '"cpu"', 6), ("adam_beta2", "0.95", 11), ("bf16", '"auto"', 3)],
)
def test_a_setting_points_at_its_value(json_document: Read, name: str, text: str, line: int) -> None:
    place = read_deepspeed(json_document(FULL)).settings[name].provenance.place
    assert place is not None
    assert (place.text, str(place)) == (text, f"ds.json:{line}")


def test_nothing_stated_is_nothing_set(json_document: Read) -> None:
    assert values(read_deepspeed(json_document('{"zero_optimization": {}, "fp16": {}}'))) == {}
    assert values(read_deepspeed(json_document("[]"))) == {}
    assert values(read_deepspeed(json_document('{"a": '))) == {}


@pytest.mark.parametrize(
    ("zero", "expected"),
    [
        ("true", {"zero_stage": 1}),
        ("false", {"zero_stage": 0}),
        ("2", {"zero_stage": UNKNOWN}),
        ('{"stage": "3"}', {"zero_stage": 3}),
        ('{"stage": true}', {"zero_stage": 1}),
        ('{"stage": "auto"}', {"zero_stage": AUTO}),
        ('{"stage": 4}', {"zero_stage": UNKNOWN}),
        ('{"stage": [1]}', {"zero_stage": UNKNOWN}),
        ('{"cpu_offload": true}', {"offload_optimizer": "cpu"}),
        ('{"cpu_offload": false}', {"offload_optimizer": "none"}),
        ('{"cpu_offload_param": true}', {"offload_param": "cpu"}),
        ('{"cpu_offload_params": true}', {"offload_param": "cpu"}),
        ('{"offload_optimizer": null}', {}),
        ('{"offload_optimizer": {}}', {"offload_optimizer": "none"}),
        ('{"offload_optimizer": "cpu"}', {"offload_optimizer": UNKNOWN}),
        ('{"offload_optimizer": {"device": "gpu"}}', {"offload_optimizer": UNKNOWN}),
        ('{"offload_param": {"device": "nvme", "nvme_path": "/n"}}', {"offload_param": "nvme"}),
        ('{"reduce_bucket_size": "5e8"}', {"reduce_bucket_size": UNKNOWN}),
        ('{"reduce_bucket_size": "500"}', {"reduce_bucket_size": 500}),
        ('{"max_live_parameters": 0}', {"stage3_max_live_parameters": 0}),
    ],
)
def test_forms_of_zero_optimization(json_document: Read, zero: str, expected: dict[str, Any]) -> None:
    assert values(read_deepspeed(json_document('{"zero_optimization": ' + zero + "}"))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"bfloat16": {"enabled": true}}', {"bf16": True}),
        ('{"bfloat16": {"enabled": "auto"}}', {"bf16": True}),
        ('{"bfloat16": {"enabled": true}, "bf16": {"enabled": false}}', {"bf16": False}),
        ('{"fp16": {"enabled": True\n}}', {"fp16": True}),
        ('{"train_batch_size": "8"}', {"train_batch_size": UNKNOWN}),
        ('{"train_batch_size": 8.0}', {"train_batch_size": 8}),
        ('{"train_batch_size": true}', {"train_batch_size": UNKNOWN}),
        ('{"gradient_clipping": true}', {"max_grad_norm": 1}),
        ('{"zero_optimization": true, "allgather_size": 9}', {"zero_stage": 1, "allgather_bucket_size": 9}),
        ('{"zero_optimization": {}, "allgather_size": 9}', {}),
        ('{"optimizer": {"params": {"betas": "auto"}}}', {"adam_beta1": AUTO, "adam_beta2": AUTO}),
    ],
)
def test_forms_elsewhere(json_document: Read, text: str, expected: dict[str, Any]) -> None:
    assert values(read_deepspeed(json_document(text))) == expected


def test_the_new_offload_section_beats_the_old_key(json_document: Read) -> None:
    text = '{"zero_optimization": {"cpu_offload": true, "offload_optimizer": {"device": "nvme", "nvme_path": "/n"}}}'
    setting = read_deepspeed(json_document(text)).settings["offload_optimizer"]
    assert setting.value == "nvme"
    assert [old.value for old in setting.overrode] == ["cpu"]


def test_helpers_point_at_values(json_document: Read) -> None:
    source = read_deepspeed(json_document('{"zero_optimization": {"stage": 2}}'))
    value = source.place("zero_optimization", "stage")
    assert value is not None and value.text == "2"
    assert source.place("zero_optimization", "absent") is None
    assert source.start.text == "{"


def rewritten(document: DataDocument, changes: dict[str, Any], read: Read) -> tuple[str, dict[str, Any]]:
    edits = read_deepspeed(document).write_all(changes)
    assert edits is not None
    text = apply(document.text, [edit.edit for edit in edits])
    return text, values(read_deepspeed(read(text)))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n',
        '{"zero_optimization": true}',
        '{"zero_optimization": {"offload_optimizer": {"device": "none", "pin_memory": true}}, "bf16": {}}',
        "{\n  # hjson\n  zero_optimization: {stage: 1,},\n}\n",
        FULL,
    ],
)
@pytest.mark.parametrize(
    "changes",
    [
        {"zero_stage": 3},
        {"offload_optimizer": "cpu"},
        {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"},
        {"micro_batch_size": 1, "gradient_accumulation_steps": 8, "train_batch_size": AUTO},
        {"bf16": AUTO, "fp16": False, "max_grad_norm": 0.5},
        {"reduce_bucket_size": 200_000_000, "zero_stage": 2},
    ],
)
def test_what_is_written_is_read_back(json_document: Read, text: str, changes: dict[str, Any]) -> None:
    before = values(read_deepspeed(json_document(text)))
    after = rewritten(json_document(text), changes, json_document)[1]
    expected = {**before, **changes}
    # The old bare form has no room for anything else: it becomes the object that it stands for.
    assert after == expected


def test_writing_keeps_the_rest_of_the_text(json_document: Read) -> None:
    text = rewritten(json_document(FULL), {"zero_stage": 2, "micro_batch_size": 1}, json_document)[0]
    assert text == FULL.replace('"stage": 3', '"stage": 2').replace('gpu": 4', 'gpu": 1')


def test_offload_replaces_the_deprecated_key(json_document: Read) -> None:
    text = '{"zero_optimization": {"stage": 2, "cpu_offload": false}}'
    new, after = rewritten(json_document(text), {"offload_optimizer": "cpu"}, json_document)
    assert "cpu_offload" not in new
    assert after["offload_optimizer"] == "cpu"


def test_bf16_is_written_where_it_is_read(json_document: Read) -> None:
    new, _ = rewritten(json_document('{"bfloat16": {"enabled": false}}'), {"bf16": True}, json_document)
    assert new == '{"bfloat16": {"enabled": true}}'


def test_a_key_is_rewritten_under_the_name_that_it_has(json_document: Read) -> None:
    text = '{"zero_optimization": {"max_live_parameters": 0}}'
    new, _ = rewritten(json_document(text), {"stage3_max_live_parameters": 5}, json_document)
    assert new == text.replace("0}", "5}")


def test_a_setting_can_be_taken_out(json_document: Read) -> None:
    new, _ = rewritten(json_document('{"train_batch_size": 8, "fp16": {}}'), {"train_batch_size": None}, json_document)
    assert new == '{"fp16": {}}'


def test_what_a_json_cannot_say(json_document: Read) -> None:
    source = read_deepspeed(json_document("{}"))
    assert source.write("offload_optimizer", "nvme") is None
    assert source.write("seq_len", 128) is None
    assert source.write("adam_beta1", 0.8) is None
    assert source.write("zero_stage", UNKNOWN) is None
    assert source.write_all({"zero_stage": 3, "seq_len": 1}) is None


def test_saying_what_is_said_needs_no_edit(json_document: Read) -> None:
    assert read_deepspeed(json_document('{"zero_optimization": {"stage": 2}}')).write("zero_stage", 2) == ()


def test_new_config_for_the_trainer(json_document: Read) -> None:
    text = new_config({"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "none"})
    assert json.loads(text) == {
        "bf16": {"enabled": "auto"},
        "zero_optimization": {
            "stage": 3,
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "sub_group_size": 100_000_000,
            "stage3_gather_16bit_weights_on_model_save": True,
            "offload_optimizer": {"device": "cpu"},
        },
        "gradient_clipping": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto",
    }
    assert text.endswith("}\n")
    assert values(read_deepspeed(json_document(text)))["zero_stage"] == 3


def test_new_config_for_deepspeed_alone_has_no_auto() -> None:
    text = new_config({"zero_stage": 2, "bf16": True, "micro_batch_size": 1}, "deepspeed")
    assert json.loads(text) == {
        "zero_optimization": {"stage": 2},
        "bf16": {"enabled": True},
        "train_micro_batch_size_per_gpu": 1,
    }


def test_new_config_refuses_what_it_cannot_say() -> None:
    with pytest.raises(ValueError, match="seq_len"):
        new_config({"seq_len": 128})


CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here")
def test_real_files_are_rewritten() -> None:
    changes = {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu", "micro_batch_size": 1, "bf16": True}
    files = sorted((CORPUS / "deepspeed").glob("*.json"))
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8-sig")
        document = read_json(FileText(path, text))
        before = values(read_deepspeed(document))
        edits = read_deepspeed(document).write_all(changes)
        assert edits is not None, path
        new = read_json(FileText(path, apply(text, [edit.edit for edit in edits])))
        assert values(read_deepspeed(new)) == {**before, **changes}, path
        assert new.strict == document.strict, path
