"""What real scripts do besides the usual: frozen parts, adapters of their own, lengths in two parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.workspace import Workspace
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.sources.script.source import read_script
from tests.sources.scripts import script, values

LOAD = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("m"{more})
{between}
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def read(between: str = "", more: str = "") -> dict[str, object]:
    return values(script(LOAD.format(between=between, more=more)))


def test_nobody_knows_what_is_trained_where_layers_are_added_beside_a_frozen_part() -> None:
    frozen = "for layer in model.model.layers[:24]:\n    layer.requires_grad_(False)"
    assert read(frozen)["method"] == "full"
    added = read(f"{frozen}\nimport torch\nmodel.head2 = torch.nn.Linear(8, 8)")
    assert (added["method"], added.get("partly_frozen"), added.get("frozen_modules")) == (UNKNOWN, None, None)


@pytest.mark.parametrize(
    "statement",
    ["model.vision_tower.requires_grad_(False)", "model.requires_grad_(True)", "other.requires_grad_(False)"],
)
def test_what_does_not_freeze_the_language_model(statement: str) -> None:
    assert read(statement)["method"] == "full"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("model.vision_tower.requires_grad_(False)", ("vision_tower",)),
        ("model.model.visual.requires_grad_(False)", ("visual",)),
        ("for p in model.visual.merger.parameters():\n    p.requires_grad = False", ("visual.merger",)),
        (
            "model.vision_tower.requires_grad_(False)\nmodel.multi_modal_projector.requires_grad_(False)",
            ("vision_tower", "multi_modal_projector"),
        ),
        (
            "model.vision_tower.requires_grad_(False)\nmodel.vision_tower.requires_grad_(True)",
            ("vision_tower", "!vision_tower"),
        ),
        ("model.vision_tower.requires_grad_(True)", None),
        (
            "model.vision_tower.requires_grad_(False)\nif x:\n    model.vision_tower.requires_grad_(True)",
            ("vision_tower", "!vision_tower"),
        ),
        ("model.model.embed_tokens.requires_grad_(False)", ("embed_tokens",)),
        ("model.lm_head.requires_grad_(False)", ("lm_head",)),
        ("if x:\n    model.vision_tower.requires_grad_(False)", None),
        ("other.vision_tower.requires_grad_(False)", None),
    ],
)
def test_parts_beside_the_language_model_that_are_frozen(statement: str, expected: object) -> None:
    assert read(statement).get("frozen_modules") == expected


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("Gemma3ForCausalLM", True),
        ("AutoModelForCausalLM", AUTO),
        ("AutoLigerKernelForCausalLM", AUTO),
        ("AutoModelForImageTextToText", None),
        ("Gemma3ForConditionalGeneration", None),
    ],
)
def test_classes_that_load_the_language_model_alone(owner: str, expected: object) -> None:
    source = LOAD.format(between="", more="").replace("AutoModelForCausalLM", owner)
    assert values(script(source)).get("text_only") == expected


ALL_OFF = "for p in model.parameters():\n    p.requires_grad = False\n"
NAMED = "for n, p in model.named_parameters():\n    "


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("model.requires_grad_(False)", ("*",)),
        ("model.model.requires_grad_(False)", ("model",)),
        (ALL_OFF, ("*",)),
        (ALL_OFF + "model.lm_head.requires_grad_(True)", ("*", "!lm_head")),
        ("model.requires_grad_(False)\nfor p in model.model.layers[-2:].parameters():\n    p.requires_grad = True",
            ("*", "!model.layers[-2:]")),
        ("for layer in model.model.layers[:24]:\n    layer.requires_grad_(False)", ("model.layers[:24]",)),
        ("for layer in model.model.layers[:-2]:\n    for p in layer.parameters():\n        p.requires_grad = False",
            ("model.layers[:-2]",)),
        ("for layer in list(model.model.layers)[1:4]:\n    layer.requires_grad_(False)", ("model.layers[1:4]",)),
        ("for i, layer in enumerate(model.model.layers[:8]):\n    layer.requires_grad_(False)", ("model.layers[:8]",)),
        ("model.model.layers[0].requires_grad_(False)", ("model.layers[0]",)),
        ("for layer in model.model.layers:\n    layer.requires_grad_(False)", ("model.layers",)),
        (ALL_OFF + NAMED + "if 'head' in n:\n        p.requires_grad = True", ("*", "!*head*")),
        (NAMED + "if 'head' not in n:\n        p.requires_grad = False", ("*", "!*head*")),
        (NAMED + "if 'head' in n or 'norm' in n:\n        p.requires_grad_()\n    else:\n        p.requires_grad_(0)",
            ("*", "!*head*", "!*norm*", "!*head*", "!*norm*")),
        (NAMED + "p.requires_grad = 'layers.31' in n", ("*", "!*layers.31*")),
        (NAMED + "p.requires_grad = not n.startswith('model.embed')", ("model.embed*",)),
        (NAMED + "p.requires_grad = any(k in n for k in ['lm_head', 'layers.31.'])",
            ("*", "!*lm_head*", "!*layers.31.*")),
        (NAMED + "if n.startswith(('model.embed', 'model.layers.0.')):\n        p.requires_grad_(False)",
            ("model.embed*", "model.layers.0.*")),
        ("for n, p in model.model.named_parameters():\n    p.requires_grad = 'layers.31' in n",
            ("model", "!model.*layers.31*")),
        (ALL_OFF + "def hook(module, inputs, output):\n    output.requires_grad_(True)", ("*",)),
        (ALL_OFF + "other = AutoModelForCausalLM.from_pretrained('o')\nother.requires_grad_(True)", ("*",)),
        (ALL_OFF + "model.lm_head.weight.requires_grad = True", ("*", "!*lm_head.weight")),
        (ALL_OFF + "model.lm_head.requires_grad = True", ("*",)),
        ("model.model.embed_tokens.weight.requires_grad = False", ("*embed_tokens.weight",)),
        (ALL_OFF + "if False:\n    model.requires_grad_(True)", ("*",)),
        ("model.requires_grad_(False)\nfor p in model.parameters():\n    p.requires_grad = True", None),
        ("for p in model.parameters():\n    p.requires_grad = True", None),
        ("for p in model.parameters():\n    p.requires_grad_()", None),
        ("for p in other.parameters():\n    p.requires_grad = False", None),
        ("for p in other.parameters():\n    p.requires_grad_(False)", None),
        ("for layer in other.layers[:24]:\n    layer.requires_grad_(False)", None),
        ("reference = AutoModelForCausalLM.from_pretrained('r')\nreference.requires_grad_(False)", None),
    ],
)  # fmt: skip
def test_what_is_frozen_in_which_order(statement: str, expected: object) -> None:
    found = read(statement)
    assert (found["method"], found.get("frozen_modules")) == ("full", expected)


@pytest.mark.parametrize(
    "statement",
    [
        "for i in range(24):\n    for p in model.model.layers[i].parameters():\n        p.requires_grad_(False)",
        "for layer in model.model.layers[:n]:\n    layer.requires_grad_(False)",
        "for layer in model.model.layers[::2]:\n    layer.requires_grad_(False)",
        "for i, layer in enumerate(model.model.layers):\n    if i < 24:\n        layer.requires_grad_(False)",
        "for layer in model.model.layers[:2]:\n    layer.mlp.requires_grad_(False)",
        "if x:\n    model.requires_grad_(False)",
        NAMED + "if x and 'head' in n:\n        p.requires_grad = False",
        NAMED + "if p.ndim == 1:\n        p.requires_grad = False",
        NAMED + "if 'a' in n:\n        p.requires_grad = False\n    elif 'b' in n:\n        p.requires_grad = False",
        NAMED + "if any(k in n for k in trained):\n        p.requires_grad = False",
        ALL_OFF + "model.layers[deep].mlp.weight.requires_grad = True",
        ALL_OFF + "layer = model.model.layers[3]\nfor p in layer.mlp.parameters():\n    p.requires_grad = True",
        ALL_OFF + "def later(m):\n    m.mlp.requires_grad_()\nmodel.apply(later)",
        "model.lm_head.requires_grad_(False)\n" + NAMED + "if 'norm' not in n:\n        p.requires_grad = True",
    ],
)
def test_what_is_frozen_that_only_running_would_tell(statement: str) -> None:
    found = read(statement)
    assert (found["method"], found.get("frozen_modules"), found["partly_frozen"]) == (UNKNOWN, None, True)


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
    text = LOAD.format(between="", more="").replace('"m"', f'"{name}"')
    assert values(script(text)).get("quantization") == quantization


@pytest.mark.parametrize(
    ("name", "arguments", "quantization"),
    [
        ("unsloth/llama-3-8b", "", "nf4-double"),
        ("unsloth/llama-3-8b", ", 2048, None, False", None),
        ("unsloth/llama-3-8b", ", load_in_8bit=True, load_in_4bit=False", "int8"),
        ("unsloth/llama-3-8b-bnb-4bit", "", "nf4-double"),
        ("unsloth/llama-3-8b-bnb-4bit", ", load_in_4bit=False", None),
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


PARTS = """
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--max_source_length", type=int, default=64)
parser.add_argument("--max_target_length", type=int, default=32)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(rows):
    {computed}
    return tokenizer(rows["text"], max_length=args.max_source_length)
