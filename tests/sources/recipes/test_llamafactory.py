from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, Document, FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.frozen import replace
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting
from lintfit.settings.values import Adapters, FourBits, Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.alone import usual_command
from lintfit.sources.recipes.base import Recipe
from lintfit.sources.recipes.llamafactory import read_recipe

LORA = """\
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: identity
template: llama3
output_dir: out
bf16: true
"""
FULL = LORA.replace("lora", "full")
ZERO3 = json.dumps({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})

Make = Callable[..., Recipe]


@pytest.fixture
def recipe(shell_document: Callable[[str], ShellDocument]) -> Make:
    """The recipe of one command; ``files`` by the name that the command has for them."""

    def make(
        command: str = "llamafactory-cli train r.yaml",
        files: Mapping[str, str] | str = LORA,
        versions: Mapping[str, str] | None = None,
        gpus: int | None = None,
    ) -> Recipe:
        (launch,) = read_launches(shell_document(command))
        launch = launch if launch.action is not None else replace(launch, action="train")  # its script
        texts = {"r.yaml": files} if isinstance(files, str) else files
        documents = {name: read_yaml(FileText(Path(name), text)) for name, text in texts.items()}

        def world(own: Setting | None) -> Setting | None:
            return Setting("gpus", gpus, Provenance("option", "--gpus")) if gpus is not None else own

        def opened(name: str) -> Document | None:
            return documents.get(name)

        found = read_recipe(launch, opened, world, versions)
        assert found is not None
        return found

    return make


def values(found: Recipe) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


def test_what_nobody_states(recipe: Make) -> None:
    found = values(recipe())
    assert found["model"] == "meta-llama/Meta-Llama-3-8B-Instruct"
    assert (found["method"], found["lora_rank"], found["lora_targets"]) == ("lora", 8, "all-linear")
    assert (found["seq_len"], found["gradient_checkpointing"], found["use_reentrant"]) == (2048, True, True)
    assert (found["weights_dtype"], found["bf16"], found["quantization"]) == (AUTO, True, None)
    assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == (8, 1)
    assert (found["attention"], found["packing"], found["loss"]) == ("sdpa", False, "full")


@pytest.mark.parametrize(
    ("version", "length", "dropout"), [("0.9.4", 2048, 0.0), ("0.8.3", 1024, 0.0), ("0.4.0", 1024, 0.1)]
)
def test_defaults_of_a_version(recipe: Make, version: str, length: int, dropout: float) -> None:
    found = recipe(versions={"llamafactory": version})
    assert (found.settings["seq_len"].value, found.settings["lora_dropout"].value) == (length, dropout)
    assert version in found.settings["seq_len"].provenance.detail


def test_words_stand_over_the_file(recipe: Make) -> None:
    found = recipe("llamafactory-cli train r.yaml lora_rank=64 cutoff_len=4096")
    assert (found.settings["lora_rank"].value, found.settings["seq_len"].value) == (64, 4096)


def test_flags(recipe: Make) -> None:
    command = (
        "llamafactory-cli train --stage sft --do_train --model_name_or_path gpt2 --dataset a --finetuning_type lora "
        "--lora_target q_proj,v_proj --quantization_bit 4 --flash_attn --fp16 --output_dir out --template default"
    )
    found = values(recipe(command, {}, {"llamafactory": "0.6.3"}))
    assert (found["quantization"], found["lora_targets"]) == ("nf4-double", ("q_proj", "v_proj"))
    assert (found["seq_len"], found["attention"], found["weights_dtype"]) == (1024, "flash_attention_2", "fp16")


@pytest.mark.parametrize(
    ("more", "dtype"),
    [
        ("", "fp32"),
        ("pure_bf16: true\n", AUTO),
        ("use_badam: true\n", AUTO),
        ("deepspeed: ds.json\n", AUTO),
        ("deepspeed: elsewhere.json\n", UNKNOWN),
        ("deepspeed: examples/deepspeed/ds_z3_config.json\n", AUTO),
        ("deepspeed: examples/deepspeed/ds_z2_config.json\n", "fp32"),
    ],
)
def test_what_full_tuning_casts(recipe: Make, more: str, dtype: Any) -> None:
    assert values(recipe(files={"r.yaml": FULL + more, "ds.json": ZERO3}))["weights_dtype"] is dtype


