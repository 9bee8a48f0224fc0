"""What a training script really runs, under the flags of its launch line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import FileText
from lintfit.documents.python_reader import read_python
from lintfit.settings import AUTO, UNKNOWN
from lintfit.sources.script import ScriptSource, read_script
from tests.sources.scripts import script, values

PARSED = """
    from dataclasses import dataclass, field
    from typing import List, Optional
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments

    @dataclass
    class ModelArguments:
        model_name_or_path: str = field(metadata={"help": "where from"})
        torch_dtype: Optional[str] = field(default=None)
        targets: List[str] = field(default_factory=lambda: ["q_proj", "v_proj"])

    @dataclass
    class ScriptArguments:
        use_peft: bool = field(default=True)
        rank: Optional[int] = field(default=8)
        model_max_length: int = field(default=512)

    def main():
        parser = HfArgumentParser((ModelArguments, TrainingArguments, ScriptArguments))
        model_args, training_args, script_args = parser.parse_args_into_dataclasses()
        dtype = (
            model_args.torch_dtype
            if model_args.torch_dtype in ["auto", None]
            else getattr(torch, model_args.torch_dtype)
        )
        model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, torch_dtype=dtype)
        if script_args.use_peft:
            model = get_peft_model(model, LoraConfig(r=script_args.rank, target_modules=model_args.targets))
            for param in filter(lambda p: p.requires_grad, model.parameters()):
                param.data = param.data.to(torch.float32)
        else:
            model = model.float()
        Trainer(model=model, args=training_args).train()

    if __name__ == "__main__":
        main()
"""


def after(source: ScriptSource, edits: object) -> str:
    assert edits is not None
    mine = [edit.edit for edit in edits if edit.document is source.document]  # type: ignore[attr-defined]
    return apply(source.document.text, mine)


ONE_LINE = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

if True: model = AutoModelForCausalLM.from_pretrained("a/b")
if True: model.float()
Trainer(model=model, args=TrainingArguments(output_dir="o")).train()
"""


def test_a_statement_on_the_line_of_its_if_is_taken_out_of_it() -> None:
    source = script(ONE_LINE)
    (upcast,) = source.facts.upcasts
    assert upcast.lines.text == ".float()"
    # Gradient checkpointing goes to the arguments; nothing asks for a line that does not stand there.
    assert "gradient_checkpointing=True" in after(source, source.write("gradient_checkpointing", True))


class TestFlagsDecideBranches:
    def test_the_branch_that_the_flag_selects_is_taken(self) -> None:
        source = script(PARSED, "--model_name_or_path a/b --use_peft False --torch_dtype float16 --bf16 True")
        (upcast,) = source.facts.upcasts
        assert upcast.call.taken is True
        assert upcast.lines.text == "        model = model.float()\n"
        assert values(source)["method"] == "full"
        dtype = source.settings["weights_dtype"]
        assert dtype.value == "fp32"
        assert [(old.value, old.provenance.place.text) for old in dtype.overrode] == [("fp16", "float16")]

    def test_the_other_branch_is_not(self) -> None:
        source = script(PARSED, "--model_name_or_path a/b --use_peft True --rank 64 --targets q_proj o_proj")
        (upcast,) = source.facts.upcasts
        assert upcast.call.taken is False
        found = values(source)
        assert (found["method"], found["lora_rank"], found["lora_targets"]) == ("lora", 64, ["q_proj", "o_proj"])

    def test_defaults_decide_where_the_launch_line_says_nothing(self) -> None:
        source = script(PARSED, "--model_name_or_path a/b")
        assert values(source)["method"] == "lora"
        rank = source.settings["lora_rank"]
        assert rank.value == 8
        assert rank.provenance.place is not None and rank.provenance.place.text == "8"
        assert values(source)["lora_targets"] == ["q_proj", "v_proj"]

    def test_without_a_launch_the_branch_is_open_and_the_defaults_are_assumed(self) -> None:
        source = script(PARSED)
        assert source.facts.upcasts[0].call.taken is None
        assert "model" not in source.settings
        assert source.settings["lora_rank"].provenance.kind == "assumed"
        assert source.settings["seq_len"].value == 512

    def test_a_value_points_at_the_flag(self) -> None:
        source = script(PARSED, "--model_name_or_path a/b --per_device_train_batch_size=4 --learning_rate 2e-5")
        batch = source.settings["micro_batch_size"]
        assert (batch.value, batch.provenance.place.text) == (4, "4")
        assert batch.provenance.place.document.path == Path("run.sh")
        assert values(source)["learning_rate"] == 2e-5

    @pytest.mark.parametrize("flags", ["--use_pe False", "--no_use_peft", "--use-peft no", "--use_peft 1 --use_peft 0"])
    def test_abbreviations_negations_dashes_and_repeats(self, flags: str) -> None:
        assert script(PARSED, f"--model_name_or_path a/b {flags}").facts.upcasts[0].call.taken is True

    def test_a_shell_variable_is_not_known(self) -> None:
        source = script(PARSED, "--model_name_or_path $MODEL --per_device_train_batch_size $BS")
        assert values(source)["model"] is UNKNOWN
        assert values(source)["micro_batch_size"] is UNKNOWN

    def test_the_filled_object_is_a_call_with_the_flags_as_arguments(self) -> None:
        call = script(PARSED, "--model_name_or_path a/b --bf16").facts.training_arguments
        assert call is not None and call.function == "transformers.TrainingArguments"
        assert call.arguments["bf16"].value is True
        assert call.arguments["bf16"].whole.text == "--bf16"

    def test_order_of_load_and_arguments(self) -> None:
        facts = script(PARSED, "--model_name_or_path a/b").facts
        assert facts.training_arguments.order < facts.loads[0].order < facts.trainer.order


