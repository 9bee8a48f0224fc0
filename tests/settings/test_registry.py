"""The records of settings: each default is one that its own key may have, and that the memory model takes."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from lintfit.memory.reading.keys import NULLABLE, READERS, reader
from lintfit.memory.spec import Evaluation, Generation, Spec
from lintfit.settings.kinds import Object
from lintfit.settings.registry import SETTINGS, SPLITS, ZERO, default
from lintfit.settings.values import Fsdp

_LEAST = frozenset({"micro_batch_size"})
"""Of a run that nobody states it for the lower bound is taken, of a JSON spec the Trainer's default."""

_GIVEN = frozenset({"gpu", "deepspeed_config", "versions"})
"""Nothing is said where these are not stated."""


def _defaults(cls: type) -> dict[str, Any]:
    return {field.name: field.default for field in fields(cls) if field.default is not MISSING}


def test_fields_of_a_spec_have_the_defaults_of_their_records() -> None:
    found = _defaults(Spec)
    recorded = {name: record.default for name, record in SETTINGS.items() if record.has_default and name in found}
    assert recorded.keys() == {name for name, record in SETTINGS.items() if record.in_spec and name in found} - _GIVEN
    assert {name: found[name] for name in recorded if name not in _LEAST} == {
        name: value for name, value in recorded.items() if name not in _LEAST
    }
    assert {name: found[name] for name in _LEAST} == {name: SETTINGS[name].lower_bound for name in _LEAST}


@pytest.mark.parametrize(("name", "cls"), [("fsdp", Fsdp), ("generation", Generation), ("evaluation", Evaluation)])
def test_parts_have_the_defaults_of_their_records(name: str, cls: type) -> None:
    kind = SETTINGS[name].kind
    assert isinstance(kind, Object) and kind.parts is not None
    found = _defaults(cls)
    assert found.items() >= {part: value for part, value in kind.defaults.items() if part in found}.items()
    assert kind.parts.keys() & found.keys() <= kind.defaults.keys() <= kind.parts.keys()


def test_keys_may_have_their_defaults() -> None:
    for name, record in SETTINGS.items():
        if name in READERS and record.has_default and (record.default is not None or name in NULLABLE):
            assert READERS[name](name, record.default) == record.default
        if isinstance(record.kind, Object) and record.kind.parts is not None:
            for part, value in record.kind.defaults.items():
                assert value is None or reader(record.kind.parts[part])(part, value) == value


def test_none_as_a_default_is_explained_where_a_key_may_not_be_null() -> None:
    for name, record in SETTINGS.items():
        if record.in_spec and record.has_default and record.default is None and name not in NULLABLE:
            assert record.default_by, name


def test_setting_without_a_default_has_none_to_give() -> None:
    with pytest.raises(LookupError):
        default("learning_rate")


def test_groups_are_those_of_the_records() -> None:
    assert ZERO == ("zero_stage", "offload_optimizer", "offload_param")
    assert SPLITS == ("tensor_parallel", "pipeline_parallel", "sequence_parallel")
