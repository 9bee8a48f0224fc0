"""axolotl's recipes: what a YAML with flags comes to, by release, and how it is written back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, Document, FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.errors import CannotWrite
from lintfit.settings.model import UNKNOWN, Setting
from lintfit.settings.values import Adapters, FourBits, Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.axolotl import AxolotlRecipe, read_recipe, usual_command
from lintfit.sources.recipes.axolotl_frozen import frozen_modules

PLAIN = """\
base_model: NousResearch/Llama-3.2-1B
datasets:
  - path: mhenrichsen/alpaca_2k_test
    type: alpaca
micro_batch_size: 2
gradient_accumulation_steps: 4
"""

Make = Callable[..., AxolotlRecipe]


@pytest.fixture
def recipe(shell_document: Callable[[str], ShellDocument]) -> Make:
    """The recipe of one command, ``r.yml`` by default; ``files`` are further ones by name."""

    def make(
        text: str = PLAIN,
        command: str = "axolotl train r.yml",
        files: Mapping[str, str] | None = None,
        version: str | None = None,
    ) -> AxolotlRecipe:
        (launch,) = read_launches(shell_document(command))
        documents: dict[str, Document] = {"r.yml": read_yaml(FileText(Path("r.yml"), text))}
        for name, content in (files or {}).items():
            documents[name] = read_json(FileText(Path(name), content))

        def opened(name: str) -> Document | None:
            return documents.get(name)

        versions = {} if version is None else {"axolotl": version}
        found = read_recipe(launch, opened, lambda own: own, versions)
        assert found is not None
        return found

    return make


def values(found: AxolotlRecipe) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


def written(found: AxolotlRecipe, name: str, value: Any) -> str:
    """The recipe after a setting was written into it."""
    edits = found.write(name, value)
    assert edits
    document = found.keys.config
    assert document is not None and {edit.path for edit in edits} == {document.path}
    return apply(document.text, [edit.edit for edit in edits])


# -- defaults ---------------------------------------------------------------------------------------------------------


def test_what_is_left_out_has_axolotl_s_defaults(recipe: Make) -> None:
    found = recipe()
    said = values(found)
    assert (said["model"], said["method"], said["quantization"]) == ("NousResearch/Llama-3.2-1B", "full", None)
    assert (said["micro_batch_size"], said["gradient_accumulation_steps"], said["seq_len"]) == (2, 4, 512)
    assert (said["weights_dtype"], said["bf16"], said["fp16"]) == ("bf16", True, False)
    assert (said["optimizer"], said["gradient_checkpointing"]) == ("adamw_torch_fused", False)
    assert (said["attention"], said["packing"], said["loss"], said["trainer"]) == ("sdpa", False, "full", "causal-lm")
    assert (said["use_reentrant"], said["activation_offload"]) == (False, False)
    assert not {"deepspeed", "fsdp", "eval_batch_size"} & said.keys()
    assert "axolotl 0.18.0 default" in str(found.settings["seq_len"].provenance)


def test_defaults_go_by_release(recipe: Make) -> None:
    assert values(recipe(version="0.6.0"))["optimizer"] == "adamw_hf"
    assert values(recipe(version="0.9"))["optimizer"] == "adamw_torch_fused"


def test_a_key_without_a_value_beats_a_default(recipe: Make) -> None:
    assert values(recipe(PLAIN + "bf16:\n"))["weights_dtype"] == "fp32"


@pytest.mark.parametrize(
    ("keys", "weights", "bf16", "fp16"),
    [
        ("bf16: auto\n", "bf16", True, False),
        ("bf16: true\nfp16: true\n", "bf16", True, False),
        ("fp16: true\n", "fp16", False, True),
        ("bf16: false\nfp16: true\n", "fp16", False, True),
        ("bf16: full\n", "bf16", False, False),
        ("bf16: false\nbfloat16: true\n", "bf16", True, False),
        ("bf16: false\nfloat16: true\n", "fp16", False, False),
        ("bf16: false\n", "fp32", False, False),
        ("bf16: false\nload_in_8bit: true\nadapter: lora\n", "fp16", False, False),
        ("bf16: ${BF16}\n", UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_precision(recipe: Make, keys: str, weights: Any, bf16: Any, fp16: Any) -> None:
    found = values(recipe(PLAIN + keys))
    assert (found["weights_dtype"], found["bf16"], found["fp16"]) == (weights, bf16, fp16)


# -- adapters ---------------------------------------------------------------------------------------------------------

LORA = "lora_r: 16\nlora_dropout: 0.05\nlora_target_linear: true\n"


@pytest.mark.parametrize(
    ("keys", "quantization", "weights"),
    [
        ("adapter: qlora\nload_in_4bit: true\n", "nf4-double", "bf16"),
        (
            "adapter: qlora\nload_in_4bit: true\nbnb_config_kwargs:\n  bnb_4bit_use_double_quant: false\n",
            "nf4",
            "bf16",
        ),
        ("adapter: lora\nload_in_8bit: true\n", "int8", "bf16"),
        ("adapter: lora\n", None, "bf16"),
        # PEFT's preparation runs on what was not quantized, and casts it
        ("adapter: lora\nload_in_4bit: true\n", None, "fp32"),
        ("adapter: lora\nload_in_4bit: true\nfsdp_config:\n  fsdp_version: 2\n", None, "bf16"),
    ],
)
def test_what_is_quantized(recipe: Make, keys: str, quantization: Any, weights: str) -> None:
    found = values(recipe(PLAIN + LORA + keys))
    assert (found["quantization"], found["weights_dtype"], found["method"]) == (quantization, weights, "lora")


@pytest.mark.parametrize(
    ("version", "quantization", "weights"),
    [("0.4.0", "nf4", "bf16"), ("0.12.2", "nf4", "bf16"), ("0.13.0", None, "fp32"), (None, None, "fp32")],
)
def test_four_bits_beside_lora_until_0_13(recipe: Make, version: str | None, quantization: Any, weights: str) -> None:
    found = values(recipe(PLAIN + LORA + "adapter: lora\nload_in_4bit: true\n", version=version))
    assert (found["quantization"], found["weights_dtype"]) == (quantization, weights)


def test_adapters(recipe: Make) -> None:
    found = values(recipe(PLAIN + LORA + "adapter: lora\nlora_modules_to_save: [embed_tokens, lm_head]\n"))
    assert (found["lora_rank"], found["lora_dropout"], found["lora_targets"]) == (16, 0.05, "all-linear")
    assert (found["lora_dtype"], found["lora_modules_to_save"]) == ("fp32", ["embed_tokens", "lm_head"])
    found = values(recipe(PLAIN + "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n"))
    assert (found["lora_targets"], found["lora_dropout"]) == (("q_proj", "v_proj"), 0.0)
    found = values(recipe(PLAIN + "adapter: lora\nlora_r: 8\nlora_target_modules: '.*q_proj'\n"))
    assert found["lora_targets"] == ".*q_proj"
    found = values(recipe(PLAIN + "adapter: mora\nlora_r: 8\n"))
    assert found["method"] is UNKNOWN and "lora_rank" not in found


def test_a_checkpoint_that_is_stored_in_four_bits(recipe: Make) -> None:
    text = PLAIN.replace("NousResearch/Llama-3.2-1B", "unsloth/Llama-3.2-1B-bnb-4bit")
    found = values(recipe(text + LORA + "adapter: lora\nload_in_4bit: true\n"))
    assert str(found["quantization"]).startswith("nf4") and found["weights_dtype"] == "bf16"


def test_parameters_that_stay_trainable(recipe: Make) -> None:
    found = values(recipe(PLAIN + "unfrozen_parameters:\n  - ^lm_head.weight$\ngradient_checkpointing: true\n"))
    assert (found["method"], found["partly_frozen"], found["use_reentrant"]) == ("full", True, False)


# -- a step -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "on", "reentrant", "moved"),
    [
        ("gradient_checkpointing: true\n", True, True, False),
        ("gradient_checkpointing: true\nrl: dpo\n", True, False, False),
        ("gradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false\n", True, False, False),
        ("gradient_checkpointing: offload\n", True, True, True),
        ("gradient_checkpointing: true\nactivation_offloading: legacy\n", True, True, True),
        ("fsdp_version: 2\nfsdp_config:\n  activation_checkpointing: true\n", True, False, False),
    ],
)
def test_checkpointing(recipe: Make, keys: str, on: Any, reentrant: Any, moved: Any) -> None:
    found = values(recipe(PLAIN + keys))
    assert (found["gradient_checkpointing"], found["use_reentrant"], found["activation_offload"]) == (
        on,
        reentrant,
        moved,
    )


def test_accumulation_by_batch_size(recipe: Make) -> None:
    text = PLAIN.replace("gradient_accumulation_steps: 4", "batch_size: 16")
    assert values(recipe(text))["gradient_accumulation_steps"] == 1  # the default is filled in before it is asked
    assert values(recipe(text + "gradient_accumulation_steps:\n"))["gradient_accumulation_steps"] == 8


def test_attention_and_packing(recipe: Make) -> None:
    found = values(recipe(PLAIN + "flash_attention: true\nsample_packing: true\n"))
    assert (found["attention"], found["packing"], found["padded_batches"]) == ("flash_attention_2", True, False)
    found = values(recipe(PLAIN + "attn_implementation: kernels-community/vllm-flash-attn3\n"))
    assert found["attention"] == "flash_attention_2"
    assert values(recipe(PLAIN + "xformers_attention: true\n"))["attention"] == "xformers"


@pytest.mark.parametrize(
    ("keys", "loss"),
    [
        ("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n", "liger"),
        (
            "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\ncut_cross_entropy: false\n",
            "full",
        ),
        ("plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_rope: true\n", "full"),
        ("plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true\n", "liger"),
        ("liger_fused_linear_cross_entropy: true\n", "full"),
    ],
)
def test_a_loss_without_logits_needs_its_plugin(recipe: Make, keys: str, loss: str) -> None:
    assert values(recipe(PLAIN + keys))["loss"] == loss


def test_evaluation(recipe: Make) -> None:
    found = values(recipe(PLAIN + "val_set_size: 0.1\nevals_per_epoch: 4\n"))
    assert (found["eval_batch_size"], found["eval_accumulation_steps"]) == (2, 4)
    assert "eval_batch_size" not in values(recipe(PLAIN + "evals_per_epoch: 4\n"))
    assert "eval_batch_size" not in values(recipe(PLAIN + "val_set_size: 0.1\n"))


def test_images_need_a_processor(recipe: Make) -> None:
    assert values(recipe(PLAIN))["images"] == 0
    assert "images" not in values(recipe(PLAIN + "processor_type: AutoProcessor\n"))


def test_cut_cross_entropy_evaluates_without_logits(recipe: Make) -> None:
    """An evaluation of the training's size is nothing beside it then."""
    plugin = "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"
    asked = PLAIN + "val_set_size: 0.1\nevals_per_epoch: 4\n" + plugin
    assert "eval_batch_size" not in values(recipe(asked))
    assert "eval_batch_size" not in values(recipe(asked + "eval_batch_size: 1\n"))
    assert values(recipe(asked + "eval_batch_size: 64\n"))["eval_batch_size"] == 64
    assert values(recipe(asked + "cut_cross_entropy: false\n"))["eval_batch_size"] == 2


