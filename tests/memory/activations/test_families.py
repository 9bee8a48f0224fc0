"""Every family's layer against real transformers layers, as ``bench/saved_layers.py`` counted them (5.23, torch 2.13).

Bytes a token that one layer of a small model saves on the CPU with eager attention, in fp32 and in bf16. There a
half-precision LayerNorm keeps statistics of 2 bytes instead of 4, and some families spread cos and sin anew in every
layer, a constant that vanishes in a model of real size: hence the tolerance.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping

ROOT = Path(__file__).parents[3]

RECORDED = {
    "llama": (20488.0, 13320.0),
    "mistral": (20488.0, 13320.0),
    "qwen2": (20488.0, 13320.0),
    "qwen3": (23608.0, 15672.0),
    "phi3": (20488.0, 13320.0),
    "gemma": (20504.0, 14360.0),
    "gemma2": (26672.0, 19504.0),
    "gemma3_text": (27746.0, 21602.0),
    "granite": (20488.0, 13320.0),
    "olmo": (18448.0, 12304.0),
    "olmo2": (23568.0, 17424.0),
    "olmo3": (23632.0, 17488.0),
    "cohere": (18436.0, 12812.0),
    "cohere2": (18436.0, 12812.0),
    "stablelm": (18448.0, 11272.0),
    "starcoder2": (14352.0, 9224.0),
    "glm": (20552.0, 13352.0),
    "glm4": (24656.0, 16432.0),
    "smollm3": (20488.0, 13320.0),
    "seed_oss": (20488.0, 13320.0),
    "ernie4_5": (20616.0, 13448.0),
    "exaone4": (23608.0, 15672.0),
    "nemotron": (14368.0, 9232.0),
    "phi": (18440.0, 11268.0),
    "gpt_neox": (13328.0, 8712.0),
    "opt": (12304.0, 8200.0),
    "falcon": (17424.1, 8712.1),
    "bloom": (18448.0, 11272.0),
    "mpt": (18448.0, 11272.0),
    "gpt2": (20496.0, 10248.0),
    "gpt_bigcode": (14352.0, 9224.0),
    "gpt_neo": (20496.0, 13320.0),
    "gptj": (18696.0, 12420.0),
    "codegen": (18696.0, 12548.0),
    "arcee": (16392.0, 11272.0),
    "hunyuan_v1_dense": (23608.0, 15672.0),
    "minicpm3": (22992.0, 14864.0),
}


def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_saved_layers", ROOT / "bench/saved_layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAVED = bench()


@pytest.mark.parametrize("name", sorted(RECORDED))
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "bf16"])
def test_a_layer_saves_what_the_real_one_saves(name: str, half: bool) -> None:
    ours = SAVED.tape_bytes(SAVED.config_of(name, 2), half) / (SAVED.BATCH * SAVED.SEQ)
    assert ours == pytest.approx(RECORDED[name][half], rel=0.004)


def test_what_is_recorded_counts_as_known() -> None:
    for name in RECORDED:
        assert known(models.from_config(SAVED.config_of(name, 2))), name


def test_another_name_of_a_family_is_known_as_well() -> None:
    config = SAVED.config_of("llama", 2)
    assert all(known(models.from_config({**config, "model_type": name})) for name in ("Yi", "aquila", "code_llama"))
    assert not known(models.from_config({**config, "model_type": "nobody_has_read_this"}))


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        ("google/umt5-xxl", ["q", "v"]),
        ("google/electra-large-discriminator", ["query"]),
    ],
)
def test_adapters_on_modules_that_the_nearest_family_has_not_make_a_graph(model: str, targets: list[str]) -> None:
    """Its layers were followed as frozen ones, of which no graph holds anything."""
    saved = {
        str(named): estimate(spec_from_mapping({"model": model, "lora_targets": named})).to_json()["components"][
            "activations"
        ]
        for named in (targets, "all-linear")
    }
    assert saved[str(targets)] == saved["all-linear"] > 2**30


def test_adapters_on_few_modules_of_a_known_layer_hold_less() -> None:
    run = {"model": "meta-llama/Llama-2-7b-hf", "micro_batch_size": 1}
    few, all_ = (
        estimate(spec_from_mapping({**run, "lora_targets": named})).to_json()["components"]["activations"]
        for named in (["q_proj", "v_proj"], "all-linear")
    )
    assert 2**30 < few < all_