def test_a_dataclass_that_extends_training_arguments() -> None:
    source = script(
        """
        import transformers
        from dataclasses import dataclass, field
        @dataclass
        class TrainingArguments(transformers.TrainingArguments):
            optim: str = field(default="adamw_torch")
            model_max_length: int = field(default=2048, metadata={"help": "tokens"})
        def train():
            parser = transformers.HfArgumentParser(TrainingArguments)
            (args,) = parser.parse_args_into_dataclasses()
            model = transformers.AutoModelForCausalLM.from_pretrained("a/b")
            trainer = transformers.Trainer(model=model, args=args)
            trainer.train()
        if __name__ == "__main__":
            train()
        """,
        "--fp16 True --model_max_length 1024 --gradient_checkpointing",
    )
    found = values(source)
    assert (found["optimizer"], found["seq_len"], found["fp16"]) == ("adamw_torch", 1024, True)
    assert found["gradient_checkpointing"] is True
    assert source.facts.training_arguments.function == "transformers.TrainingArguments"


ARGPARSE = """
    import argparse
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    def parse_args():
        parser = argparse.ArgumentParser()
        parser.add_argument("--model", default="a/b")
        parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
        parser.add_argument("--micro-batch-size", type=int, default=2)
        parser.add_argument("--global_batch_size", type=int, default=16)
        parser.add_argument("--upcast", action="store_true")
        group = parser.add_argument_group("more")
        group.add_argument("--deepspeed", type=str, default=None)
        return parser.parse_args()

    def build(name, dtype, **kwargs):
        kwargs["torch_dtype"] = dtype
        return AutoModelForCausalLM.from_pretrained(name, **kwargs)

    def main():
        args = parse_args()
        dtype = torch.bfloat16 if args.precision == "bf16" else torch.float32
        model = build(args.model, dtype, attn_implementation="sdpa")
        if args.upcast:
            model.float()
        arguments = TrainingArguments(
            "out",
            per_device_train_batch_size=args.micro_batch_size,
            gradient_accumulation_steps=args.global_batch_size // args.micro_batch_size,
            deepspeed=args.deepspeed,
        )
        Trainer(model, arguments).train()

    main()
"""


class TestArgparse:
    def test_helpers_are_followed_and_arithmetic_done(self) -> None:
        found = values(script(ARGPARSE, "--micro-batch-size 4"))
        assert found["weights_dtype"] == "bf16"
        assert found["attention"] == "sdpa"
        assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == (4, 4)
        assert "deepspeed" not in found

    def test_store_true(self) -> None:
        assert script(ARGPARSE, "--upcast").facts.upcasts[0].call.taken is True
        assert script(ARGPARSE, "--micro-batch-size 4").facts.upcasts[0].call.taken is False
        assert script(ARGPARSE).facts.upcasts[0].call.taken is None

    def test_the_load_inside_the_helper_is_the_trained_model(self) -> None:
        facts = script(ARGPARSE, "--deepspeed ds.json").facts
        assert facts.trained_model == "model"
        assert facts.loads[0].arguments["torch_dtype"].value == "bf16"


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


