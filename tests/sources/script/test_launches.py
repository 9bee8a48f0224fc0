"""What real scripts do besides the usual: dtypes that differ by branch, helpers, loaders, quantized checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.workspace import Workspace
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.source import read_script
from tests.sources.scripts import script, values

LOAD = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("{name}"{more})
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def test_a_models_own_code_may_choose_its_dtype() -> None:
    plain, remote = (script(LOAD.format(name="m", more=more)) for more in ("", ", trust_remote_code=True"))
    assert plain.settings["weights_dtype"].provenance.kind == "default"
    assert remote.settings["weights_dtype"].provenance.kind == "assumed"


def test_what_transformers_loads_is_no_model_of_peft() -> None:
    source = script(
        """
        from peft import LoraConfig, PeftModel, get_peft_model
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        model = AutoModelForCausalLM.from_pretrained("m")
        if not isinstance(model, PeftModel):
            model = get_peft_model(model, LoraConfig(r=4))
        Trainer(model=model, args=TrainingArguments("out")).train()
        """
    )
    assert values(source)["method"] == "lora"


def test_layers_that_the_code_quantizes_itself() -> None:
    source = script(
        """
        import torch
        from bitsandbytes.nn import Linear4bit
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        model = AutoModelForCausalLM.from_pretrained("m")
        for name, child in model.named_children():
            if isinstance(child, torch.nn.Linear):
                setattr(model, name, Linear4bit(child.in_features, child.out_features, quant_type="nf4"))
        Trainer(model=model, args=TrainingArguments("out")).train()
        """
    )
    assert source.settings["quantization"].value is UNKNOWN


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


TRL = """
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config, get_quantization_config
parser = TrlParser((SFTConfig, ModelConfig))
training_args, model_args = parser.parse_args_and_config()
SFTTrainer(
    model=model_args.model_name_or_path,
    args=training_args,
    quantization_config=get_quantization_config(model_args),
    peft_config=get_peft_config(model_args),
).train()
"""


@pytest.mark.parametrize(
    ("flags", "method", "quantization"),
    [
        ("", "full", None),
        ("--load_in_4bit --use_peft", "lora", "nf4"),
        ("--load_in_4bit --use_bnb_nested_quant True --use_peft", "lora", "nf4-double"),
        ("--load_in_8bit --use_peft", "lora", "int8"),
    ],
)
def test_a_trainer_that_loads_the_model_itself(flags: str, method: str, quantization: str | None) -> None:
    found = values(script(TRL, f"--model_name_or_path m {flags}"))
    assert (found["method"], found.get("quantization")) == (method, quantization)


def test_an_adapters_config_that_cannot_be_told() -> None:
    text = """
    from trl import SFTConfig, SFTTrainer
    SFTTrainer(model="m", args=SFTConfig(), peft_config=config_of_a_file()).train()
    """
    assert values(script(text, ""))["method"] is UNKNOWN


@pytest.mark.parametrize(
    ("name", "quantization"),
    [
        ("org/Meta-Llama-3.1-8B-Instruct-GPTQ-INT4", "gptq-int4"),
        ("Qwen/Qwen2-7B-Instruct-GPTQ-Int8", "gptq-int8"),
        ("org/model-4bit-gptq", "gptq-int4"),
        ("unsloth/llama-3-8b-bnb-4bit", "nf4-double"),
        ("org/Llama-2-7B-AWQ", UNKNOWN),
        ("org/Llama-2-7B-FP8-dynamic", UNKNOWN),
        ("org/Llama-2-7B-4bit-lora", None),
        ("org/Llama-2-7B", None),
    ],
)
def test_a_checkpoint_that_is_quantized_says_so(name: str, quantization: object) -> None:
    text = LOAD.format(name=name, more="")
    assert values(script(text)).get("quantization") == quantization


@pytest.mark.parametrize(
    ("name", "arguments", "quantization"),
    [
        ("unsloth/llama-3-8b", "", "nf4-double"),
        ("unsloth/llama-3-8b", ", 2048, None, False", None),
        ("unsloth/llama-3-8b", ", load_in_8bit=True, load_in_4bit=False", "int8"),
        ("unsloth/llama-3-8b-bnb-4bit", "", "nf4-double"),
        ("unsloth/llama-3-8b-bnb-4bit", ", load_in_4bit=False", None),
        ("somebody/llama-3-8b-bnb-4bit", ", load_in_4bit=False", "nf4-double"),
        ("somebody/llama-3-8b", ", load_in_4bit=False", None),
        ("unsloth/llama-3-8b-bnb-4bit", ", full_finetuning=True", None),
        ("unsloth/llama-3-8b-bnb-4bit", ", load_in_16bit=True", None),
        ("unsloth/llama-3-8b", ", load_in_4bit=args.four", UNKNOWN),
        ("unsloth/llama-3-8b", ", **options", None),
    ],
)
def test_unsloth_loads_in_four_bits_unless_told_otherwise(name: str, arguments: str, quantization: object) -> None:
    text = f"""
    from unsloth import FastLanguageModel
    from trl import SFTConfig, SFTTrainer
    model, tokenizer = FastLanguageModel.from_pretrained("{name}"{arguments})
    SFTTrainer(model=model, args=SFTConfig()).train()
    """
    assert values(script(text)).get("quantization") == quantization


def test_unsloth_quantizes_twice_and_picks_the_dtype() -> None:
    text = """
    from unsloth import FastLanguageModel
    from trl import SFTConfig, SFTTrainer
    model, tokenizer = FastLanguageModel.from_pretrained("m", dtype=None, load_in_4bit=True)
    SFTTrainer(model=model, args=SFTConfig()).train()
    """
    found = script(text)
    assert values(found)["quantization"] == "nf4-double"
    assert found.settings["weights_dtype"].value == "bf16"
    assert found.settings["weights_dtype"].provenance.kind == "assumed"


def test_a_model_that_is_loaded_out_of_any_training_is_a_guess() -> None:
    text = 'from transformers import AutoModelForCausalLM\nAutoModelForCausalLM.from_pretrained("m", dtype="float32")\n'
    assert script(text).settings["weights_dtype"].provenance.kind == "assumed"


PREFIX = """
from transformers import AutoConfig, AutoModel, Trainer, TrainingArguments
config = AutoConfig.from_pretrained("m")
config.pre_seq_len = {length}
model = AutoModel.from_pretrained("m", config=config)
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(("length", "method"), [("128", UNKNOWN), ("None", "full")])
def test_a_prefix_that_the_models_own_code_trains(length: str, method: object) -> None:
    assert values(script(PREFIX.format(length=length)))["method"] == method


def test_a_module_of_nothing_but_dataclasses_is_read(tmp_path: Path) -> None:
    (tmp_path / "arguments.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    model_name: str = 'm'\n"
    )
    (tmp_path / "train.py").write_text(
        "from arguments import Mine\n"
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
        "mine, args = HfArgumentParser((Mine, TrainingArguments)).parse_args_into_dataclasses()\n"
        "Trainer(model=AutoModelForCausalLM.from_pretrained(mine.model_name), args=args).train()\n"
    )
    workspace = Workspace(tmp_path)
    document = workspace.read(Path("train.py"))
    assert isinstance(document, PythonDocument)
    assert values(read_script(document, has_launch=True, open_file=workspace.read))["model"] == "m"
