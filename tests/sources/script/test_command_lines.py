"""Command lines as tyro, fire and click read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import Document, FileText, Kind
from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

USE = """
    m = AutoModelForCausalLM.from_pretrained(name)
    Trainer(model=m, args=TrainingArguments("out", bf16=bf16, per_device_train_batch_size=micro)).train()
"""
HEAD = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"

TYRO = """
import tyro
from dataclasses import dataclass, field
@dataclass
class Train:
    micro: int = 4
    bf16: bool = True
@dataclass
class Config:
    name: str = "m"
    train: Train = field(default_factory=Train)
    other: Train = field(default_factory=lambda: Train(micro=8))
def main(config):
    name, micro, bf16 = config.name, config.train.micro, config.other.bf16
"""

FIRE = """
import fire
def train(name, micro=4, bf16=True):
"""

CLICK = """
import click
@click.command()
@click.option("--model", "-m", "name", default="m")
@click.option("--micro-batch", "micro", type=int, default=4)
@click.option("--bf16/--no-bf16", default=True)
def train(name, micro, bf16):
"""

CLICK_ON = """
import click
def train(*, name, micro, bf16):
{use}
@click.command()
@click.option("--model", "-m", "name", default="m")
@click.option("--micro-batch", "micro", type=int, default=4)
@click.option("--bf16/--no-bf16", default=True)
def main(**kwargs):
    train(**kwargs)
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("line", "expected"), [("", ("m", 4, True)), ("-m n --micro-batch 2", ("n", 2, True))])
def test_click_hands_its_options_on(line: str, expected: object) -> None:
    found = values(script(HEAD + CLICK_ON.format(use=USE.strip("\n")), line.replace("-m n", "--model n")))
    assert (found["model"], found["micro_batch_size"], found["bf16"]) == expected


@pytest.mark.parametrize(
    ("head", "call", "line", "words", "expected"),
    [
        (TYRO, "main(tyro.cli(Config))", "--name n --train.micro 2 --other.no-bf16", (), ("n", 2, False)),
        (TYRO, "main(tyro.cli(Config))", "", (), ("m", 4, True)),
        (FIRE, "fire.Fire(train)", "--name n --micro=2 --nobf16", (), ("n", 2, False)),
        (FIRE, "fire.Fire(train)", "--bf16=False", ("n", "3"), ("n", 3, False)),
        (FIRE, "fire.Fire({'run': train})", "--micro 2", ("run", "n"), ("n", 2, True)),
        (FIRE, "fire.Fire()", "--name n", ("train",), ("n", 4, True)),
        (CLICK, "train()", "--model n --micro-batch 2 --no-bf16", (), ("n", 2, False)),
        (CLICK, "train()", "", (), ("m", 4, True)),
    ],
)
def test_command_line(head: str, call: str, line: str, words: tuple[str, ...], expected: object) -> None:
    text = f"{HEAD}{head.strip()}{USE}if __name__ == '__main__':\n    {call}\n"
    found = values(script(text, line, positional=words))
    assert (found["model"], found["micro_batch_size"], found["bf16"]) == expected


HELD = """
import tyro
from dataclasses import dataclass, field
from peft import LoraConfig
from transformers import AutoModelForCausalLM, TrainingArguments
from trl import SFTTrainer
@dataclass
class Options:
    name: str = "m"
    train: TrainingArguments = field(
        default_factory=lambda: TrainingArguments("out", per_device_train_batch_size=4, fp16=True)
    )
    peft_config: LoraConfig = field(default_factory=lambda: LoraConfig(r=16, lora_alpha=32))
options = tyro.cli(Options)
m = AutoModelForCausalLM.from_pretrained(options.name)
SFTTrainer(model=m, args=options.train, peft_config=options.peft_config).train()
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", (4, True, 16)),
        ("--train.per_device_train_batch_size 2 --peft_config.r 64", (2, True, 64)),
        ("--train.no-fp16 --train.gradient-accumulation-steps 8", (4, False, 16)),
        ("--train.per-device-train-batch-size $B --peft-config.lora-alpha 1", (UNKNOWN, True, 16)),
    ],
)
def test_dotted_flags_change_a_librarys_class(line: str, expected: object) -> None:
    found = values(script(HELD, line))
    assert (found["micro_batch_size"], found["fp16"], found["lora_rank"]) == expected


def test_a_class_of_commands() -> None:
    text = f"""{HEAD}import fire
class App:
    def __init__(self, name="m"):
        self.name = name
    def train(self, micro=4, bf16=False):
        name = self.name{USE.replace("    ", "        ")}