@pytest.mark.parametrize(
    ("keys", "trainer", "reference"),
    [
        ("rl: dpo\n", "dpo", True),
        ("rl: dpo\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n", "dpo", False),
        ("rl: orpo\n", "orpo", False),
        ("rl: simpo\n", "cpo", False),
        ("rl: kto\n", "kto", True),
        ("rl: grpo\ntrl:\n  beta: 0.01\n  num_generations: 4\n", "grpo", True),
        ("rl: grpo\n", "grpo", False),
        ("rl: ebft\n", UNKNOWN, False),
        ("reward_model: true\n", "reward", False),
    ],
)
def test_trainers(recipe: Make, keys: str, trainer: Any, reference: bool) -> None:
    found = recipe(PLAIN + keys)
    assert (values(found)["trainer"], values(found)["reference_model"]) == (trainer, reference)
    assert found.uses_trainer and found.uses_trl == keys.startswith("rl")


# -- engines ----------------------------------------------------------------------------------------------------------


def test_deepspeed_s_file_is_the_project_s_or_axolotl_s(recipe: Make) -> None:
    text = PLAIN + "deepspeed: deepspeed_configs/zero2.json\n"
    found = values(recipe(text))
    assert found["deepspeed"]["zero_optimization"]["stage"] == 2
    assert (found["zero_stage"], found["offload_optimizer"], found["offload_param"]) == (2, "cpu", "none")
    found = values(recipe(text, files={"deepspeed_configs/zero2.json": "{}"}))
    assert found["deepspeed"] == "deepspeed_configs/zero2.json" and "zero_stage" not in found
    assert values(recipe(PLAIN + "deepspeed: mine.json\n"))["deepspeed"] == "mine.json"
    found = values(recipe(PLAIN + "deepspeed:\n  zero_optimization:\n    stage: 3\n"))
    assert (found["zero_stage"], found["offload_param"]) == (3, "none")