def trained(middle: str) -> str:
    return (
        "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\n"
        f"{middle}\n"
        "trainer = Trainer(model=model, args=TrainingArguments(output_dir='x'))\ntrainer.train()\n"
    )


def test_an_accelerate_loop() -> None:
    source = script(
        """
        import torch
        from accelerate import Accelerator
        from torch.utils.data import DataLoader
        from transformers import AutoModelForCausalLM

        def main():
            accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4)
            model = AutoModelForCausalLM.from_pretrained("a/b")
            model.gradient_checkpointing_enable()
            model.to(accelerator.device)
            train = DataLoader(data, shuffle=True, batch_size=3)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
            model, optimizer, train = accelerator.prepare(model, optimizer, train)
            for batch in train:
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()

        if __name__ == "__main__":
            main()
        """
    )
    found = values(source)
    assert source.facts.trains and source.facts.trained_model == "model"
    assert found["mixed_precision"] == "bf16"
    assert found["micro_batch_size"] == 3 and found["gradient_accumulation_steps"] == 4
    assert (found["optimizer"], found["learning_rate"]) == ("adamw_torch", 1e-4)
    assert found["gradient_checkpointing"] is True
    assert found["weights_dtype"] is AUTO
    assert len(source.facts.moves) == 1
    assert source.facts.initialize.name == "prepare" and source.facts.accelerator is not None


def test_deepspeed_initialize_with_a_dict() -> None:
    source = script(
        """
        import deepspeed
        from transformers import AutoModelForCausalLM
        config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}
        model = AutoModelForCausalLM.from_pretrained("a/b").cuda()
        engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        for batch in data:
            loss = engine(batch)
            engine.backward(loss)
            engine.step()
        """
    )
    assert values(source)["deepspeed"]["zero_optimization"] == {"stage": 3}
    assert values(source)["micro_batch_size"] == 2
    assert source.facts.moves[0].call.order < source.facts.initialize.order


def test_deepspeed_config_from_its_own_flag() -> None:
    source = script(
        """
        import argparse, deepspeed
        from transformers import AutoModelForCausalLM
        parser = argparse.ArgumentParser()
        parser = deepspeed.add_config_arguments(parser)
        args = parser.parse_args()
        model = AutoModelForCausalLM.from_pretrained("a/b")
        engine, *_ = deepspeed.initialize(args=args, model=model)
        engine.backward(loss)
        """,
        "--deepspeed_config ds.json",
    )
    assert values(source)["deepspeed"] == "ds.json"


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


def test_an_undecided_branch_is_neither_taken_nor_not() -> None:
    source = script(trained("if something():\n    model.float()"), "--x 1")
    assert source.facts.upcasts[0].call.taken is None
    assert values(source)["weights_dtype"] is UNKNOWN
    assert [place.text for place in source.facts.upcasts[0].call.conditions] == ["something()"]


def test_a_raise_in_a_branch_does_not_make_the_rest_doubtful() -> None:
    source = script(trained("if something():\n    raise ValueError()\nmodel.float()"), "--x 1")
    assert source.facts.upcasts[0].call.taken is True


def test_a_return_in_an_undecided_branch_does() -> None:
    source = script(
        "from transformers import AutoModelForCausalLM, Trainer\ndef main():\n    if something():\n        return\n"
        "    Trainer(model=AutoModelForCausalLM.from_pretrained('a/b'))\nmain()\n"
    )
    assert source.facts.trainer.taken is None