fire.Fire(App)
"""
    found = values(script(text, "--name n --micro 2 --bf16", positional=("train",)))
    assert (found["model"], found["micro_batch_size"], found["bf16"]) == ("n", 2, True)


ARGPARSE = """
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
"""
PLACED = "parser.add_argument('model')\nparser.add_argument('micro', type=int{})\n"
COMMANDS = "parser.add_subparsers(dest='command').add_parser('train')\n"


@pytest.mark.parametrize(
    ("declared", "words", "expected"),
    [
        (PLACED.format(""), ("a/b", "2"), ("a/b", 2)),
        (PLACED.format(", nargs='?', default=4"), ("a/b",), ("a/b", 4)),
        (PLACED.format(""), ("a/b",), ("a/b", UNKNOWN)),
        (PLACED.format(""), ("$MODEL", "2"), (UNKNOWN, 2)),
        (COMMANDS + PLACED.format(""), ("train", "a/b", "2"), (UNKNOWN, UNKNOWN)),
    ],
)
def test_positional_arguments_of_argparse(declared: str, words: tuple[str, ...], expected: object) -> None:
    text = (
        f"{ARGPARSE}{declared}args = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained(args.model)\n"
        "Trainer(model, TrainingArguments('out', per_device_train_batch_size=args.micro)).train()\n"
    )
    found = values(script(text, "", positional=words))
    assert (found["model"], found["micro_batch_size"]) == expected


TYPER = """
import typer
from typing import Annotated, Optional
app = typer.Typer(pretty_exceptions_show_locals=False)
{first}
@app.command()
def train(
    name: Annotated[str, typer.Argument(help="a name of bool or int")],
    micro: int = typer.Option(4, "--batch", help="how many"),
    bf16: Annotated[bool, typer.Option()] = True,
):
"""
SECOND = "@app.command('show')\ndef look():\n    pass\n"


@pytest.mark.parametrize(
    ("first", "call", "words", "line", "expected"),
    [
        ("", "app()", ("m",), "", ("m", 4, True)),
        ("", "app()", ("m",), "--batch 2 --no-bf16", ("m", 2, False)),
        (SECOND, "app()", ("train", "m"), "", ("m", 4, True)),
        ("", "typer.run(train)", ("m",), "--batch 8", ("m", 8, True)),
    ],
)
def test_typer(first: str, call: str, words: tuple[str, ...], line: str, expected: tuple[object, ...]) -> None:
    text = HEAD + TYPER.format(first=first) + USE + f"if __name__ == '__main__':\n    {call}\n"
    found = values(script(text, line, positional=words))
    assert (found["model"], found["micro_batch_size"], found["bf16"]) == expected


def test_the_command_of_typer_that_is_not_asked_for() -> None:
    text = HEAD + TYPER.format(first=SECOND) + USE + "if __name__ == '__main__':\n    app()\n"
    assert script(text, "", positional=("train", "m")).facts.trainer.taken is True
    assert script(text, "", positional=("show",)).facts.trainer.taken is None


SPAWNED = """
import torch
import torch.multiprocessing as mp
from accelerate import notebook_launcher
from fastcore.script import call_parse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def work({rank}world, args):
    model = AutoModelForCausalLM.from_pretrained(args["model_name"])
    more = {{"per_device_train_batch_size": args["batch"]}}
    Trainer(model=model, args=TrainingArguments("out", **more)).train()
def start(world: int = -1, model_name: str = "a/b", batch: int = 1):
    args = dict(locals())
    args["world"] = world
    {started}(work, args=(world, args))
@call_parse{call}
def main(world: int = -1, model_name: str = "a/b", batch: int = 1):
    start(**locals())
{end}
"""


@pytest.mark.parametrize(("rank", "started"), [("rank, ", "mp.spawn"), ("", "notebook_launcher")])
@pytest.mark.parametrize(("call", "end"), [("()", ""), ("", ""), ("", "if __name__ == '__main__':\n    main()")])
def test_a_function_that_fastcore_calls_and_processes_that_it_starts(
    rank: str, started: str, call: str, end: str
) -> None:
    text = SPAWNED.format(rank=rank, started=started, call=call, end=end)
    found = values(script(text, "--model_name c/d --batch 4"))
    assert (found["model"], found["micro_batch_size"]) == ("c/d", 4)


ARGS_FILES = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses({asked})
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args).train()
"""
FILES = {
    "train.args": "--per_device_train_batch_size 2 --gradient_accumulation_steps 2",
    "a.args": "--per_device_train_batch_size 3",
    "b.args": "--per_device_train_batch_size 4",
}