@pytest.mark.parametrize(
    ("keys", "fsdp"),
    [
        (
            "fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  fsdp_offload_params: true\n",
            Fsdp(1, "FULL_SHARD", True),
        ),
        (
            "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: false\n",
            Fsdp(2, "SHARD_GRAD_OP", auto_wrap=False),
        ),
        ("fsdp_config:\n  fsdp_version: 2\n  offload_params: false\n", Fsdp(2, auto_wrap=False)),
        ("fsdp_config:\n  version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n", Fsdp(2)),
        ("fsdp: [shard_grad_op, auto_wrap]\n", Fsdp(1, "SHARD_GRAD_OP")),
        ("fsdp: []\nfsdp_config:\n", None),
    ],
)
def test_fsdp(recipe: Make, keys: str, fsdp: Fsdp | None) -> None:
    assert values(recipe(PLAIN + keys)).get("fsdp") == fsdp


def test_ranks_that_share(recipe: Make) -> None:
    found = values(recipe(PLAIN + "tensor_parallel_size: 2\nsequence_parallel_degree: 4\ndp_replicate_size: 2\n"))
    assert (found["tensor_parallel"], found["context_parallel"], found["replicas"]) == (2, 4, 2)


# -- the launch -------------------------------------------------------------------------------------------------------