def test_older_versions_leave_half_precision_under_deepspeed(recipe: Make) -> None:
    files = {"r.yaml": FULL + "deepspeed: examples/deepspeed/ds_z2_config.json\n"}
    assert values(recipe(files=files, versions={"llamafactory": "0.7.1"}))["weights_dtype"] == "bf16"
    assert values(recipe(files=files, versions={"llamafactory": "0.8.3"}))["weights_dtype"] == "fp32"


def test_a_config_of_the_checkout(recipe: Make) -> None:
    found = values(recipe(files=FULL + "deepspeed: examples/deepspeed/ds_z3_offload_config.json\n"))
    assert (found["zero_stage"], found["offload_optimizer"], found["offload_param"]) == (3, "cpu", "cpu")


@pytest.mark.parametrize(
    ("more", "quantization"),
    [
        ("quantization_bit: 4\n", "nf4-double"),
        ("quantization_bit: 4\ndouble_quantization: false\n", "nf4"),
        ("quantization_bit: 8\n", "int8"),
        ("quantization_bit: 4\nquantization_method: hqq\n", UNKNOWN),
        ("quantization_bit: 4\nquantization_method: bitsandbytes\n", "nf4-double"),
    ],
)
def test_quantisation(recipe: Make, more: str, quantization: Any) -> None:
    assert values(recipe(files=LORA + more))["quantization"] == quantization


def test_a_word_of_another_release_quantises_nothing(recipe: Make) -> None:
    more = "quantization_bit: 4\nquantization_method: bitsandbytes\n"
    assert values(recipe(files=LORA + more, versions={"llamafactory": "0.9.4"}))["quantization"] is None


@pytest.mark.parametrize(
    ("more", "trainer", "reference"),
    [
        ("stage: dpo\n", "dpo", True),
        ("stage: dpo\npref_loss: orpo\n", "orpo", False),
        ("stage: dpo\npref_loss: simpo\n", "cpo", False),
        ("stage: kto\n", "kto", True),
        ("stage: rm\n", "reward", False),
        ("stage: pt\n", "causal-lm", False),
        ("stage: ppo\nreward_model: saves/reward\n", UNKNOWN, True),
    ],
)
def test_stages(recipe: Make, more: str, trainer: Any, reference: bool) -> None:
    found = values(recipe(files=FULL.replace("stage: sft\n", more)))
    assert (found["trainer"], found["reference_model"]) == (trainer, reference)
    adapted = values(recipe(files=LORA.replace("stage: sft\n", more)))
    assert adapted["reference_model"] is False


def test_another_reference(recipe: Make) -> None:
    found = values(recipe(files=FULL.replace("stage: sft", "stage: dpo\nref_model: gpt2")))
    assert (found["frozen_models"], found["reference_model"]) == (({"model": "gpt2"},), False)


@pytest.mark.parametrize(
    ("more", "packing", "length"),
    [
        ("stage: pt\n", True, 2048),
        ("stage: pt\npacking: true\n", True, 2047),
        ("stage: sft\npacking: true\n", True, 2048),
        ("stage: sft\nneat_packing: true\n", True, 2048),
        ("stage: dpo\npacking: true\n", False, 2048),
    ],
)
def test_packing(recipe: Make, more: str, packing: bool, length: int) -> None:
    found = values(recipe(files=LORA.replace("stage: sft\n", more)))
    assert (found["packing"], found["seq_len"]) == (packing, length)


@pytest.mark.parametrize(
    ("more", "on"),
    [
        ("disable_gradient_checkpointing: true\n", False),
        ("gradient_checkpointing: false\n", True),
        ("disable_gradient_checkpointing: true\ngradient_checkpointing: true\n", True),
    ],
)
def test_checkpointing(recipe: Make, more: str, on: bool) -> None:
    assert values(recipe(files=LORA + more))["gradient_checkpointing"] is on