@pytest.mark.parametrize(
    ("asked", "line", "batch"),
    [
        ("", "--output_dir o", (2, 2)),
        ("look_for_args_file=False", "--output_dir o", (8, 1)),
        ("args_file_flag='--config'", "--output_dir o --config a.args", (3, 2)),
        ("args_file_flag='--args-file', look_for_args_file=False", "--output_dir o --args-file=a.args", (3, 1)),
        ("args_file_flag='--file'", "--file b.args --output_dir o --file a.args", (3, 2)),
        ("args_file_flag='--file'", "--file a.args --per_device_train_batch_size 5 --file b.args", (5, 2)),
        ("args_file_flag='--file'", "--file a.args b.args --output_dir o", (3, 2)),
    ],
)
def test_files_of_words_in_front_of_the_command_line(asked: str, line: str, batch: tuple[int, int]) -> None:
    def opened(name: str) -> Document | None:
        return Document(FileText(Path(name), FILES[name]), Kind.SHELL) if name in FILES else None

    found = values(script(ARGS_FILES.format(asked=asked), line, open_arguments=opened))
    assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == batch


BESIDE = """
from dataclasses import dataclass
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

@dataclass
class Own:
    name: str = "m"

parser = HfArgumentParser((Own, TrainingArguments))
parser.add_argument("--length", type=int, default=128)
{parsed}
model = AutoModelForCausalLM.from_pretrained(own.name)
tokenizer = tokenize(max_length=more.length)
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    "parsed",
    [
        "own, args, more = parser.parse_args_into_dataclasses()",
        "own, args, more = parser.parse_args_into_dataclasses()\nmore = parser.parse_args()",
    ],
)
def test_what_is_declared_beside_the_classes_comes_behind_them(parsed: str) -> None:
    source = script(BESIDE.format(parsed=parsed), "--name own --length 64 --per_device_train_batch_size 2")
    found = values(source)
    assert (found["model"], found["micro_batch_size"]) == ("own", 2)
    (length,) = {made.attributes["length"].value for made in source.walk.parsed if "length" in made.attributes}
    assert length == 64
    arguments = next(made for made in source.walk.parsed if made.kind.endswith("TrainingArguments"))
    assert "length" not in arguments.attributes


def test_what_a_launcher_starts_may_have_been_seen_in_a_branch_that_does_not_run() -> None:
    source = script(
        "from accelerate import notebook_launcher\nfrom transformers import AutoModelForCausalLM, Trainer\n"
        "def train():\n    Trainer(model=AutoModelForCausalLM.from_pretrained('a/b')).train()\n"
        "if False:\n    train()\nnotebook_launcher(train, num_processes=2)\n"
    )
    assert values(source)["model"] == "a/b"
    assert source.facts.trainer is not None and source.facts.trainer.taken is True


def test_arguments_of_a_dict_are_arguments() -> None:
    text = (
        HEAD.replace("Trainer,", "HfArgumentParser, Trainer,")
        + """
options = {"output_dir": "out", "per_device_train_batch_size": 3}
arguments = HfArgumentParser(TrainingArguments).parse_dict(options)[0]
Trainer(model=AutoModelForCausalLM.from_pretrained("a/b"), args=arguments).train()
"""
    )
    source = script(text)
    assert values(source)["micro_batch_size"] == 3
    made = source.facts.training_arguments
    assert made is not None and made.function == "transformers.TrainingArguments"


def test_a_namespace_holds_its_arguments() -> None:
    text = (
        HEAD
        + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--micro", type=int, default=2)
args = parser.parse_args()
if "micro" not in args:
    args.micro = 1
if "name" not in args:
    args.name = "a/b"
made = TrainingArguments("out", per_device_train_batch_size=args.micro)
Trainer(model=AutoModelForCausalLM.from_pretrained(args.name), args=made).train()
"""
    )
    found = values(script(text, "--micro 4"))
    assert (found["micro_batch_size"], found["model"]) == (4, "a/b")


INHERITED = """
from dataclasses import dataclass, field
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
@dataclass
class Arguments(TrainingArguments):
    gradient_checkpointing_kwargs: dict = field(default_factory=dict)
    micro_size: int = 4
(args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
m = AutoModelForCausalLM.from_pretrained("m")
Trainer(model=m, args=args).train()
"""


def test_the_whole_name_of_a_library_s_field_is_no_beginning_of_the_script_s_own() -> None:
    found = values(script(INHERITED, "--output_dir out --gradient_checkpointing True --bf16 True"))
    assert found["gradient_checkpointing"] is True
    assert found["bf16"] is True


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("'{\"use_reentrant\": false}'", False),
        ("'{\"use_reentrant\": true}'", True),
        ("'{\"other\": 1}'", True),
        ("'{'", True),
    ],
)
def test_a_dictionary_of_the_arguments_is_json_on_a_command_line(said: str, expected: bool) -> None:
    text = HEAD.replace("Trainer,", "HfArgumentParser, Trainer,") + (
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        "m = AutoModelForCausalLM.from_pretrained('m')\nTrainer(model=m, args=args).train()\n"
    )
    line = f"--output_dir out --gradient_checkpointing True --gradient_checkpointing_kwargs {said}"
    assert values(script(text, line, versions={"transformers": "4.57.0"}))["use_reentrant"] is expected
