from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import Document, FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.settings.values import Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.torchtune import TorchtuneRecipe, read_recipe, usual_command
from lintfit.sources.recipes.torchtune_parts import MODELS, builder

CONFIG = """\
output_dir: /tmp/out
micro: 2
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 16
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 2048  # tokens
checkpointer:
  checkpoint_dir: /tmp/Meta-Llama-3.1-8B-Instruct/
dataset:
  packed: True
batch_size: ${micro}
gradient_accumulation_steps: 8
optimizer:
  _component_: torch.optim.AdamW
  fused: True
  lr: 3e-4
loss:
  _component_: torchtune.modules.loss.LinearCrossEntropyLoss
enable_activation_checkpointing: True
enable_activation_offloading: True
clip_grad_norm: 1.0
dtype: bf16
"""
FILES = {"lora.yaml": CONFIG}
ONE = "tune run lora_finetune_single_device --config lora.yaml"
MANY = "tune run --nproc_per_node 4 lora_finetune_distributed --config lora.yaml"

Make = Callable[..., TorchtuneRecipe]


@pytest.fixture
def recipe(shell_document: Callable[[str], ShellDocument]) -> Make:
    """The recipe of one command; ``files`` by the name that the command has for them."""

    def make(
        command: str,
        files: Mapping[str, str] | None = None,
        gpus: int | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> TorchtuneRecipe:
        (launch,) = read_launches(shell_document(command))
        documents = {name: read_yaml(FileText(Path(name), text)) for name, text in (files or FILES).items()}

        def world(own: Setting | None) -> Setting | None:
            if gpus is not None:
                return Setting("gpus", gpus, Provenance("option", "--gpus"))
            return own or launch.settings.get("gpus")

        def opened(name: str) -> Document | None:
            return documents.get(name)

        return read_recipe(launch, opened, world, versions)

    return make


def values(found: TorchtuneRecipe) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


def written(found: TorchtuneRecipe, name: str, value: Any) -> str | None:
    edits = found.write(name, value)
    if edits is None:
        return None
    document = edits[0].document if edits else found.document
    assert document is not None
    return apply(document.text, [each.edit for each in edits])


def test_a_config_for_one_device(recipe: Make) -> None:
    found = recipe(ONE)
    said = values(found)
    assert said["model"] == "/tmp/Meta-Llama-3.1-8B-Instruct/"
    assert (said["method"], said["lora_rank"], said["quantization"], said["lora_dtype"]) == ("lora", 16, None, "bf16")
    assert (said["weights_dtype"], said["mixed_precision"]) == ("bf16", "no")
    assert (said["micro_batch_size"], said["gradient_accumulation_steps"], said["seq_len"]) == (2, 8, 2048)
    assert (said["gradient_checkpointing"], said["activation_offload"]) == (True, True)
    assert (said["optimizer"], said["max_grad_norm"], said["loss"]) == ("adamw_torch_fused", 1.0, "chunked")
    assert {"q_proj", "v_proj", "o_proj", "down_proj"} <= set(said["lora_targets"])
    assert "k_proj" not in said["lora_targets"] and "lm_head" not in said["lora_targets"]
    assert "fsdp" not in said
    assert str(found.settings["seq_len"].provenance) == "lora.yaml:10"
    assert found.missing is None and found.refused == ()


def test_the_builder_decides_the_shape(recipe: Make) -> None:
    """A folder that is named after no checkpoint, or after one of another shape, says nothing of the model."""
    for folder in ("/data/llama", "/tmp/Meta-Llama-3.1-70B-Instruct"):
        assert values(recipe(f"{ONE} checkpointer.checkpoint_dir={folder}"))["model"] == "meta-llama/Llama-3.1-8B"
    generic = values(recipe(f"{ONE} model=torchtune.models.llama2.lora_llama2"))
    assert generic["model"] == "/tmp/Meta-Llama-3.1-8B-Instruct/"


def test_several_devices_shard(recipe: Make) -> None:
    said = values(recipe(MANY))
    assert said["fsdp"] == Fsdp(2, "FULL_SHARD", False) and said["engine"] == "fsdp"
    offloaded = {"lora.yaml": f"{CONFIG}fsdp_cpu_offload: True\nfsdp_reshard_after_forward: False\n"}
    assert values(recipe(MANY, offloaded))["fsdp"] == Fsdp(2, "SHARD_GRAD_OP", True)
    assert values(recipe(MANY, versions={"torchtune": "0.2.1"}))["fsdp"].version == 1
    alone = values(recipe("tune run --nproc_per_node 1 lora_finetune_distributed --config lora.yaml"))
    assert "fsdp" not in alone


def test_overrides_stand_over_the_file(recipe: Make) -> None:
    found = recipe(
        f"{ONE} batch_size=4 model=torchtune.models.llama3_1.qlora_llama3_1_8b model.lora_attn_modules=[q_proj,k_proj] "
        "tokenizer.max_seq_len=null ~clip_grad_norm optimizer.fused=False"
    )
    said = values(found)
    assert (said["micro_batch_size"], said["quantization"], said["kbit_upcast"]) == (4, "nf4-double", "none")
    assert {"q_proj", "k_proj"} <= set(said["lora_targets"]) and "v_proj" not in said["lora_targets"]
    assert "seq_len" not in said and said["max_grad_norm"] == 0.0 and said["optimizer"] == "adamw_torch"
    assert [beaten.value for beaten in found.settings["micro_batch_size"].overrode] == [2]


def test_a_name_of_the_registry_stands_for_its_config(recipe: Make) -> None:
    found = recipe("tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/70B_full batch_size=1")
    said = values(found)
    assert (said["model"], said["method"], said["micro_batch_size"]) == ("meta-llama/Llama-3.1-70B", "full", 1)
    assert (said["weights_dtype"], said["gradient_checkpointing"]) == ("bf16", True)
    assert found.settings["weights_dtype"].provenance.kind == "default"
    here = {"recipes/configs/llama3_1/70B_full.yaml": CONFIG}
    assert values(recipe("tune run lora_finetune_distributed --config llama3_1/70B_full", here))["lora_rank"] == 16


def test_a_config_that_is_not_there_leaves_everything_open(recipe: Make) -> None:
    found = recipe("tune run lora_finetune_single_device --config mine/other.yaml batch_size=2")
    assert found.missing is not None and found.missing.value == "mine/other.yaml"
    said = values(found)
    assert said["micro_batch_size"] == 2
    assert said["weights_dtype"] is UNKNOWN and said["gradient_checkpointing"] is UNKNOWN


def test_a_name_that_nobody_knows_is_told(recipe: Make) -> None:
    found = recipe("tune run --nproc_per_node 2 lora_finetune_distributed --config dev/3B_sft")
    assert found.elsewhere is not None and "dev/3B_sft" in found.elsewhere
    assert recipe(ONE).elsewhere is None
    assert recipe("tune run lora_finetune_single_device --config other.yaml").elsewhere is None


def test_a_key_that_the_recipe_does_not_read_does_nothing(recipe: Make) -> None:
    """LoRA's recipes step behind the backward pass, and distillation does not offload."""
    stepping = {"lora.yaml": f"{CONFIG}optimizer_in_bwd: True\n"}
    assert values(recipe(ONE, stepping))["optimizer_in_backward"] is False
    distilled = values(recipe("tune run knowledge_distillation_single_device --config lora.yaml"))
    assert distilled["activation_offload"] is False
    dpo = values(recipe("tune run lora_dpo_single_device --config lora.yaml"))
    assert (dpo["trainer"], dpo["reference_model"], dpo["front_end"]) == ("dpo", False, "torchtune")
    of_all = values(recipe("tune run --nproc_per_node 2 full_dpo_distributed --config lora.yaml"))
    assert (of_all["method"], of_all["reference_model"]) == ("lora", True)


def test_full_fine_tuning(recipe: Make) -> None:
    config = CONFIG.replace("lora_llama3_1_8b", "llama3_1_8b").replace(
        "torch.optim.AdamW", "bitsandbytes.optim.AdamW8bit"
    )
    said = values(
        recipe("tune run full_finetune_single_device --config lora.yaml optimizer_in_bwd=True", {"lora.yaml": config})
    )
    assert (said["method"], said["quantization"], said["optimizer"]) == ("full", None, "adamw_8bit")
    assert said["optimizer_in_backward"] is True and "lora_rank" not in said
    dpo = values(recipe("tune run --nproc_per_node 2 full_dpo_distributed --config lora.yaml", {"lora.yaml": config}))
    assert dpo["reference_model"] is True


def test_some_layers_recompute_is_not_known(recipe: Make) -> None:
    command = "tune run --nproc_per_node 2 full_finetune_distributed --config lora.yaml"
    config = CONFIG.replace("enable_activation_checkpointing: True", "enable_activation_checkpointing: False")
    some = {"lora.yaml": f"{config}ac_mode: selective\nac_option: 2\n"}
    every = {"lora.yaml": f"{config}ac_mode: full\n"}
    assert values(recipe(command, some))["gradient_checkpointing"] is UNKNOWN
    assert values(recipe(command, every))["gradient_checkpointing"] is True
    assert values(recipe(ONE, every))["gradient_checkpointing"] is False  # this recipe knows no ac_mode


def test_a_teacher_lies_beside_the_model(recipe: Make) -> None:
    config = f"{CONFIG}teacher_model:\n  _component_: torchtune.models.llama3_1.llama3_1_70b\n"
    said = values(recipe("tune run knowledge_distillation_single_device --config lora.yaml", {"lora.yaml": config}))
    assert said["frozen_models"] == ({"model": "meta-llama/Llama-3.1-70B", "weights_dtype": "bf16"},)
    assert said["own_loss"] is True


def test_recipes_that_generate_are_not_trl_s(recipe: Make) -> None:
    said = values(recipe("tune run ppo_full_finetune_single_device --config mistral/7B_full_ppo_low_memory"))
    assert said["model"] == "mistralai/Mistral-7B-v0.1" and said["trainer"] is UNKNOWN and "uncounted" in said


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("micro_batch_size", 1, "batch_size: ${micro}", "batch_size: 1"),
        ("seq_len", 1024, "max_seq_len: 2048  # tokens", "max_seq_len: 1024  # tokens"),
        ("quantization", "nf4", ".lora_llama3_1_8b", ".qlora_llama3_1_8b"),
        ("optimizer", "paged_adamw_8bit", "torch.optim.AdamW\n  fused: True", "bitsandbytes.optim.PagedAdamW8bit"),
        ("gradient_accumulation_steps", 16, "accumulation_steps: 8", "accumulation_steps: 16"),
    ],
)
def test_a_setting_is_written_where_it_stands(recipe: Make, name: str, value: Any, old: str, new: str) -> None:
    assert written(recipe(ONE), name, value) == CONFIG.replace(old, new)