def test_flags_beat_the_recipe(recipe: Make) -> None:
    command = (
        "axolotl train r.yml --micro-batch-size 8 --sequence_len=1024 --no-sample-packing --trl.beta 0.2 --rl grpo"
    )
    found = recipe(PLAIN + "sample_packing: true\n", command)
    said = values(found)
    assert (said["micro_batch_size"], said["seq_len"], said["packing"], said["beta"]) == (8, 1024, False, 0.2)
    assert [each.value for each in found.settings["micro_batch_size"].overrode] == [2]


@pytest.mark.parametrize(
    ("command", "gpus"),
    [
        ("axolotl train r.yml", UNKNOWN),
        ("axolotl train r.yml --num-processes 4", 4),
        ("axolotl train r.yml --launcher torchrun -- --nproc_per_node 2", 2),
        ("axolotl train r.yml --launcher torchrun", 1),
        ("axolotl train r.yml --launcher python", 1),
        ("accelerate launch --num_processes 4 -m axolotl.cli.train r.yml", 4),
        ("accelerate launch -m axolotl.cli.train r.yml", UNKNOWN),
        ("accelerate launch scripts/finetune.py r.yml", UNKNOWN),
        ("torchrun --nproc_per_node 8 --nnodes 2 -m axolotl.cli.train r.yml", 16),
        ("python -m axolotl.cli.train r.yml", 1),
        ("CUDA_VISIBLE_DEVICES=0,1 axolotl train r.yml", 2),
    ],
)
def test_processes(recipe: Make, command: str, gpus: Any) -> None:
    found = recipe(command=command)
    assert found.missing is None
    assert found.launch.settings["gpus"].value == gpus
    assert not {"nproc_per_node", "num_processes", "launcher"} & found.keys.stated.keys()