def test_optimizers(recipe: Make) -> None:
    assert values(recipe(files=FULL + "use_galore: true\noptim: adamw_8bit\n"))["optimizer"] == "galore_adamw_8bit"
    layerwise = values(recipe(files=FULL + "use_apollo: true\napollo_layerwise: true\n"))
    assert layerwise["optimizer"] == "apollo_adamw_layerwise"
    assert values(recipe(files=FULL + "use_badam: true\n"))["optimizer"] == "badam"
    assert values(recipe(files=FULL + "use_adam_mini: true\n"))["optimizer"] == "adam_mini"


def test_the_last_layers(recipe: Make) -> None:
    found = values(recipe(files=FULL.replace("full", "freeze") + "freeze_trainable_layers: 4\n"))
    assert found["frozen_modules"] == ("*", "!model.layers[-4:]")
    assert found["weights_dtype"] is AUTO


def test_liger_without_logits_only_for_language_modelling(recipe: Make) -> None:
    more = "enable_liger_kernel: true\n"
    assert values(recipe(files=LORA + more))["loss"] == "liger"
    assert values(recipe(files=LORA.replace("stage: sft", "stage: dpo") + more))["loss"] == "full"


def test_a_model_that_sees(recipe: Make) -> None:
    seeing = FULL.replace("meta-llama/Meta-Llama-3-8B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct")
    found = values(recipe(files=seeing))
    assert found["frozen_modules"] == ("visual",)
    assert found["image_max_pixels"] == 768 * 768
    trains = values(recipe(files=seeing + "freeze_multi_modal_projector: false\n"))
    assert trains["frozen_modules"] == ("visual", "!visual.merger")
    adapted = values(recipe(files=seeing.replace("full", "lora")))
    assert not any("visual" in name for name in adapted["lora_targets"])


def test_workers_of_ray(recipe: Make) -> None:
    found = recipe("USE_RAY=1 llamafactory-cli train r.yaml", LORA + "ray_num_workers: 4\n")
    assert found.settings["gpus"].value == 4


def test_another_backend(recipe: Make) -> None:
    assert values(recipe(files=LORA + "use_kt: true\n"))["engine"] is UNKNOWN
    found = recipe(files=FULL + "pipeline_model_parallel_size: 4\nrecompute_granularity: full\n")
    assert (found.settings["pipeline_parallel"].value, found.settings["gradient_checkpointing"].value) == (4, True)
    assert not list(found.refused)


# -- what is refused ------------------------------------------------------------------------------------------------


def test_refused_keys(recipe: Make) -> None:
    found = list(recipe(files=LORA + "lora_rnk: 8\n").refused)
    assert [each.name for each in found] == ["lora_rnk"]
    assert found[0].refusal.meant == "lora_rank"
    assert found[0].error == "Some keys are not used by the HfArgumentParser: ['lora_rnk']"


def test_keys_that_came_and_went(recipe: Make) -> None:
    text = LORA + "freeze_trainable_layers: 2\n"
    assert not list(recipe(files=text).refused)
    (found,) = recipe(files=text, versions={"llamafactory": "0.6.3"}).refused
    assert found.name == "freeze_trainable_layers"
    assert found.history == "LLaMA-Factory 0.7.1 is the first that takes it"
    (found,) = recipe(files=LORA + "name_module_trainable: all\n", versions={"llamafactory": "0.9.5"}).refused
    assert found.history == "LLaMA-Factory 0.7.0 is the last that takes it"


def test_a_key_that_no_release_has_is_misspelt(recipe: Make) -> None:
    (found,) = recipe(files=LORA + "lora_rnk: 8\n", versions={"llamafactory": "0.9.5"}).refused
    assert (found.history, found.refusal.meant) == (None, "lora_rank")


def test_a_checkout_between_two_releases_has_keys_of_both(recipe: Make) -> None:
    text = LORA + "image_resolution: 512\ntrust_remote_code: true\n"
    assert not list(recipe(files=text).refused)
    assert list(recipe(files=text, versions={"llamafactory": "0.9.5"}).refused)


