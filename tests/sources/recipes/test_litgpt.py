from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, Document, FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.settings.values import Fsdp
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.litgpt import LitGptRecipe, read_recipe, usual_command

CONFIG = """\
checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B
precision: bf16-true
# four bits, or nothing
quantize:
lora_r: 32
lora_key: true
train:
  global_batch_size: 8
  micro_batch_size: 2
  max_seq_length: 512  # tokens
optimizer:
  class_path: torch.optim.AdamW
  init_args:
    lr: 0.0002
"""

Make = Callable[..., LitGptRecipe]


@pytest.fixture
def recipe(shell_document: Callable[[str], ShellDocument]) -> Make:
    """The recipe of one command; ``files`` by the name that the command has for them."""

    def make(command: str, files: Mapping[str, str] | None = None, gpus: int | None = None) -> LitGptRecipe:
        (launch,) = read_launches(shell_document(command))
        documents = {name: read_yaml(FileText(Path(name), text)) for name, text in (files or {}).items()}

        def world(own: Setting | None) -> Setting | None:
            return Setting("gpus", gpus, Provenance("option", "--gpus")) if gpus is not None else own

        def opened(name: str) -> Document | None:
            return documents.get(name)

        return read_recipe(launch, opened, world)

    return make


def values(found: LitGptRecipe) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


def test_flags_over_defaults(recipe: Make) -> None:
    found = values(recipe("litgpt finetune_lora microsoft/phi-2 --precision bf16-true --lora_mlp true --lora_r=16"))
    assert found["model"] == "microsoft/phi-2"
    assert (found["weights_dtype"], found["mixed_precision"], found["lora_dtype"]) == ("bf16", "no", "bf16")
    assert (found["method"], found["lora_rank"], found["micro_batch_size"]) == ("lora", 16, 1)
    assert found["gradient_accumulation_steps"] == 16
    assert {"q_proj", "v_proj", "fc1"} <= set(found["lora_targets"]) and "k_proj" not in found["lora_targets"]
    assert (found["gpus"], found["gradient_checkpointing"], found["max_grad_norm"]) == (1, False, 0.0)
    assert "fsdp" not in found and "seq_len" not in found


@pytest.mark.parametrize(
    ("precision", "weights", "autocast"),
    [
        ("bf16-true", "bf16", "no"),
        ("16-true", "fp16", "no"),
        ("32-true", "fp32", "no"),
        ("bf16-mixed", "fp32", "bf16"),
        ("16-mixed", "fp32", "fp16"),
        ("transformer-engine", UNKNOWN, UNKNOWN),
    ],
)
def test_precision(recipe: Make, precision: str, weights: Any, autocast: Any) -> None:
    found = values(recipe(f"litgpt finetune_full m --precision {precision}"))
    assert (found["weights_dtype"], found["mixed_precision"], found["method"]) == (weights, autocast, "full")


@pytest.mark.parametrize(
    ("quantizer", "expected"),
    [("bnb.nf4", "nf4"), ("bnb.nf4-dq", "nf4-double"), ("bnb.int8-training", "int8"), ("gptq.int4", UNKNOWN)],
)
def test_quantizers_page_the_optimizer(recipe: Make, quantizer: str, expected: Any) -> None:
    found = values(recipe(f"litgpt finetune m --precision bf16-true --quantize {quantizer}"))
    assert (found["quantization"], found["optimizer"]) == (expected, "paged_adamw_32bit")


def test_the_config_file(recipe: Make) -> None:
    found = recipe("litgpt finetune_lora --config lora.yaml", {"lora.yaml": CONFIG})
    said = values(found)
    assert said["model"] == "checkpoints/meta-llama/Meta-Llama-3-8B"
    assert (said["micro_batch_size"], said["gradient_accumulation_steps"], said["seq_len"]) == (2, 4, 512)
    assert "k_proj" in said["lora_targets"]
    assert said["optimizer"] == "adamw_torch"
    assert str(found.settings["seq_len"].provenance) == "lora.yaml:10"


def test_what_comes_later_on_the_command_line_wins(recipe: Make) -> None:
    """jsonargparse applies flags and files in their order."""
    after = recipe("litgpt finetune_lora --config c.yaml --train.micro_batch_size 1", {"c.yaml": CONFIG})
    before = recipe("litgpt finetune_lora --train.micro_batch_size 1 --config c.yaml", {"c.yaml": CONFIG})
    setting = after.settings["micro_batch_size"]
    assert (setting.value, [beaten.value for beaten in setting.overrode]) == (1, [2])
    assert before.settings["micro_batch_size"].value == 2