def test_the_recipe_behind_flags(recipe: Make) -> None:
    assert values(recipe(command="axolotl train --micro-batch-size 8 r.yml"))["micro_batch_size"] == 8


def test_a_recipe_that_is_not_there(recipe: Make) -> None:
    found = recipe(command="axolotl train other.yml --micro-batch-size 4")
    assert found.missing is not None and found.missing.value == "other.yml"
    assert values(found)["micro_batch_size"] == 4
    assert values(found)["model"] is UNKNOWN and values(found)["optimizer"] is UNKNOWN


def test_a_recipe_alone() -> None:
    def command(text: str) -> str | None:
        document = read_yaml(FileText(Path("a folder/r.yml"), text))
        assert isinstance(document, DataDocument)
        return usual_command(document)

    assert command(PLAIN) == "axolotl train 'a folder/r.yml'"
    assert command("base_model: x\nslices: []\nmerge_method: ties\n") is None
    assert command("base_model: x\nlora_model_dir: out\n") is None


# -- refused ----------------------------------------------------------------------------------------------------------


def refusals(found: AxolotlRecipe) -> list[tuple[str, bool, str | None]]:
    return [(each.name, each.ignored, each.refusal.meant) for each in found.refused]


def test_keys_that_are_dropped(recipe: Make) -> None:
    text = PLAIN + "gradient_checkpoint: true\nmax_seq_length: 2048\ndebug:\nfoo: bar\nliger_rope: true\n"
    found = recipe(text)
    assert refusals(found) == [
        ("gradient_checkpoint", True, "gradient_checkpointing"),
        ("max_seq_length", True, "sequence_len"),
        ("foo", True, None),
    ]
    assert [each.decides for each in found.refused] == [True, True, False]
    assert refusals(recipe(text + "plugins: [mine.Plugin]\n")) == []
    assert refusals(recipe(text, version="9.0")) == [], "a release that nobody knows"


def test_keys_that_stop_the_run(recipe: Make) -> None:
    found = recipe(PLAIN + "max_packed_sequence_len: 2048\n")
    assert [each.error for each in found.refused] == ["`max_packed_sequence_len` is no longer supported"]
    text = PLAIN + "s2_attention: true\nunsloth_rope: true\n"
    assert [each.name for each in recipe(text, version="0.17.0").refused] == ["s2_attention", "unsloth_rope"]
    assert refusals(recipe(text)) == [], "older releases take them"
    assert refusals(recipe(PLAIN + "s2_attention: false\n", version="0.17.0")) == []


def test_what_fsdp_drops(recipe: Make) -> None:
    text = (
        PLAIN
        + "fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  limit_all_gathers: true\n  offload_param: true\n"
    )
    assert refusals(recipe(text, version="0.13.0")) == [
        ("fsdp_sharding_strategy", True, None),
        ("offload_param", True, "offload_params"),
    ]
    assert refusals(recipe(text, version="0.12.0")) == []
    assert (
        refusals(recipe(f"{PLAIN}fsdp_config:\n  fsdp_sharding_strategy:\n  offload_param:\n", version="0.13.0")) == []
    )


def test_flags_that_nobody_knows(recipe: Make) -> None:
    command = "axolotl train r.yml --micro-batchsize 2 --mixed_precision bf16 --trl.beta 0.1 --lora-r 4"
    assert refusals(recipe(command=command)) == [("--micro-batchsize", False, "--micro-batch-size")]
    assert refusals(recipe(command="axolotl train r.yml --launcher torchrun -- --anything 3")) == []


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_key_is_changed_where_it_stands(recipe: Make) -> None:
    text = PLAIN.replace("micro_batch_size: 2", "micro_batch_size: 2  # as large as it goes")
    assert "micro_batch_size: 1  # as large as it goes\n" in written(recipe(text), "micro_batch_size", 1)
    assert written(recipe(), "gradient_checkpointing", True) == PLAIN + "gradient_checkpointing: true\n"
    assert recipe().write("micro_batch_size", 2) == ()


