"""The model that a script trains: its load, casts, adapters, quantization, and the libraries' defaults."""

from __future__ import annotations

import pytest

from lintfit.settings.model import AUTO, UNKNOWN
from tests.sources.scripts import PARSED, after, script, trained, values


class TestUpcasts:
    @pytest.mark.parametrize(
        "cast",
        [
            "model.float()",
            "model = model.float()",
            "model.double()",
            "model.to(torch.float32)",
            "model.to(dtype=torch.float32)",
        ],
    )
    def test_casts_of_the_whole_model(self, cast: str) -> None:
        source = script(trained(cast))
        assert [u.call.taken for u in source.facts.upcasts] == [True]
        assert values(source)["weights_dtype"] == "fp32"

    @pytest.mark.parametrize(
        "cast",
        [
            "logits = model(**batch).logits.float()",
            "model.lm_head.float()",
            "model.transformer.prefix_encoder.float()",
            "teacher = AutoModelForCausalLM.from_pretrained('c/d'); teacher.float()",
            "mask = (x == y).float()",
            "for p in model.parameters():\n    p.data = p.data.float()",
        ],
    )
    def test_what_is_not_the_whole_model(self, cast: str) -> None:
        source = script(trained(cast))
        assert source.facts.upcasts == ()
        assert values(source)["weights_dtype"] == "bf16"

    @pytest.mark.parametrize(
        "guard",
        ['if device == "cpu":', 'if device.type == "mps":', 'if device == torch.device("cpu"):', "if args.no_cuda:"],
    )
    def test_a_test_for_a_device_without_cuda_is_marked(self, guard: str) -> None:
        source = script(trained(f"{guard}\n    model.float()"))
        assert [u.call.device_guarded for u in source.facts.upcasts] == [True]
        assert values(source)["weights_dtype"] == "bf16"

    def test_the_other_side_of_a_test_for_cuda(self) -> None:
        source = script(trained("if torch.cuda.is_available():\n    pass\nelse:\n    model.float()"))
        assert source.facts.upcasts[0].call.taken is False

    def test_a_cast_after_training_changes_nothing(self) -> None:
        source = script(trained("") + "model.half()\nmodel.save_pretrained('x')\n")
        assert values(source)["weights_dtype"] == "bf16"

    def test_a_cast_inside_an_expression_covers_its_own_part(self) -> None:
        source = script(
            "from transformers import *\nimport torch\n"
            "from transformers import AutoModelForCausalLM, Trainer\n"
            "model = AutoModelForCausalLM.from_pretrained('a/b').float().cuda()\nTrainer(model=model).train()\n"
        )
        assert source.facts.upcasts[0].lines.text == ".float()"
        assert source.facts.moves[0].lines.text == ".cuda()"
        assert source.facts.loads[0].assigned_to == "model"


def test_trl_sft_with_a_model_given_by_name() -> None:
    source = script(
        """
        from peft import LoraConfig
        from trl import SFTConfig, SFTTrainer
        config = SFTConfig(output_dir="x", max_length=4096, model_init_kwargs={"dtype": "bfloat16"}, packing=True)
        lora = LoraConfig(r=4, target_modules="all-linear")
        trainer = SFTTrainer(model="Qwen/Qwen2.5-7B", args=config, peft_config=lora)
        trainer.train()
        """
    )
    found = values(source)
    assert (found["model"], found["seq_len"], found["weights_dtype"]) == ("Qwen/Qwen2.5-7B", 4096, "bf16")
    assert (found["method"], found["lora_rank"], found["lora_targets"]) == ("lora", 4, "all-linear")
    assert found["trainer"] == "causal-lm"


def test_trl_loads_a_name_in_float32() -> None:
    source = script("from trl import SFTTrainer, SFTConfig\nSFTTrainer(model='a/b', args=SFTConfig()).train()\n")
    assert values(source)["weights_dtype"] == "fp32"
    older = script(
        "from trl import SFTTrainer, SFTConfig\nSFTTrainer(model='a/b', args=SFTConfig()).train()\n",
        versions={"trl": "0.19.1", "transformers": "5.0.0"},
    )
    assert values(older)["weights_dtype"] is AUTO