def test_environment_variables() -> None:
    text = trained("").replace("'a/b'", "os.environ.get('BASE', 'a/b')").replace("import torch\n", "import os, torch\n")
    assert values(script(text))["model"] == "a/b"
    assert values(script(text, env={"BASE": "c/d"}))["model"] == "c/d"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' + '/b'", "a/b"),
        ("f'{org}/b'", "a/b"),
        ("'%s/b' % org", "a/b"),
        ("'{}/b'.format(org)", "a/b"),
        ("NAMES['small']", "a/b"),
        ("NAMES.get('small')", "a/b"),
        ("os.path.join('a', 'b')", "a/b"),
        ("['x', 'a/b'][1]", "a/b"),
        ("'a/b' if 1 > 0 else 'c/d'", "a/b"),
        ("None or 'a/b'", "a/b"),
        ("(lambda: 'a/b')()", "a/b"),
        ("max(['a/b'])", "a/b"),
        ("'A/B'.lower()", "a/b"),
        ("[n for n in ['a/b', ''] if n][0]", "a/b"),
        ("'a/b' if unknown() else 'a/b'", "a/b"),
        ("unknown()", UNKNOWN),
        ("'a/b' if unknown() else 'c/d'", UNKNOWN),
        ("1 / 0", UNKNOWN),
        ("'x' * 10**12", UNKNOWN),
        ("[][3]", UNKNOWN),
        ("2 ** 10 ** 10 ** 10", UNKNOWN),
    ],
)
def test_expressions(expression: str, value: object) -> None:
    source = script(
        "import os\nfrom transformers import AutoModelForCausalLM, Trainer\norg = 'a'\nNAMES = {'small': 'a/b'}\n"
        f"name = {expression}\nmodel = AutoModelForCausalLM.from_pretrained(name)\nTrainer(model=model)\n"
    )
    assert values(source)["model"] == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(): return f()\nf()\n",
        "def f(): return g()\ndef g(): return f()\nf()\n",
        "x = x\nwhile True:\n    x = [x]\n",
        "import torch\nclass A(A):\n    pass\nA().b()\n",
        "a, *b = 1\n*a, b = c\n(a, b), c = [1, 2]\n",
        "x = [i for i in range(10**9)]\n",
        "match a:\n    case [1, *rest]:\n        b()\n    case _:\n        pass\n",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument(*x, **y)\np.add_argument()\np.parse_args().z\n",
        "from transformers import HfArgumentParser\nHfArgumentParser().parse_args_into_dataclasses()[0].x\n",
        "from transformers import Trainer\nTrainer(*a, **k).train()\n",
        "async def f():\n    await g()\n    async for x in y:\n        pass\n    async with z as w:\n        yield w\n",
        "x = " + "(" * 60 + "1" + ")" * 60 + "\n",
        "x = 1\n" + "x = x + x\n" * 3000,
        "x = []\n" + "x = [x, x]\n" * 2000 + "print(x)\n",
        "def f(n):\n" + "    f(n)\n" * 400 + "f(1)\n",
    ],
)
def test_odd_scripts_are_read_without_an_error(text: str) -> None:
    source = read_script(read_python(FileText(Path("train.py"), text)))
    assert source.facts.trains in (True, False)


def test_functions_that_call_functions_many_times_stay_within_the_budget() -> None:
    text = "def f0():\n    pass\n" + "".join(
        f"def f{i}():\n    f{i - 1}()\n    f{i - 1}()\n    f{i - 1}()\n" for i in range(1, 30)
    )
    source = read_script(read_python(FileText(Path("train.py"), text + "f29()\n")))
    assert source.walk.steps < 200_000


def test_a_script_with_a_syntax_error_says_nothing() -> None:
    source = read_script(read_python(FileText(Path("train.py"), "def (\n")))
    assert not source.facts.trains and source.settings == {}


def test_a_check_that_fails_does_not_end_the_reading() -> None:
    source = script(trained("if 1 > 0:\n    raise ValueError()\nmodel.float()"))
    assert source.facts.upcasts[0].call.taken is True


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


