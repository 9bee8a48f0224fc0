"""Which release of axolotl has which key."""

from __future__ import annotations

import pytest

from lintfit.catalog import axolotl


def test_the_releases_that_a_run_may_have() -> None:
    every = axolotl.releases()
    assert axolotl.range_of({}).releases == every and not axolotl.range_of({}).open
    assert axolotl.range_of({"axolotl": "0.10.1"}).releases == ("0.10.1",)
    assert axolotl.range_of({"axolotl": "0.12.9"}).newest == "0.12.2"
    assert axolotl.range_of({"axolotl>=": "0.16"}).releases == every[every.index("0.16.0") :]
    assert axolotl.range_of({"axolotl": "<0.6"}).newest == "0.5.2"


def test_whether_something_dates_a_recipe() -> None:
    assert axolotl.range_of({}).undated and axolotl.range_of({"transformers": "4.46.1"}).undated
    for versions in ({"axolotl": "0.10.1"}, {"axolotl": "<0.6"}, {"axolotl>=": "0.16"}, {"axolotl@": "abc"}):
        assert not axolotl.range_of(versions).undated
    assert axolotl.read_before("eval_table_max_new_tokens") and not axolotl.read_before("eval_max_new_tokens")
    assert not axolotl.read_before("no_such_key")


@pytest.mark.parametrize("versions", [{"axolotl": "9.0"}, {"axolotl@": "abc"}, {"axolotl": "main"}, {"axolotl": "0.4"}])
def test_a_release_that_nobody_has_read(versions: dict[str, str]) -> None:
    assert axolotl.range_of(versions).open


def test_keys_by_release() -> None:
    keys = axolotl.known_keys()
    assert axolotl.range_of({"axolotl": "0.5.0"}).has(keys["relora_steps"])
    assert not axolotl.range_of({"axolotl": "0.12.0"}).has(keys["relora_steps"])
    assert not axolotl.range_of({"axolotl": "0.5.0"}).has(keys["fsdp_version"])
    assert not axolotl.range_of({}).has(keys.get("no_such_key"))
    assert {"offload_params", "reshard_after_forward", "version"} <= axolotl.section("fsdp_config").keys()
    assert "model_config" in keys and "overrides_of_model_config" in keys  # by its alias and by its name


def test_plugins_and_what_stops() -> None:
    assert axolotl.plugin_of("cut_cross_entropy") == "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"
    assert axolotl.plugin_folder("axolotl.integrations.liger.LigerPlugin") == "liger"
    assert axolotl.plugin_folder("axolotl.integrations.Own") is None and axolotl.plugin_folder("mine.Plugin") is None
    stops = axolotl.removed("max_packed_sequence_len")
    assert stops is not None and stops.by_truth and stops.words == "`max_packed_sequence_len` is no longer supported"


def test_defaults_and_files() -> None:
    assert axolotl.default("optimizer", "0.6.0") == "adamw_hf"
    assert axolotl.default("optimizer", "0.18.0") == "adamw_torch_fused"
    assert axolotl.default("no_such_key", "0.18.0") is None
    assert axolotl.pins("0.9.0")["transformers"] == "4.51.3" and axolotl.pins("9.0") == {}
    file = axolotl.deepspeed_file("zero2.json")
    assert file is not None and file["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