def test_a_new_key_stands_beside_its_relatives(recipe: Make) -> None:
    text = PLAIN + "bf16: auto  # half\n\nwandb_project: x\n"
    expected = PLAIN + "bf16: auto  # half\ngradient_checkpointing: true\n\nwandb_project: x\n"
    assert written(recipe(text), "gradient_checkpointing", True) == expected
    text = "{base_model: a/b, datasets: [], bf16: auto}\n"
    assert "gradient_checkpointing: true" in written(recipe(text), "gradient_checkpointing", True)
    text = PLAIN + "bf16: auto"  # the last line does not end
    assert values(recipe(written(recipe(text), "gradient_checkpointing", True)))["gradient_checkpointing"] is True


def test_a_flag_is_changed_where_it_decides(recipe: Make) -> None:
    found = recipe(command="axolotl train r.yml --micro-batch-size 8")
    (edit,) = found.write("micro_batch_size", 1) or ()
    assert edit.edit.text == "1" and edit.path == found.launch.document.path


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("seq_len", 256, "sequence_len: 256"),
        ("optimizer", "adamw_8bit", "optimizer: adamw_8bit"),
        ("deepspeed", "ds_zero3.json", "deepspeed: ds_zero3.json"),
        ("fp16", True, "fp16: true"),
        ("use_liger_kernel", True, "axolotl.integrations.liger.LigerPlugin"),
        ("method", Adapters(16, "ddp"), "adapter: lora"),
    ],
)
def test_what_is_written(recipe: Make, name: str, value: Any, line: str) -> None:
    assert line in written(recipe(), name, value)


def test_four_bits_make_it_qlora(recipe: Make) -> None:
    text = PLAIN + LORA + "adapter: lora\n"
    wanted = FourBits("nf4-double", 1)
    for _ in range(2):
        text = written(recipe(text), "quantization", wanted)
    assert "adapter: qlora\n" in text and "load_in_4bit: true\n" in text
    assert recipe(text).write("quantization", wanted) == ()
    assert values(recipe(text))["quantization"] == "nf4-double"


def test_attention_by_the_key_of_the_release(recipe: Make) -> None:
    assert "attn_implementation: flash_attention_2" in written(
        recipe(version="0.16.0"), "attention", "flash_attention_2"
    )
    assert "flash_attention: true" in written(recipe(version="0.6.0"), "attention", "flash_attention_2")


def test_a_kernel_s_switch_gives_way_to_another_s(recipe: Make) -> None:
    after = written(recipe(PLAIN + "xformers_attention:\nflash_attention: true\n"), "attention", "sdpa")
    assert after.endswith("xformers_attention:\nsdp_attention: true\n") and values(recipe(after))["attention"] == "sdpa"


@pytest.mark.parametrize("folder", ["deepspeed_configs", "/workspace/axolotl/deepspeed_configs"])
def test_fp16_takes_the_file_that_is_for_bf16_along(recipe: Make, folder: str) -> None:
    text = f"{PLAIN}bf16: auto\nfp16: false\ndeepspeed: {folder}/zero3_bf16.json\n"
    after = written(recipe(text), "fp16", True)
    assert after.endswith(f"fp16: true\ndeepspeed: {folder}/zero3.json\n")
    with pytest.raises(CannotWrite, match="axolotl brings none"):
        recipe(text.replace("zero3_bf16", "zero3_bf16_cpuoffload_all")).write("fp16", True)