def test_trl_parser_and_get_peft_config() -> None:
    text = """
        from transformers import AutoModelForCausalLM
        from trl import GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser, get_peft_config

        def main(script_args, training_args, model_args):
            trainer = GRPOTrainer(
                model=model_args.model_name_or_path, args=training_args, peft_config=get_peft_config(model_args)
            )
            trainer.train()

        if __name__ == "__main__":
            parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
            script_args, training_args, model_args = parser.parse_args_and_config()
            main(script_args, training_args, model_args)
    """
    found = values(script(text, "--model_name_or_path a/b --use_peft --lora_r 32 --num_generations 4 --use_vllm"))
    assert (found["model"], found["trainer"], found["num_generations"]) == ("a/b", "grpo", 4)
    assert (found["method"], found["lora_rank"], found["use_vllm"]) == ("lora", 32, True)


def test_quantization_and_kbit_preparation() -> None:
    source = script(
        """
        import torch
        from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
        from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments
        bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                 bnb_4bit_compute_dtype=torch.bfloat16)
        model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=bnb)
        model = prepare_model_for_kbit_training(model)
        model = get_peft_model(model, LoraConfig(r=8))
        Trainer(model=model, args=TrainingArguments()).train()
        """
    )
    found = values(source)
    assert found["quantization"] == "nf4-double"
    assert found["gradient_checkpointing"] is True
    assert source.facts.quantization_config.arguments["bnb_4bit_compute_dtype"].value == "bf16"
    assert source.facts.checkpointing[0].name == "prepare_model_for_kbit_training"


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("model = model.quantize(4)", False),
        ("if asked():\n    model = model.quantize(8)", False),
        ("quantize_(model, int4_weight_only())", False),
        ("if None is not None:\n    model = model.quantize(4)", True),
        ("tokens = image.quantize(4)", True),
    ],
)
def test_a_model_that_other_code_quantizes(line: str, known: bool) -> None:
    settings = values(script("from torchao.quantization import quantize_\n" + trained(line)))
    assert ("quantization" not in settings) is known
    assert settings.get("quantization", UNKNOWN) is UNKNOWN


def test_kbit_preparation_of_an_unquantized_model_switches_nothing_on() -> None:
    source = script(
        trained("from peft import prepare_model_for_kbit_training\nmodel = prepare_model_for_kbit_training(model)")
    )
    assert values(source).get("gradient_checkpointing") is not True
    assert source.facts.checkpointing


def test_arguments_of_from_pretrained_are_kept_for_the_rules() -> None:
    source = script(
        "from transformers import AutoModelForCausalLM, Trainer\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b', gradient_checkpointing=True)\nTrainer(model=model)\n"
    )
    argument = source.facts.loads[0].arguments["gradient_checkpointing"]
    assert argument.value is True and argument.whole.text == "gradient_checkpointing=True"
    edits = source.remove_argument(source.facts.loads[0], "gradient_checkpointing")
    assert "from_pretrained('a/b')" in after(source, edits)


class TestLibraryDefaults:
    def test_where_nobody_says_anything_the_library_does(self) -> None:
        source = script(trained(""))
        batch = source.settings["micro_batch_size"]
        assert (batch.value, batch.provenance.kind) == (8, "default")
        assert batch.provenance.detail.startswith("transformers ")
        assert values(source)["gradient_checkpointing"] is False
        assert values(source)["optimizer"] == "adamw_torch_fused"
        assert values(source)["max_grad_norm"] == 1.0

    def test_by_version(self) -> None:
        source = script(trained(""), versions={"transformers": "4.48.1"})
        assert values(source)["optimizer"] == "adamw_torch"
        assert source.settings["optimizer"].provenance.detail == "transformers 4.48.1 default"
        assert "use_cache" not in source.settings

    def test_of_the_model_load(self) -> None:
        text = trained("").replace(", torch_dtype=torch.bfloat16", "")
        assert values(script(text))["weights_dtype"] is AUTO
        old = script(text, versions={"transformers": "4.57.1"})
        assert values(old)["weights_dtype"] == "fp32"
        assert old.settings["weights_dtype"].provenance.kind == "default"

    def test_trl_switches_checkpointing_and_bf16_on(self) -> None:
        text = "from trl import SFTConfig, SFTTrainer\nSFTTrainer('a/b', SFTConfig({})).train()\n"
        found = values(script(text.format("output_dir='x'")))
        assert found["gradient_checkpointing"] is True and found["bf16"] is True
        assert (found["seq_len"], found["loss"]) == (1024, "chunked")
        assert values(script(text.format("fp16=True")))["bf16"] is False
        older = script(text.format(""), versions={"trl": "0.19.1", "transformers": "4.52.0"})
        assert values(older)["gradient_checkpointing"] is False and values(older)["loss"] == "full"

    def test_unknown_keywords_leave_them_open(self) -> None:
        source = script(trained("").replace("output_dir='x'", "**load()"))
        assert "micro_batch_size" not in source.settings

    def test_a_config_file_leaves_them_open(self) -> None:
        text = """
            from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser
            arguments, model_config = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
            SFTTrainer(model=model_config.model_name_or_path, args=arguments).train()
        """
        found = values(script(text, "--config recipe.yaml --per_device_train_batch_size 2"))
        assert found["micro_batch_size"] == 2 and "gradient_accumulation_steps" not in found

    def test_they_decide_branches(self) -> None:
        text = PARSED.replace("if script_args.use_peft:", "if not training_args.fp16:")
        assert script(text, "--model_name_or_path a/b").facts.upcasts[0].call.taken is False
        assert script(text, "--model_name_or_path a/b --fp16").facts.upcasts[0].call.taken is True

    def test_they_pass_through_vars_and_a_namespace(self) -> None:
        text = """
            import argparse, torch, transformers
            parser = transformers.HfArgumentParser(transformers.Seq2SeqTrainingArguments)
            (training_args,) = parser.parse_args_into_dataclasses()
            args = argparse.Namespace(**vars(training_args))
            dtype = torch.float16 if args.fp16 else (torch.bfloat16 if args.bf16 else torch.float32)
            model = transformers.AutoModelForCausalLM.from_pretrained("a/b", torch_dtype=dtype)
            transformers.Seq2SeqTrainer(model=model, args=training_args).train()
        """
        assert values(script(text, "--bf16"))["weights_dtype"] == "bf16"
        assert values(script(text, "--output_dir x"))["weights_dtype"] == "fp32"


