"""What real scripts do besides the usual: frozen parts, adapters of their own, lengths in two parts."""

from __future__ import annotations

import pytest

from lintfit.settings import UNKNOWN
from tests.sources.scripts import script, values

LOAD = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("m"{more})
{between}
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def read(between: str = "", more: str = "") -> dict[str, object]:
    return values(script(LOAD.format(between=between, more=more)))


@pytest.mark.parametrize("statement", ["model.requires_grad_(False)", "model.model.requires_grad_(False)"])
def test_a_frozen_model_is_not_fully_trained(statement: str) -> None:
    assert read(statement)["method"] is UNKNOWN


@pytest.mark.parametrize(
    "statement",
    ["model.vision_tower.requires_grad_(False)", "model.requires_grad_(True)", "other.requires_grad_(False)"],
)
def test_what_does_not_freeze_the_language_model(statement: str) -> None:
    assert read(statement)["method"] == "full"


def test_adapters_of_the_scripts_own() -> None:
    assert read("model = convert_linear_layer_to_lora(model, 'q_proj', 8)")["method"] is UNKNOWN


def test_a_models_own_code_may_choose_its_dtype() -> None:
    plain, remote = (script(LOAD.format(between="", more=more)) for more in ("", ", trust_remote_code=True"))
    assert plain.settings["weights_dtype"].provenance.kind == "default"
    assert remote.settings["weights_dtype"].provenance.kind == "assumed"


def test_branches_that_load_in_different_dtypes() -> None:
    source = script(
        """
        import torch, transformers
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        if unknown():
            model = AutoModelForCausalLM.from_pretrained("m")
        else:
            model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.bfloat16)
        Trainer(model=model, args=TrainingArguments("out")).train()
        """
    )
    assert values(source)["weights_dtype"] is UNKNOWN


def test_prompt_and_answer_are_taken_together() -> None:
    source = script(
        """
        from dataclasses import dataclass
        from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

        @dataclass
        class Data:
            source_max_len: int = 1024
            target_max_len: int = 256

        data, args = HfArgumentParser((Data, TrainingArguments)).parse_args_into_dataclasses()
        model = AutoModelForCausalLM.from_pretrained("m")
        Trainer(model=model, args=args).train()
        """,
        "--source_max_len 16 --output_dir out",
    )
    assert (source.settings["seq_len"].value, source.settings["seq_len"].provenance.kind) == (272, "assumed")


def test_accumulation_in_a_plugin() -> None:
    source = script(
        """
        from accelerate import Accelerator
        from accelerate.utils import GradientAccumulationPlugin
        accelerator = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=4))
        accelerator.backward(loss)
        """
    )
    assert values(source)["gradient_accumulation_steps"] == 4


def test_a_flag_that_no_known_class_takes_belongs_to_the_librarys() -> None:
    source = script(
        """
        from dataclasses import dataclass
        from transformers import AutoModelForCausalLM, HfArgumentParser
        from trl import GKDConfig, GKDTrainer

        @dataclass
        class Own:
            max_prompt_length: int = 512

        own, args = HfArgumentParser((Own, GKDConfig)).parse_args_into_dataclasses()
        args.max_length = own.max_prompt_length + args.max_new_tokens
        model = AutoModelForCausalLM.from_pretrained("m")
        GKDTrainer(model=model, args=args).train()
        """,
        "--output_dir out --max_new_tokens 128",
    )
    assert values(source)["seq_len"] == 640


def test_a_deepspeed_config_that_a_helper_returns() -> None:
    source = script(
        """
        import argparse, deepspeed

        def config(offload, stage=2):
            device = "cpu" if offload else "none"
            return {
                "train_micro_batch_size_per_gpu": 4,
                "zero_optimization": {"stage": stage, "offload_optimizer": {"device": device}},
                "fp16": {"enabled": True},
            }

        parser = argparse.ArgumentParser()
        parser.add_argument("--zero_stage", type=int, default=0)
        parser.add_argument("--offload", action="store_true")
        args = parser.parse_args()
        engine, *_ = deepspeed.initialize(model=model, config=config(args.offload, args.zero_stage))
        engine.backward(loss)
        """,
        "--zero_stage 3 --offload",
    )
    said = values(source)
    assert (said["zero_stage"], said["offload_optimizer"], said["mixed_precision"]) == (3, "cpu", "fp16")
    assert said["micro_batch_size"] == 4
