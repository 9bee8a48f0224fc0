"""What Unsloth decides where TRL's configs have it otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.settings.model import BY_UNSLOTH
from tests.sources.scripts import script, values

SFT = """
    from unsloth import FastLanguageModel
    from trl import {config}, {trainer}
    model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Qwen3-0.6B"{load})
    {trainer}(model=model, args={config}({config_has})).train()
    """


def read(load: str = "", has: str = "", kind: str = "SFT") -> dict[str, Any]:
    found = script(SFT.format(load=load, config_has=has, config=f"{kind}Config", trainer=f"{kind}Trainer"))
    return values(found)


@pytest.mark.parametrize(
    ("load", "has", "length"),
    [
        ("", "", 2048),
        (", max_seq_length=4096", "", 4096),
        (", 512", "", 512),
        (", max_seq_length=4096", "max_length=256", 4096),
        (", max_seq_length=4096", "max_seq_length=256", 256),
        (", max_seq_length=4096", "max_seq_length=8192", 4096),
        (", **options", "max_length=256", 256),
    ],
)
def test_the_length_is_the_one_that_the_model_is_loaded_for(load: str, has: str, length: int) -> None:
    assert read(load, has)["seq_len"] == length


@pytest.mark.parametrize(
    ("load", "has", "bf16", "fp16"),
    [
        ("", "", True, False),
        (", dtype=None", "", True, False),
        (', dtype="float16"', "", False, True),
        (', dtype="bfloat16"', "", True, False),
        ("", "fp16=True", None, True),
        ("", "bf16=True", True, False),
    ],
)
def test_the_precision_is_that_of_the_model(load: str, has: str, bf16: object, fp16: object) -> None:
    found = read(load, has)
    assert (found["bf16"] or None, found["fp16"]) == (bf16 or None, fp16)


def test_the_loss_comes_with_the_head() -> None:
    assert read()["loss"] == "chunked"
    assert "loss" not in read(kind="DPO")
    text = SFT.replace("from trl", "from transformers").format(
        load="", config_has='"out"', config="TrainingArguments", trainer="Trainer"
    )
    assert values(script(text))["loss"] == "chunked"


def test_its_checkpointing_keeps_the_inputs_on_the_host() -> None:
    wrap = 'model = FastLanguageModel.get_peft_model(model, use_gradient_checkpointing="unsloth")'
    text = SFT.format(load="", config_has="", config="SFTConfig", trainer="SFTTrainer")
    text = text.replace("    SFTTrainer(model", f"    {wrap}\n    SFTTrainer(model")
    found = values(script(text))
    assert (found["gradient_checkpointing"], found["activation_offload"]) == (True, True)


def test_its_models_make_no_scores() -> None:
    assert read()["own_attention"] == {BY_UNSLOTH: ("flash_attention_2", True)}


ADAPTED = """
    from unsloth import FastLanguageModel, is_bfloat16_supported
    from trl import {kind}Config, {kind}Trainer
    model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Qwen3-0.6B")
    model = FastLanguageModel.get_peft_model(model, r=8{adapters})
    {kind}Trainer(model=model, args={kind}Config({has})).train()
    """


def adapted(adapters: str = "", has: str = "", kind: str = "SFT", **versions: str) -> dict[str, Any]:
    return values(script(ADAPTED.format(adapters=adapters, has=has, kind=kind), versions=versions))


@pytest.mark.parametrize(
    ("adapters", "on", "offload"),
    [
        ("", True, True),
        (', use_gradient_checkpointing="unsloth"', True, True),
        (", use_gradient_checkpointing=True", True, None),
        (", use_gradient_checkpointing=False", False, None),
    ],
)
def test_its_own_checkpointing_is_the_default(adapters: str, on: bool, offload: bool | None) -> None:
    found = adapted(adapters)
    assert (found["gradient_checkpointing"], found.get("activation_offload")) == (on, offload)
    assert found["use_reentrant"] is True


@pytest.mark.parametrize(
    ("version", "loss", "offload"),
    [("2024.8", "full", False), ("2024.12.1", "chunked", False), ("2025.9.1", "chunked", True)],
)
def test_what_its_older_versions_do(version: str, loss: str, offload: bool) -> None:
    found = adapted(unsloth=version)
    assert (found["loss"], found["activation_offload"]) == (loss, offload)
    assert found["gradient_checkpointing"] is True


@pytest.mark.parametrize(
    ("batch", "steps", "trl", "comes_to"),
    [
        (1, 1, "0.22.2", 8),
        (2, 4, "0.22.2", 2),
        (2, 4, "0.18.0", 8),
        (16, 1, "0.18.0", 16),
        (3, 8, "0.22.2", 3),
    ],
)
def test_a_batch_holds_whole_groups_of_generations(batch: int, steps: int, trl: str, comes_to: int) -> None:
    has = f"per_device_train_batch_size={batch}, gradient_accumulation_steps={steps}, num_generations=8"
    assert adapted(has=has, kind="GRPO", trl=trl)["micro_batch_size"] == comes_to


def test_a_batch_that_is_counted_out_otherwise_stays() -> None:
    has = "per_device_train_batch_size=1, num_generations=8, steps_per_generation=8"
    assert adapted(has=has, kind="GRPO", trl="0.22.2")["micro_batch_size"] == 1


def test_what_it_asks_of_the_gpu_is_bf16_where_the_gpu_has_it() -> None:
    found = adapted(has="fp16=not is_bfloat16_supported(), bf16=is_bfloat16_supported()")
    assert (found["bf16"], found.get("fp16")) == (True, None)


def test_its_patches_are_no_trainers() -> None:
    code = "from unsloth import PatchDPOTrainer\nPatchDPOTrainer()\n"
    assert values(script(code)).get("trainer") is None


@pytest.mark.parametrize(
    ("adapters", "kernels"),
    [
        ("", ("rms_norm", "rope", "lora", "lora_mlp")),
        (', lora_dropout=0, bias="none"', ("rms_norm", "rope", "lora", "lora_mlp")),
        (", lora_dropout=0.05", ("rms_norm", "rope")),
        (', bias="lora_only"', ("rms_norm", "rope")),
        (", **options", ("rms_norm", "rope")),
    ],
)
def test_its_layers_run_kernels_of_its_own(adapters: str, kernels: tuple[str, ...]) -> None:
    assert adapted(adapters)["own_kernels"] == kernels


def test_other_loaders_run_the_models_own_layers() -> None:
    assert "own_kernels" not in values(
        script(
            SFT.replace("FastLanguageModel", "FastModel").format(
                load="", config_has="", config="SFTConfig", trainer="SFTTrainer"
            )
        )
    )


def test_its_adapters_sit_on_all_linear_layers_unless_it_is_told() -> None:
    text = ADAPTED.replace("r=8{adapters}", "{adapters}")
    found = values(script(text.format(adapters="", has="", kind="SFT")))
    assert found["lora_rank"] == 16
    assert found["lora_targets"] == ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    found = values(script(text.format(adapters='r=4, target_modules=["q_proj"]', has="", kind="SFT")))
    assert (found["lora_rank"], found["lora_targets"]) == (4, ["q_proj"])
