"""torchtune's registry as the table has it."""

from __future__ import annotations

from lintfit.catalog.torchtune import registry
from lintfit.sources.recipes.torchtune_parts import builder


def test_recipes_read_their_keys() -> None:
    one = registry().recipe("lora_finetune_single_device")
    assert one is not None and not one.distributed and {"batch_size", "low_cpu_ram"} <= one.keys
    assert "optimizer_in_bwd" not in one.keys
    many = registry().recipe("recipes/full_finetune_distributed.py")
    assert many is not None and many.distributed and {"tensor_parallel_dim", "optimizer_in_bwd"} <= many.keys
    assert "memory_efficient_fsdp_wrap" in many.elsewhere
    assert registry().recipe("mine.py") is None


def test_configs_name_their_recipe_and_a_known_model() -> None:
    configs = registry().configs
    config = configs["llama3_1/8B_lora_single_device"]
    assert config.recipe == "lora_finetune_single_device"
    assert (config.facts["batch_size"], config.facts["gradient_accumulation_steps"]) == (2, 8)
    assert "optimizer_in_bwd" not in config.facts
    for name, each in configs.items():
        component = each.facts.get("model._component_")
        assert each.recipe in registry().recipes, name
        assert component is None or builder(component) is not None, name