def test_an_override_is_rewritten_where_it_decides(recipe: Make) -> None:
    assert written(recipe(f"{ONE} batch_size=4"), "micro_batch_size", 1) == f"{ONE} batch_size=1"


def test_a_config_of_the_package_is_overridden(recipe: Make) -> None:
    command = "tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device"
    found = recipe(command)
    assert written(found, "micro_batch_size", 1) == f"{command} \\\n    batch_size=1"
    assert "optimizer" not in found.adjustable


def test_fsdp_is_written(recipe: Make) -> None:
    found = recipe(MANY)
    assert "fsdp_cpu_offload: True" in str(written(found, "fsdp", Fsdp(2, "FULL_SHARD", True)))
    assert found.write("fsdp", Fsdp(2, "FULL_SHARD", False)) == ()


def test_what_steps_inside_the_backward_pass_does_not_accumulate(recipe: Make) -> None:
    found = recipe("tune run full_finetune_single_device --config lora.yaml optimizer_in_bwd=True")
    assert not {"micro_batch_size", "gradient_accumulation_steps"} & found.adjustable
    assert found.write("gradient_accumulation_steps", 4) is None


def test_what_torchtune_refuses(recipe: Make) -> None:
    found = recipe(f"{ONE} --batch_size 4")
    (refused,) = found.refused
    assert refused.name == "--batch_size" and "Additional flag arguments not supported" in refused.error
    (refused,) = recipe(f"{ONE} epochs").refused
    assert "must be in the form of key=value" in refused.error