class TestOwnModules:
    MAIN = """
        from transformers import Trainer
        from utils.build import build, Options
        from .nothing import here
        Trainer(model=build("a/b"), args=Options().arguments()).train()
    """
    BUILD = """
        import torch
        from transformers import AutoModelForCausalLM, TrainingArguments
        BATCH = 3
        class Options:
            def arguments(self):
                return TrainingArguments(output_dir="x", per_device_train_batch_size=BATCH)
        def build(name):
            model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16)
            model.float()
            return model
    """

    def read(self) -> tuple[ScriptSource, dict[Path, str]]:
        from textwrap import dedent

        files = {Path("run/utils/build.py"): dedent(self.BUILD)}
        opened: dict[Path, object] = {}

        def open_file(path: Path) -> object:
            if path in files and path not in opened:
                opened[path] = read_python(FileText(path, files[path]))
            return opened.get(path)

        document = read_python(FileText(Path("run/train.py"), dedent(self.MAIN)))
        return read_script(document, open_file=open_file), files  # type: ignore[arg-type]

    def test_functions_and_classes_are_followed(self) -> None:
        source, _ = self.read()
        found = values(source)
        assert (found["model"], found["micro_batch_size"], found["weights_dtype"]) == ("a/b", 3, "fp32")
        assert source.settings["micro_batch_size"].provenance.place.document.path == Path("run/utils/build.py")
        assert source.facts.upcasts[0].lines.text == "    model.float()\n"

    def test_and_written_to(self) -> None:
        source, _ = self.read()
        (edit,) = source.write("micro_batch_size", 1)
        assert edit.path == Path("run/utils/build.py")
        assert "BATCH = 1\n" in apply(edit.document.text, [edit.edit])
        assert len(source.write("forced_float32", False)) == 1

    def test_without_them_the_script_is_read_alone(self) -> None:
        from textwrap import dedent

        source = read_script(read_python(FileText(Path("train.py"), dedent(self.MAIN))))
        assert source.facts.trains and "model" not in source.settings


@pytest.mark.parametrize(
    "entry",
    [
        "fire.Fire(train)",
        "typer.run(train)",
        "if __name__ == '__main__':\n    fire.Fire(train)",
        "notebook_launcher(train)",
        "",
    ],
)
def test_entries_whose_arguments_come_from_the_command_line(entry: str) -> None:
    text = (
        "import fire, typer\nfrom accelerate import notebook_launcher\n"
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "def train(base: str = 'a/b', batch: int = 4, upcast: bool = False):\n"
        "    model = AutoModelForCausalLM.from_pretrained(base)\n"
        "    if upcast:\n        model.float()\n"
        "    Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=batch)).train()\n"
        f"{entry}\n"
    )
    source = script(text, "--base c/d --upcast True")
    found = values(source)
    assert (found["model"], found["micro_batch_size"]) == ("c/d", 4)
    assert source.facts.upcasts[0].call.taken is True


def test_click_options() -> None:
    source = script(
        """
        import click
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        @click.command()
        @click.option("--base-model", default="a/b")
        @click.option("--batch", "-b", type=int, default=2)
        @click.option("--bf16", is_flag=True)
        def main(base_model, batch, bf16):
            model = AutoModelForCausalLM.from_pretrained(base_model)
            Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=batch, bf16=bf16)).train()
        if __name__ == "__main__":
            main()
        """,
        "--base-model c/d --bf16",
    )
    found = values(source)
    assert (found["model"], found["micro_batch_size"], found["bf16"]) == ("c/d", 2, True)


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


def test_a_dict_that_a_branch_not_taken_would_change() -> None:
    text = """
        from transformers import AutoModelForCausalLM
        more = {{"attn_implementation": "sdpa"}}
        if {}:
            more.update(device_map="auto")
            more.pop("attn_implementation")
        model = AutoModelForCausalLM.from_pretrained("a/b", **more)
        """
    (load,) = script(text.format("False")).facts.loads
    assert {name: given.value for name, given in load.arguments.items()} == {"attn_implementation": "sdpa"}
    (load,) = script(text.format("True")).facts.loads
    assert {name: given.value for name, given in load.arguments.items()} == {"device_map": "auto"}
    (load,) = script(text.format("elsewhere()")).facts.loads
    assert {load.arguments[name].value for name in ("device_map", "attn_implementation")} == {UNKNOWN}


@pytest.mark.filterwarnings("error")
def test_a_stray_backslash_warns_nobody() -> None:
    assert script('import torch\nname = "a\\`b"\nloss.backward()\n').facts.trains


@pytest.mark.parametrize(
    ("lines", "length"),
    [("max_length = 64", 64), ("MAX_LEN = 128  # tokens", 128), ("max_length = 64\nseq_len = 32", None)],
)
def test_a_length_that_the_script_pads_to_by_hand(lines: str, length: int | None) -> None:
    source = script(
        f"{lines}\n"
        "from transformers import AutoModelForCausalLM\n"
        'model = AutoModelForCausalLM.from_pretrained("a/b")\n'
        "loss.backward()\n"
    )
    setting = source.settings.get("seq_len")
    assert (setting.value if setting is not None else None) == length
    assert setting is None or setting.provenance.kind == "assumed"