def test_more_devices_shard_and_recompute(recipe: Make) -> None:
    lora = values(recipe("litgpt finetune_lora m --devices 4 --train.global_batch_size 16"))
    assert (lora["gpus"], lora["fsdp"], lora["gradient_checkpointing"]) == (4, Fsdp(2, "FULL_SHARD"), True)
    assert lora["gradient_accumulation_steps"] == 4
    full = values(recipe("litgpt finetune_full m --devices 2 --num_nodes 2"))
    assert (full["gpus"], full["nodes"], full["fsdp"]) == (4, 2, Fsdp(1, "FULL_SHARD"))
    pretraining = values(recipe("CUDA_VISIBLE_DEVICES=0,1 litgpt pretrain pythia-160m"))
    assert (pretraining["gpus"], pretraining["gradient_checkpointing"]) == (2, False)
    assert pretraining["fsdp"] == Fsdp(1, "HYBRID_SHARD")
    assert pretraining["max_grad_norm"] == 1.0


def test_lintfits_own_count_decides_how_it_shards(recipe: Make) -> None:
    found = recipe("litgpt pretrain m --devices auto")
    assert found.settings["gpus"].value is UNKNOWN
    assert found.settings["gradient_checkpointing"].value is UNKNOWN
    told = recipe("litgpt finetune_lora m --devices auto", gpus=8)
    assert told.settings["fsdp"].value == Fsdp(2, "FULL_SHARD")


def test_a_missing_file_leaves_what_no_flag_says_unknown(recipe: Make) -> None:
    found = recipe("litgpt finetune_lora m --config https://host/lora.yaml --precision bf16-true")
    assert found.missing is not None and found.missing.value == "https://host/lora.yaml"
    said = values(found)
    assert (said["model"], said["weights_dtype"]) == ("m", "bf16")
    assert said["micro_batch_size"] is UNKNOWN and said["lora_rank"] is UNKNOWN


def test_own_adapters_are_not_counted_as_lora(recipe: Make) -> None:
    assert values(recipe("litgpt finetune_adapter_v2 m"))["method"] is UNKNOWN
    assert values(recipe("litgpt finetune adapter m"))["method"] is UNKNOWN
    assert values(recipe("litgpt finetune lora m"))["method"] == "lora"


def test_values_that_cannot_be_told(recipe: Make) -> None:
    found = values(recipe("litgpt finetune_lora $MODEL --precision $PRECISION --train.micro_batch_size $N"))
    assert all(found[name] is UNKNOWN for name in ("model", "weights_dtype", "micro_batch_size"))


@pytest.mark.parametrize("command", ["litgpt download m", "litgpt chat m", "litgpt", "litgpt finetune_qlora m"])
def test_other_commands_do_not_train(shell_document: Callable[[str], ShellDocument], command: str) -> None:
    assert read_launches(shell_document(command)) == ()


def _written(found: LitGptRecipe, name: str, value: Any) -> str:
    edits = found.write(name, value)
    assert edits
    (document,) = {edit.document for edit in edits}
    assert document is not None
    return apply(document.text, [edit.edit for edit in edits])


def test_writing_changes_the_file_only_where_it_decides(recipe: Make) -> None:
    found = recipe("litgpt finetune_lora --config c.yaml", {"c.yaml": CONFIG})
    assert _written(found, "quantization", "nf4") == CONFIG.replace("quantize:", "quantize: bnb.nf4")
    assert _written(found, "seq_len", 256) == CONFIG.replace("512", "256")
    assert _written(found, "gradient_accumulation_steps", 8) == CONFIG.replace("size: 8", "size: 16")
    assert found.write("gradient_accumulation_steps", 4) == ()
    assert found.write("gradient_checkpointing", True) is None


def test_writing_changes_the_flag_that_decides(recipe: Make) -> None:
    command = "litgpt finetune_lora --config c.yaml --train.micro_batch_size=4 --devices 1"
    found = recipe(command, {"c.yaml": CONFIG})
    assert _written(found, "micro_batch_size", 1) == command.replace("=4", "=1")


def test_writing_adds_a_flag_where_there_is_no_file(recipe: Make) -> None:
    command = "litgpt finetune_lora m --precision bf16-true"
    assert _written(recipe(command), "quantization", "nf4") == f"{command} --quantize bnb.nf4"


def test_a_key_is_added_to_a_file_that_lacks_it(recipe: Make) -> None:
    found = recipe("litgpt finetune_lora --config c.yaml", {"c.yaml": "checkpoint_dir: m\nprecision: bf16-true\n"})
    assert "micro_batch_size: 2" in _written(found, "micro_batch_size", 2)


