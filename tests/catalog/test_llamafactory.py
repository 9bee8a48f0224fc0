"""What is known of LLaMA-Factory's keys by release."""

from __future__ import annotations

import pytest

from lintfit.catalog import llamafactory as catalog


def test_versions_are_in_order() -> None:
    found = catalog.versions()
    assert found[0] == "0.2.0"
    assert catalog.first_of("0.9.3") == found.index("0.9.3")
    assert catalog.first_of("99.0") == len(found)


@pytest.mark.parametrize(("version", "length"), [("0.8.3", 1024), ("0.9.1", 2048)])
def test_defaults_by_version(version: str, length: int) -> None:
    assert catalog.fields(catalog.first_of(version))["cutoff_len"] == catalog.Field("int", length)


def test_the_data_stays_small() -> None:
    assert catalog.DATA.stat().st_size < 120_000


@pytest.mark.parametrize(
    ("given", "stated", "version"),
    [
        ([], None, catalog.versions()[-1]),
        (["model_name_or_path", "learning_rate"], None, catalog.versions()[-1]),
        (["name_module_trainable"], None, "0.7.0"),
        (["name_module_trainable"], "0.9.3", "0.9.3"),
        ([], "<0.9", "0.8.3"),
    ],
)
def test_the_version_that_keys_are_for(given: list[str], stated: str | None, version: str) -> None:
    found = catalog.version_of(given, stated)
    assert catalog.versions()[found] == version


def test_when_keys_came_and_went() -> None:
    newest = len(catalog.versions()) - 1
    assert catalog.history("name_module_trainable", newest) == "LLaMA-Factory 0.7.0 is the last that takes it"
    assert catalog.history("use_apollo", catalog.first_of("0.9.0")) == "LLaMA-Factory 0.9.2 is the first that takes it"
    assert catalog.history("cutoff_len", newest) is None
    assert catalog.history("lora_rnk", newest) is None
