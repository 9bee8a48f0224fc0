"""The tables of keys against the libraries that they were read from."""

from __future__ import annotations

import dataclasses

import pytest

from lintfit.catalog import accelerate_keys, deepspeed_keys


def test_removed_keys_are_not_known_ones() -> None:
    assert not deepspeed_keys.TOP_LEVEL & deepspeed_keys.REMOVED_TOP_LEVEL.keys()
    assert not deepspeed_keys.SECTIONS["zero_optimization",] & deepspeed_keys.REMOVED_ZERO.keys()
    assert not accelerate_keys.CLUSTER & accelerate_keys.REMOVED.keys()


def test_what_auto_fills_exists() -> None:
    for path in deepspeed_keys.AUTO_TRAINER | deepspeed_keys.AUTO_ACCELERATE:
        *section, key = path.split(".")
        known = deepspeed_keys.SECTIONS.get(tuple(section))
        if section and known is not None:
            assert key in known, path
        else:
            assert path.split(".")[0] in deepspeed_keys.TOP_LEVEL, path


@pytest.mark.peers
@pytest.mark.parametrize(
    ("path", "module", "name"),
    [
        (("zero_optimization",), "deepspeed.runtime.zero.config", "DeepSpeedZeroConfig"),
        (
            ("zero_optimization", "offload_param"),
            "deepspeed.runtime.zero.offload_config",
            "DeepSpeedZeroOffloadParamConfig",
        ),
        (
            ("zero_optimization", "offload_optimizer"),
            "deepspeed.runtime.zero.offload_config",
            "DeepSpeedZeroOffloadOptimizerConfig",
        ),
        (("bf16",), "deepspeed.runtime.precision_config", "DeepSpeedBF16Config"),
        (("fp16",), "deepspeed.runtime.precision_config", "DeepSpeedFP16Config"),
    ],
)
def test_sections_are_deepspeeds(path: tuple[str, ...], module: str, name: str) -> None:
    model = getattr(pytest.importorskip(module), name)
    fields = {alias for key, field in model.model_fields.items() for alias in (key, field.alias) if alias}
    assert fields - deepspeed_keys.SECTIONS[path] == set()
    assert model.model_config["extra"] == "forbid"


@pytest.mark.peers
def test_top_level_keys_are_accelerates() -> None:
    module = pytest.importorskip("accelerate.commands.config.config_args")
    for cls, known in (
        (module.ClusterConfig, accelerate_keys.CLUSTER),
        (module.SageMakerConfig, accelerate_keys.SAGEMAKER),
    ):
        assert {field.name for field in dataclasses.fields(cls)} == known - accelerate_keys.LEGACY
