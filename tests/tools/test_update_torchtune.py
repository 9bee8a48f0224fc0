"""What the tool reads of torchtune's source."""

from __future__ import annotations

from tools.update_torchtune import commonest, config_facts, keys_read, registry, unusual

RECIPE = """\
def main(cfg):
    size = cfg.batch_size
    if cfg.get("compile", False) and "dataset_val" in cfg:
        profile(cfg.get(PROFILER_KEY, None), self._cfg.device)
    other.get("no_key"), cfg.items()
"""
REGISTRY = """\
_ALL_RECIPES = [
    Recipe(
        name="one",
        file_path="one.py",
        configs=[Config(name="a/b", file_path="a/b.yaml")],
        supports_distributed=True,
    ),
    Recipe(name="two", file_path="two.py", configs=[]),
]
"""


def test_keys_are_those_that_the_code_asks_its_config_for() -> None:
    assert set(keys_read(RECIPE)) == {"batch_size", "compile", "dataset_val", "device", "profiler"}


def test_the_registry_lists_recipes_with_their_configs() -> None:
    assert list(registry(REGISTRY)) == [("one", "one.py", True, [("a/b", "a/b.yaml")]), ("two", "two.py", False, [])]


def test_facts_are_what_decides_memory_and_is_no_default() -> None:
    text = "size: 2\nbatch_size: ${size}\nseed: 1\ncompile: False\ntokenizer:\n  max_seq_len: null\n"
    assert config_facts(text, "a.yaml") == {"batch_size": 2}


def test_what_most_have_is_written_once() -> None:
    facts = [{"dtype": "bf16", "batch_size": 1}, {"dtype": "bf16"}, {"batch_size": 2}]
    usual = commonest([dict(each) for each in facts])
    assert usual == {"dtype": "bf16"}
    assert [unusual(usual, each) for each in facts] == [{"batch_size": 1}, {}, {"batch_size": 2, "dtype": None}]
