"""Every family's layer against real transformers layers, as ``bench/saved_layers.py`` counts them on the CPU."""

from __future__ import annotations

import pytest

from bench import record, saved_layers
from bench.record import Case
from lintfit.catalog import models
from lintfit.catalog.facts import Code
from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping

NAMES = list(record.read("layers")["groups"][0]["models"])


@pytest.mark.parametrize("case", record.cases("layers"), ids=str)
def test_a_layer_saves_what_the_real_one_saves(case: Case) -> None:
    half = case.spec["weights_dtype"] == "bf16"
    ours = saved_layers.tape_bytes(case.spec["model_config"], half) / saved_layers.TOKENS
    assert ours == pytest.approx(case.bytes, rel=case.within)


def test_what_is_recorded_counts_as_known() -> None:
    for name in NAMES:
        assert known(models.from_config(saved_layers.config_of(name, 2))), name


def test_another_name_of_a_family_is_known_as_well() -> None:
    config = saved_layers.config_of("llama", 2)
    assert all(known(models.from_config({**config, "model_type": name})) for name in ("Yi", "aquila", "code_llama"))
    assert not known(models.from_config({**config, "model_type": "nobody_has_read_this"}))


def test_a_row_of_the_catalogue_says_whose_layers_a_type_has() -> None:
    unread = models.from_config({**saved_layers.config_of("llama", 2), "model_type": "nobody_has_read_this"})
    assert not known(unread)
    assert known(replace(unread, code=Code(layers="llama")))
    assert not known(replace(unread, code=Code(layers="nor_this")))


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