def test_targets_that_a_helper_collects_are_assumed_to_be_all_linear_layers() -> None:
    source = script(
        trained(
            "from peft import LoraConfig, get_peft_model\n"
            "def find_all_linear_names(model):\n    names = set()\n    for n, m in model.named_modules():\n"
            "        names.add(n)\n    return list(names)\n"
            "model = get_peft_model(model, LoraConfig(r=4, target_modules=find_all_linear_names(model)))"
        )
    )
    targets = source.settings["lora_targets"]
    assert (targets.value, targets.provenance.kind) == ("all-linear", "assumed")


def test_a_reference_model() -> None:
    text = (
        "from transformers import AutoModelForCausalLM\nfrom peft import LoraConfig\n"
        "from trl import {0}Config, {0}Trainer\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b')\n{0}Trainer(model, args={0}Config({1}){2}).train()\n"
    )
    assert values(script(text.format("DPO", "", "")))["reference_model"] is True
    assert values(script(text.format("DPO", "", ", peft_config=LoraConfig()")))["reference_model"] is False
    assert values(script(text.format("GRPO", "", "")))["reference_model"] is False
    assert values(script(text.format("GRPO", "beta=0.04", "")))["reference_model"] is True
    assert values(script(text.format("SFT", "", "")))["reference_model"] is False
    assert values(script(text.format("RLOO", "", "")))["reference_model"] is True
    assert values(script(text.format("GRPO", "", ""), versions={"trl": "0.17.0"}))["reference_model"] is True


HELPED = """
from transformers import AutoModelForCausalLM, HfArgumentParser, TrainingArguments
from trl import DPOTrainer, ModelConfig, get_peft_config
args, model_config = HfArgumentParser((TrainingArguments, ModelConfig)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(model_config.model_name_or_path)
peft_config = get_peft_config(model_config)
if {test}:
    reference = AutoModelForCausalLM.from_pretrained(model_config.model_name_or_path)
else:
    reference = None
Trainer = DPOTrainer
Trainer(model, reference, args=args, beta=0.1, peft_config=get_peft_config(model_config)).train()
"""


@pytest.mark.parametrize(
    ("test", "flag", "reference"),
    [
        ("peft_config is None", "--use_peft", False),
        ("peft_config is None", "", True),
        ("asked()", "--use_peft", UNKNOWN),
        ("asked()", "", True),  # where the script hands none over, TRL makes one itself
    ],
)
def test_a_reference_beside_what_trls_helper_makes_of_its_flags(test: str, flag: str, reference: object) -> None:
    launch = f"--model_name_or_path a/b --output_dir out --lora_r 4 {flag}"
    found = values(script(HELPED.format(test=test), launch))
    assert found["reference_model"] is reference
    assert "uncounted" not in found, "DPOTrainer by another name"


