"""What a training script really runs, under the flags of its launch line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import ARGPARSE, PARSED, after, script, values

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

    def test_adapters_of_another_kind_stay_unknown_without_a_launch(self) -> None:
        made = "config = RoadConfig(variant='1')\nmodel = get_peft_model(model, config)\n"
        source = script(
            "import argparse\nfrom peft import RoadConfig, get_peft_model\nfrom transformers import "
            "AutoModelForCausalLM, Trainer, TrainingArguments\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--model', default='gpt2')\nargs = parser.parse_args()\n"
            f"model = AutoModelForCausalLM.from_pretrained(args.model)\n{made}"
            "Trainer(model, TrainingArguments('out')).train()\n"
        )
        assert source.settings["model"].provenance.kind == "assumed"
        assert not source.settings["method"].known

    def test_a_value_points_at_the_flag(self) -> None:
        source = script(PARSED, "--model_name_or_path a/b --per_device_train_batch_size=4 --learning_rate 2e-5")
        batch = source.settings["micro_batch_size"]
        assert (batch.value, batch.provenance.place.text) == (4, "4")
        assert batch.provenance.place.document.path == Path("run.sh")
        assert values(source)["learning_rate"] == 2e-5

    @pytest.mark.parametrize("flags", ["--use_pe False", "--no_use_peft", "--use-peft no", "--use_peft 1 --use_peft 0"])
    def test_abbreviations_negations_dashes_and_repeats(self, flags: str) -> None:
        assert script(PARSED, f"--model_name_or_path a/b {flags}").facts.upcasts[0].call.taken is True

    @pytest.mark.parametrize(
        ("flag", "checkpoints"),
        [("--gradient_checkpoint", True), ("--gradient", False), ("--gradient_checkpointing_k x", False)],
    )
    def test_an_abbreviation_that_newer_releases_refuse_is_what_the_older_make_of_it(
        self, flag: str, checkpoints: bool
    ) -> None:
        found = values(script(PARSED, f"--model_name_or_path a/b {flag}"))
        assert (found.get("gradient_checkpointing") is True) is checkpoints

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