def test_extra_keys_pass_where_they_may(recipe: Make) -> None:
    (found,) = recipe("ALLOW_EXTRA_ARGS=1 llamafactory-cli train r.yaml", LORA + "lora_rnk: 8\n").refused
    assert found.ignored


def test_refused_flags(recipe: Make) -> None:
    found = recipe("llamafactory-cli train --model_name_or_path gpt2 --lora_rnk 8 --output_dir out", {})
    assert [each.name for each in found.refused] == ["--lora_rnk"]


@pytest.mark.parametrize(
    ("command", "word", "refused"),
    [
        ("llamafactory-cli train", "nca_pair", ["--pref_loss"]),
        ("deepspeed src/train.py", "nca_pair", []),  # a checkout's, which may have more of them
        ("deepspeed src/train.py", "simp0", ["--pref_loss"]),
        ("deepspeed src/train.py", "simpo", []),
    ],
)
def test_a_checkout_may_have_choices_of_its_own(recipe: Make, command: str, word: str, refused: list[str]) -> None:
    found = recipe(f"{command} --stage dpo --model_name_or_path gpt2 --pref_loss {word} --output_dir out", {})
    assert [each.name for each in found.refused] == refused


# -- writing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("micro_batch_size", 1, "per_device_train_batch_size: 1"),
        ("gradient_accumulation_steps", 16, "gradient_accumulation_steps: 16"),
        ("seq_len", 1024, "cutoff_len: 1024"),
        ("gradient_checkpointing", False, "disable_gradient_checkpointing: true"),
        ("attention", "flash_attention_2", "flash_attn: fa2"),
        ("optimizer", "adamw_8bit", "optim: adamw_8bit"),
        ("loss", "liger", "enable_liger_kernel: true"),
        ("quantization", FourBits("nf4-double", 1), "quantization_bit: 4"),
        ("quantization", FourBits("nf4", 1), "double_quantization: false"),
        ("lora_rank", 16, "lora_rank: 16"),
    ],
)
def test_writing_into_the_recipe(recipe: Make, name: str, value: Any, line: str) -> None:
    edits = recipe().write(name, value)
    assert edits is not None
    text = apply(LORA, [edit.edit for edit in edits])
    assert line in text.splitlines()


def test_a_rank_stands_with_its_adapters(recipe: Make) -> None:
    edits = recipe(files=LORA + "\nreport_to: none\n").write("lora_rank", 16)
    assert edits is not None
    text = apply(LORA + "\nreport_to: none\n", [edit.edit for edit in edits])
    before = text.splitlines()[text.splitlines().index("lora_rank: 16") - 1]
    assert before.startswith(("finetuning_type", "lora_target"))


def test_what_is_so_is_not_written(recipe: Make) -> None:
    assert recipe().write("gradient_checkpointing", True) == ()
    assert recipe(files=LORA + "quantization_bit: 4\n").write("quantization", FourBits("nf4-double", 1)) == ()


def test_writing_a_flag_and_a_word(recipe: Make) -> None:
    command = "llamafactory-cli train r.yaml cutoff_len=4096"
    edits = recipe(command).write("seq_len", 1024)
    assert edits is not None
    assert apply(command, [edit.edit for edit in edits]) == "llamafactory-cli train r.yaml cutoff_len=1024"
    flags = "llamafactory-cli train --model_name_or_path gpt2 --cutoff_len 4096"
    edits = recipe(flags, {}).write("seq_len", 1024)
    assert edits is not None
    assert apply(flags, [edit.edit for edit in edits]) == flags.replace("4096", "1024")


def test_adapters_in_the_place_of_full_tuning(recipe: Make) -> None:
    edits = recipe(files=FULL).write("method", Adapters(16, "ddp"))
    assert edits is not None
    assert "finetuning_type: lora" in apply(FULL, [edit.edit for edit in edits])


def test_a_config_of_the_checkout_only_where_it_is(recipe: Make) -> None:
    zero = {"zero_stage": 3, "offload_optimizer": "none", "offload_param": "none"}
    assert recipe(files=FULL).write("packaged_deepspeed", zero) is None
    files = {"r.yaml": FULL, "examples/deepspeed/ds_z3_config.json": ZERO3}
    edits = recipe(files=files).write("packaged_deepspeed", zero)
    assert edits is not None
    assert "deepspeed: examples/deepspeed/ds_z3_config.json" in apply(FULL, [edit.edit for edit in edits])