@pytest.mark.parametrize("more", ["", ", is_trainable=True"])
def test_a_saved_adapter_has_a_config_of_its_own(more: str) -> None:
    source = script(
        trained(f"from peft import PeftModel\nmodel = PeftModel.from_pretrained(model, '/out/adapter'{more})")
    )
    assert source.settings["method"].value == "lora"
    assert not any(source.settings[name].known for name in ("lora_rank", "lora_targets", "lora_modules_to_save"))


def test_a_model_made_out_of_sight_is_assumed_to_be_the_named_one() -> None:
    source = script(
        """
        from elsewhere import make
        from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser
        arguments, model_config = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
        SFTTrainer(model=make(model_config), args=arguments).train()
        """,
        "--model_name_or_path a/b",
    )
    assert (source.settings["model"].value, source.settings["model"].provenance.kind) == ("a/b", "assumed")
    assert "weights_dtype" not in source.settings


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("flash_attention_2", "flash_attention_2"),
        ("flash_attention_3", "flash_attention_2"),
        ("kernels-community/flash-attn2", "flash_attention_2"),
        ("kernels-community/vllm-flash-attn3@main", "flash_attention_2"),
        ("sdpa", "sdpa"),
        ("flex_attention", "flex_attention"),
        ("kernels-community/paged-attention", "kernels-community/paged-attention"),
    ],
)
def test_flash_attention_by_other_names(asked: str, known: str) -> None:
    text = f"""
        from transformers import AutoModelForCausalLM, Trainer
        from trl import SFTConfig, SFTTrainer
        model = AutoModelForCausalLM.from_pretrained("a/b", attn_implementation="{asked}")
        Trainer(model).train()
        """
    assert script(text).settings["attention"].value == known
    by_name = f"""
        from trl import SFTConfig, SFTTrainer
        args = SFTConfig(model_init_kwargs={{"attn_implementation": "{asked}"}})
        SFTTrainer("a/b", args=args).train()
        """
    assert script(by_name).settings["attention"].value == known


@pytest.mark.parametrize(("given", "known"), [("True", "flash_attention_2"), ("False", None)])
def test_the_first_switch_for_flash_attention(given: str, known: str | None) -> None:
    text = f"""
        from trl import SFTTrainer
        SFTTrainer("a/b", model_init_kwargs=dict(use_flash_attention_2={given}), args=args).train()
        """
    found = script(text).settings.get("attention")
    assert (found.value if found is not None else None) == known


@pytest.mark.parametrize(("context", "known"), [("if True:", True), ("with init_empty_weights():", False)])
def test_a_model_without_weights_has_the_dtype_of_what_fills_it(context: str, known: bool) -> None:
    text = f"""
    from accelerate import init_empty_weights
    from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments
    {context}
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained("a/b"))
    Trainer(model=model, args=TrainingArguments("out")).train()
    """
    assert (values(script(text))["weights_dtype"] is not UNKNOWN) == known


RESIZED = """
import copy
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM, Trainer, TrainingArguments
config = AutoConfig.from_pretrained("a/b"{passed})
{change}
model = {made}
Trainer(model=model, args=TrainingArguments("out")).train()
"""
OF_CONFIG = "AutoModelForCausalLM.from_config(config)"
WITH_WEIGHTS = "AutoModelForCausalLM.from_pretrained('a/b', config=config)"
ANY = "for key, value in others().items():\n    setattr(config, key, value)"


@pytest.mark.parametrize(
    ("passed", "change", "made"),
    [
        ("", "config.num_hidden_layers = 4", OF_CONFIG),
        ("", "config.num_hidden_layers = 4", WITH_WEIGHTS),
        ("", "config.hidden_size = sizes()['hidden']", "LlamaForCausalLM(config)"),
        ("", "config.update({'hidden_size': 512})", OF_CONFIG),
        ("", "config.update(others())", OF_CONFIG),
        ("", "config.update_from_string('n_layer=4,n_head=4')", OF_CONFIG),
        ("", "for key, value in {'hidden_size': 512}.items():\n    setattr(config, key, value)", OF_CONFIG),
        ("", ANY, OF_CONFIG),
        ("", "", "AutoModelForCausalLM.from_pretrained('a/b', num_hidden_layers=4)"),
        ("", "config = copy.deepcopy(config)\nconfig.num_hidden_layers = 4", OF_CONFIG),
        (", hidden_size=512", "", OF_CONFIG),
    ],
)
def test_a_config_of_other_sizes_makes_another_model(passed: str, change: str, made: str) -> None:
    assert values(script(RESIZED.format(passed=passed, change=change, made=made)))["model"] is UNKNOWN