def test_four_bits_need_one_device_and_no_autocast(recipe: Make) -> None:
    assert "quantization" in recipe("litgpt finetune_lora m --precision bf16-true").adjustable
    assert "quantization" not in recipe("litgpt finetune_lora m --precision bf16-mixed").adjustable
    assert "quantization" not in recipe("litgpt finetune_lora m --precision bf16-true --devices 2").adjustable
    assert "quantization" not in recipe("litgpt finetune_full m --precision bf16-true").adjustable


def test_a_file_of_another_kind_is_missing(recipe: Make) -> None:
    found = recipe("litgpt finetune_lora m --config c.yaml", {"c.yaml": "- a list\n"})
    assert found.missing is not None and isinstance(found.document, Document)
    assert not isinstance(found.document, DataDocument)


def test_the_checkpoint_behind_a_config(recipe: Make) -> None:
    found = recipe("litgpt finetune_lora --config c.yaml microsoft/phi-2", {"c.yaml": "lora_r: 4\n"})
    assert (found.settings["model"].value, found.settings["lora_rank"].value) == ("microsoft/phi-2", 4)


def test_keys_that_the_command_does_not_take(recipe: Make) -> None:
    """jsonargparse 4.41's words."""
    typo = CONFIG.replace("lora_r: 32", "lora_rank: 32").replace("micro_batch_size", "micro_batch_sise")
    first, second = recipe("litgpt finetune_lora --config c.yaml", {"c.yaml": typo}).refused
    assert first.error == "Validation failed: Subcommand 'finetune_lora' does not accept nested key 'lora_rank'"
    assert (first.refusal.meant, second.refusal.meant) == ("lora_r", "train.micro_batch_size")
    assert first.decides and second.decides and second.key
    full = recipe("litgpt finetune_full --config c.yaml", {"c.yaml": CONFIG})
    assert [each.name for each in full.refused] == ["quantize", "lora_r", "lora_key"]
    assert recipe("litgpt finetune_lora --config c.yaml", {"c.yaml": CONFIG}).refused == ()
    assert recipe("litgpt pretrain --config c.yaml", {"c.yaml": "model_name: pythia-14m\nresume: auto\n"}).refused == ()


def test_flags_that_the_command_does_not_take(recipe: Make) -> None:
    (refused,) = recipe("litgpt finetune_lora m --micro_batch_size 4").refused
    assert refused.error == "Unrecognized arguments: --micro_batch_size 4"
    assert refused.refusal.meant == "--train.micro_batch_size"
    quiet = "litgpt finetune_lora m --train.micro_batch 4 --data.path x --optimizer.lr 1 --lora_r=4 --print_config"
    assert recipe(quiet).refused == ()  # argparse takes the beginning of a flag for it


def test_lora_shards_with_fsdp_1_before_0_5_11(shell_document: Callable[[str], ShellDocument]) -> None:
    (launch,) = read_launches(shell_document("litgpt finetune_lora m --devices 2"))
    for version, fsdp in (("0.5.10", 1), ("0.5.11", 2)):
        found = read_recipe(launch, lambda name: None, lambda own: own, {"litgpt": version})
        assert found.settings["fsdp"].value == Fsdp(fsdp, "FULL_SHARD")


def test_mixed_precision_gives_way_to_bf16(recipe: Make) -> None:
    mixed = CONFIG.replace("bf16-true", "bf16-mixed")
    found = recipe("litgpt finetune_lora --config c.yaml", {"c.yaml": mixed})
    assert {"weights_dtype", "mixed_precision"} <= found.adjustable and "quantization" not in found.adjustable
    (edit,) = found.write("weights_dtype", "bf16") or ()
    assert apply(mixed, [edit.edit]) == CONFIG
    assert found.write("no", True) == ()


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("checkpoint_dir: a\nlora_mlp: true\ntrain: {}\n", "finetune_lora"),
        ("checkpoint_dir: a\nprecision: bf16-true\ntrain: {}\n", "finetune_full"),
        ("model_name: pythia-14m\ntrain: {}\n", "pretrain"),
    ],
)
def test_the_usual_command(text: str, command: str) -> None:
    assert usual_command(read_yaml(FileText(Path("a.yaml"), text))) == f"litgpt {command} --config a.yaml"


def test_pretraining_fills_the_model_s_block(recipe: Make) -> None:
    assert values(recipe("litgpt pretrain pythia-14m"))["seq_len"] == 512
    assert "seq_len" not in values(recipe("litgpt pretrain Llama-3.1-8B"))
    assert values(recipe("litgpt pretrain pythia-14m --train.max_seq_length 256"))["seq_len"] == 256
    own = {"c.yaml": "model_config:\n  name: mine\n  block_size: 300\n"}
    assert values(recipe("litgpt pretrain --config c.yaml", own))["seq_len"] == 300