# -- a recipe alone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (LORA, "llamafactory-cli train r.yaml"),
        (LORA.replace("do_train: true", "do_train: false"), None),
        (LORA.replace("do_train: true", "do_train: 0"), None),
        (LORA + "export_dir: out\n", None),
        ("# Run:\n# FORCE_TORCHRUN=1 llamafactory-cli train r.yaml\n" + LORA,
         "FORCE_TORCHRUN=1 llamafactory-cli train r.yaml"),
        ("# accelerate launch \\\n#   --config_file fsdp.yaml src/train.py examples/r.yaml\n" + LORA,
         "accelerate launch --config_file fsdp.yaml src/train.py r.yaml"),
        ("model: Qwen/Qwen3-4B\ntrain_dataset: a.yaml\npeft_config:\n  name: lora\n",
         "USE_V1=1 llamafactory-cli train r.yaml"),
    ],
)  # fmt: skip
def test_how_a_recipe_is_started(text: str, command: str | None) -> None:
    document = read_yaml(FileText(Path("r.yaml"), text))
    assert isinstance(document, DataDocument)
    assert usual_command(document) == command


# -- the rewritten program ------------------------------------------------------------------------------------------

V1 = """\
model: Qwen/Qwen3-4B
train_dataset: a.yaml
dist_config:
  name: fsdp2
"""


def test_the_rewritten_program(recipe: Make) -> None:
    found = values(recipe("USE_V1=1 llamafactory-cli train r.yaml", V1))
    assert (found["method"], found["weights_dtype"], found["mixed_precision"]) == ("full", "fp32", "bf16")
    assert (found["fsdp"], found["seq_len"], found["micro_batch_size"]) == (Fsdp(2), 2048, 1)
    assert (found["optimizer"], found["gradient_checkpointing"]) == ("adamw_torch", True)


def test_its_plugins(recipe: Make) -> None:
    text = V1 + "peft_config:\n  name: lora\n  r: 16\nquant_config:\n  name: bnb\n  quantization_bit: 4\n"
    found = values(recipe("USE_V1=1 llamafactory-cli dpo r.yaml global_batch_size=32", text, gpus=4))
    assert (found["lora_rank"], found["lora_targets"], found["quantization"]) == (16, "all-linear", "nf4-double")
    assert (found["trainer"], found["reference_model"], found["gradient_accumulation_steps"]) == ("dpo", False, 8)


def test_its_loop_has_no_autocast(recipe: Make) -> None:
    text = "model: Qwen/Qwen3-4B\ntrain_dataset: a.yaml\ntemplate: qwen\n"
    assert values(recipe("USE_V1=1 llamafactory-cli train r.yaml", text))["mixed_precision"] == "no"


@pytest.mark.parametrize(
    ("way", "packs", "joins"),
    [
        ("normal", False, None),
        ("padding_free", False, True),
        ("dynamic_batching", False, None),
        ("dynamic_padding_free", True, True),
    ],
)
def test_the_second_program_fills_a_sequence_only_where_it_takes_samples_until_it_is_full(
    recipe: Make, way: str, packs: bool, joins: bool | None
) -> None:
    found = values(recipe("USE_V1=1 llamafactory-cli train r.yaml", f"{V1}batching_strategy: {way}\n"))
    assert (found["packing"], found.get("joins_samples")) == (packs, joins)
    assert (found.get("padded_batches") is False) is (joins is True)


@pytest.mark.parametrize(("stated", "texts"), [("", ["bf16"]), ("bf16: true\n", [""])])
def test_mixed_precision_takes_the_place_of_pure_bf16(recipe: Make, stated: str, texts: list[str]) -> None:
    plain = LORA.replace("bf16: true\n", "")
    edits = recipe(files=f"{plain}{stated}pure_bf16: true\n").write("bf16", True)
    assert edits is not None and [edit.edit.text for edit in edits] == texts