data = load("d").map(preprocess)
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("computed", "length", "kind"),
    [
        ("max_seq_length = args.max_source_length + args.max_target_length + 1", 97, "file"),
        ("max_seq_length = args.max_source_length; max_seq_length = args.max_source_length + 1", 65, "file"),
        (
            "max_seq_length = args.max_source_length + 40\n    max_seq_length = args.max_source_length + 1",
            104,
            "assumed",
        ),
        ("pass", 96, "assumed"),
    ],
)
def test_a_prompt_and_its_answer_are_one_sequence(computed: str, length: int, kind: str) -> None:
    setting = script(PARTS.format(computed=computed), "").settings["seq_len"]
    assert (setting.value, setting.provenance.kind) == (length, kind)


HALVES = """
import argparse
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, Seq2SeqTrainer, Seq2SeqTrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--max_source_length", type=int, default=512)
parser.add_argument("--max_target_length", type=int, default=64)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(rows):
{body}
data = load("d").map(preprocess)
model = AutoModelForSeq2SeqLM.from_pretrained("m")
Seq2SeqTrainer(model=model, args=Seq2SeqTrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("body", "lengths"),
    [
        (
            """    inputs = tokenizer(rows["text"], max_length=args.max_source_length)
    inputs["labels"] = tokenizer(text_target=rows["summary"], max_length=args.max_target_length)["input_ids"]
    return inputs""",
            (512, 64),
        ),
        (
            """    inputs = tokenizer(rows["text"], max_length=300)
    inputs["labels"] = tokenizer(text_target=rows["summary"], max_length=50)["input_ids"]
    return inputs""",
            (300, 50),
        ),
        ("""    return tokenizer(rows["text"], max_length=300)""", (300, None)),
        ("""    return tokenizer(rows["text"], text_target=rows["summary"], max_length=300)""", (300, None)),
    ],
)
def test_an_encoder_and_a_decoder_have_a_length_each(body: str, lengths: tuple[int, int | None]) -> None:
    found = values(script(HALVES.format(body=body), ""))
    assert (found["seq_len"], found.get("decoder_seq_len")) == lengths


@pytest.mark.parametrize(("use", "kind"), [("print(args.max_seq_length)", "default"), ("pass", "assumed")])
def test_a_length_that_nobody_asks_for_is_a_guess(use: str, kind: str) -> None:
    text = """
    import argparse
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_seq_length", type=int, default=4096)
    args = parser.parse_args()
    {use}
    Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out")).train()
    """
    setting = script(text.format(use=use), "").settings["seq_len"]
    assert setting.value == 4096
    assert (setting.provenance.kind == "assumed") == (kind == "assumed")


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