@pytest.mark.parametrize(
    ("passed", "change", "made"),
    [
        ("", "config.use_cache = False", OF_CONFIG),
        ("", "config.update({'use_cache': False})", OF_CONFIG),
        ("", "config.update(others())", WITH_WEIGHTS),
        ("", "width = config.hidden_size", OF_CONFIG),
        ("", "config.num_key_value_heads = None", "LlamaForCausalLM(config)"),
        ("", ANY, WITH_WEIGHTS),
        (", **where()", "", OF_CONFIG),
        ("", "small = copy.deepcopy(config)\nsmall.num_hidden_layers = 4", OF_CONFIG),
        ("", "if False:\n    config.num_hidden_layers = 4", OF_CONFIG),
    ],
)
def test_a_config_of_the_same_sizes_makes_the_model_of_its_name(passed: str, change: str, made: str) -> None:
    assert values(script(RESIZED.format(passed=passed, change=change, made=made)))["model"] == "a/b"


@pytest.mark.parametrize(("line", "name"), [("--model_name_or_path own", "own"), ("--other own", None)])
def test_a_model_made_out_of_sight_is_none_that_a_default_names(line: str, name: str | None) -> None:
    text = """
    from dataclasses import dataclass
    from transformers import HfArgumentParser, Trainer, TrainingArguments
    from somewhere import make
    @dataclass
    class Own:
        model_name_or_path: str = "facebook/opt-125m"
        other: str = ""
    own, args = HfArgumentParser((Own, TrainingArguments)).parse_args_into_dataclasses()
    Trainer(model=make(own), args=args).train()
    """
    assert values(script(text, line)).get("model") == name


@pytest.mark.parametrize(
    ("resumed", "model"),
    [("last_checkpoint", "a/b"), ("args.resume_checkpoint", "a/b"), ("other_model()", UNKNOWN)],
)
def test_a_load_of_the_runs_own_checkpoint_is_of_the_model_that_it_began_with(resumed: str, model: object) -> None:
    text = (
        "from transformers import AutoModelForCausalLM, Trainer\n"
        f"if saved_before():\n    model = AutoModelForCausalLM.from_pretrained({resumed})\n"
        "else:\n    model = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(model=model).train()\n"
    )
    assert values(script(text))["model"] == model


@pytest.mark.parametrize(("passed", "known"), [("dequantize=True", None), ("", UNKNOWN), ("dequantize=x()", UNKNOWN)])
def test_a_checkpoint_that_is_made_whole_as_it_is_loaded(passed: str, known: object) -> None:
    config = f"from transformers import Mxfp4Config\nconfig = Mxfp4Config({passed})\n"
    text = config + trained("").replace("'a/b',", "'openai/gpt-oss-20b', quantization_config=config,")
    assert values(script(text))["quantization"] is known


PREPARED = "from peft import prepare_model_for_kbit_training\nmodel = prepare_model_for_kbit_training(model)"


def test_what_is_not_seen_to_load_may_be_quantized() -> None:
    text = trained(PREPARED).replace(
        "AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)", "made()"
    )
    found = values(script(text))
    assert (found["quantization"], found["gradient_checkpointing"]) == (UNKNOWN, UNKNOWN)


def test_branches_that_load_in_ways_of_their_own_leave_the_quantization_open() -> None:
    other = (
        "if something():\n    model = AutoModelForCausalLM.from_pretrained('a/b')\nelse:\n"
        "    model = AutoModelForCausalLM.from_pretrained('a/b', load_in_8bit={})\n"
    )
    first = "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\n"
    assert values(script(trained("").replace(first, other.format(True))))["quantization"] is UNKNOWN
    assert values(script(trained("").replace(first, other.format(False)))).get("quantization") is None


@pytest.mark.parametrize(
    ("passed", "behind", "load", "kernel"),
    [
        (", attn_implementation='eager'", "", "", "eager"),
        ("", "config._attn_implementation = 'eager'", "", "eager"),
        ("", "config._attn_implementation = 'eager'", ", attn_implementation='sdpa'", "sdpa"),
        ("", "if asked():\n    config._attn_implementation = 'eager'", "", UNKNOWN),
        ("", "", "", None),
    ],
)
def test_attention_that_the_config_asks_for(passed: str, behind: str, load: str, kernel: object) -> None:
    text = (
        trained("").replace("'a/b',", f"'a/b', config=config{load},").replace("AutoModel", "AutoConfig, AutoModel", 1)
    )
    made = f"config = AutoConfig.from_pretrained('a/b'{passed})\n{behind}\nmodel ="
    assert values(script(text.replace("model =", made, 1))).get("attention") == kernel