def test_zero_by_axolotl_s_own_file_where_it_is_here(recipe: Make) -> None:
    wanted = {"zero_stage": 3, "offload_optimizer": "none", "offload_param": "none"}
    assert recipe().write("packaged_deepspeed", wanted) is None
    found = recipe(files={"deepspeed_configs/zero3_bf16.json": "{}"})
    assert "deepspeed: deepspeed_configs/zero3_bf16.json\n" in written(found, "packaged_deepspeed", wanted)
    found = recipe(PLAIN + "deepspeed: deepspeed_configs/zero1.json\n")
    assert "deepspeed_configs/zero3_bf16.json" in written(found, "packaged_zero_stage", 3)
    assert "deepspeed_configs/zero2.json" in written(found, "packaged_zero_stage", 2)
    assert recipe(PLAIN + "deepspeed: mine.json\n").write("packaged_zero_stage", 3) is None


def test_fsdp_is_written_in_its_own_style(recipe: Make) -> None:
    text = (
        PLAIN
        + "fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  fsdp_offload_params: false\n  fsdp_use_orig_params: false\n"
    )
    assert "  fsdp_offload_params: true\n" in written(recipe(text), "fsdp", Fsdp(1, "FULL_SHARD", True))
    text = PLAIN + "fsdp_version: 2\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    assert "  offload_params: true\n" in written(recipe(text), "fsdp", Fsdp(2, "FULL_SHARD", True))
    assert recipe(text).write("fsdp", Fsdp(2)) == ()


def test_how_a_person_says_it(recipe: Make) -> None:
    found = recipe(command="axolotl train r.yml --micro-batch-size 8")
    assert found.spelled("per_device_train_batch_size", 4) == "--micro-batch-size 4"
    assert found.spelled("gradient_checkpointing", True) == "gradient_checkpointing: true"
    assert found.spelled("no_such_argument", 1) is None
    stated = found.argument("max_length")
    assert isinstance(stated, Setting) and stated.value == 512


def test_fsdp_2_keeps_what_trains_in_half_precision(recipe: Make) -> None:
    text = PLAIN + "fsdp_version: 2\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    assert values(recipe(text))["fsdp_upcast"] is False
    assert "fsdp_upcast" not in values(recipe(text, version="0.10.0"))
    assert "fsdp_upcast" not in values(recipe(text + LORA + "adapter: lora\n"))
    assert "fsdp_upcast" not in values(recipe(PLAIN + "fsdp: [full_shard, auto_wrap]\n"))


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["^lm_head.weight$", "model.layers"], ("*", "!lm_head.weight", "!model.layers*")),
        (["model.language_model.*"], ("*", "!model.language_model*")),
        (["^model.embed_tokens.weight$[:32000]"], ("*", "!model.embed_tokens.weight")),
        (["model.layers.4[0-1]+.mlp"], ("*", "!model.layers.40.mlp*", "!model.layers.41.mlp*")),
        (["model.layers.(1|2).mlp"], None),
        (["[0-9]+[0-9]+[0-9]+"], None),
        ("lm_head", None),
        ([1], None),
    ],
)
def test_expressions_of_parameters(patterns: object, names: tuple[str, ...] | None) -> None:
    assert frozen_modules(patterns) == names


def test_a_checkpoint_that_is_dequantized_as_it_loads(recipe: Make) -> None:
    text = PLAIN + "model_quantization_config: Mxfp4Config\n"
    assert values(recipe(text))["quantization"] is UNKNOWN
    assert values(recipe(text + "model_quantization_config_kwargs:\n  dequantize: true\n"))["quantization"] is None


def test_a_service_that_trains_elsewhere(recipe: Make) -> None:
    found = values(recipe(PLAIN + "plugins: [axolotl.integrations.hatchery.HatcheryPlugin]\n"))
    assert found["method"] is UNKNOWN and found["model"] == "NousResearch/Llama-3.2-1B"


def test_fused_experts_are_quantized_where_it_is_asked_for(recipe: Make) -> None:
    text = PLAIN + LORA + "adapter: qlora\nload_in_4bit: true\nquantize_moe_experts: true\n"
    found = values(recipe(text))
    assert (found["quantized_experts"], found["kbit_upcast"]) == (True, "none")