def test_keys_that_nothing_reads_are_told(recipe: Make) -> None:
    typo = {"lora.yaml": CONFIG.replace("enable_activation_offloading", "enable_activation_ofloading")}
    (ignored,) = recipe(ONE, typo).refused
    assert ignored.ignored and ignored.refusal.meant == "enable_activation_offloading"
    quiet = {"lora.yaml": f"{CONFIG}my_note: 3\nfsdp:\n  cpu_offload: False\n"}
    assert recipe(ONE, quiet).refused == ()
    assert recipe("tune run my/train_it.py --config lora.yaml", typo).refused == ()


def test_an_override_that_nothing_reads_is_told(recipe: Make) -> None:
    (idle,) = recipe(f"{ONE} checkpoint_dir=/data/llama output_dir=/out micro=4").refused
    assert (idle.name, idle.refusal.meant) == ("checkpoint_dir", "checkpointer.checkpoint_dir")
    assert idle.ignored and not idle.decides


@pytest.mark.parametrize(
    ("text", "name", "command"),
    [
        (f"#   tune run --nproc_per_node 2 lora_finetune_distributed --config x\n{CONFIG}", "a.yaml",
         "tune run --nproc_per_node 2 lora_finetune_distributed --config a.yaml"),
        (CONFIG, "one_single_device.yaml", "tune run lora_finetune_single_device --config one_single_device.yaml"),
        (CONFIG, "8B_lora.yaml", "tune run lora_finetune_distributed --config 8B_lora.yaml"),
        (f"#  tune run full_finetune_single_device --config x\n{CONFIG}", "b.yaml",
         "tune run lora_finetune_distributed --config b.yaml"),
        (CONFIG.replace(".lora_llama", ".llama"), "c d.yaml", "tune run full_finetune_distributed --config 'c d.yaml'"),
        (f"{CONFIG}teacher_model: {{}}\n", "kd.yaml", "tune run knowledge_distillation_distributed --config kd.yaml"),
        ("epochs: 1\n", "e.yaml", None),
    ],
)  # fmt: skip
def test_the_usual_command(text: str, name: str, command: str | None) -> None:
    assert usual_command(read_yaml(FileText(Path(name), text))) == command


def test_builders() -> None:
    built = builder("torchtune.models.qwen2_5.qlora_qwen2_5_7b_instruct")
    assert built is not None and (built.model, built.adapts, built.quantizes) == (
        "Qwen/Qwen2.5-7B-Instruct",
        True,
        True,
    )
    assert builder("mine.models.big") is None
    generic = builder("torchtune.models.llama2.lora_llama2")
    assert generic is not None and generic.model is None and generic.adapts


def test_every_builder_s_checkpoint_is_in_the_catalogue() -> None:
    from lintfit.catalog import models

    assert [name for name in MODELS.values() if models.find(name) is None] == []
