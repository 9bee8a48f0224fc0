"""Command lines that the real parsers are asked, too: what they refuse is reported, what they take is not."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

pytestmark = [pytest.mark.peers, pytest.mark.slow]

TRAINS = """
from transformers import AutoModelForCausalLM, Trainer
Trainer(model=AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B"), args=training).train()
"""
HUGGING_FACE = """
from dataclasses import dataclass, field
from typing import List, Literal, Optional, Union
from transformers import HfArgumentParser, TrainingArguments

@dataclass
class Own:
    max_seq_length: int = field(default=512)
    lora_rank: Optional[int] = field(default=None)
    targets: List[str] = field(default_factory=lambda: ["q_proj"])
    precision: Literal["bf16", "fp16"] = "bf16"
    packing: Optional[bool] = None
    streaming: bool = True
    ratio: Union[float, None] = None
    files: str = field(default="", metadata={"nargs": "*"})

own, training = HfArgumentParser((Own, TrainingArguments)).parse_args_into_dataclasses()
"""
TRL = """
from trl import ModelConfig, ScriptArguments, SFTConfig, TrlParser
parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
script, training, model = parser.parse_args_and_config()
"""
ARGPARSE = """
import argparse
from transformers import TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--micro-batch-size", type=int, default=1)
parser.add_argument("--micro_steps", type=float)
parser.add_argument("--use_lora", action="store_true")
parser.add_argument("--bf16", action=argparse.BooleanOptionalAction)
parser.add_argument("--targets", nargs="+")
parser.add_argument("--stage", type=int, choices=[0, 1, 2, 3])
parser.add_argument("--pair", nargs=2)
known = parser.parse_args()
training = TrainingArguments("out")
"""
NO_ABBREVIATIONS = ARGPARSE.replace("ArgumentParser()", "ArgumentParser(allow_abbrev=False)")
SCRIPTS = {"hf": HUGGING_FACE, "trl": TRL, "argparse": ARGPARSE, "full": NO_ABBREVIATIONS}
LINES = [
    *(
        ("hf", f"--output_dir out {line}")
        for line in (
            "",
            "--gradient_checkpointing",
            "--gradient_checkpointing true",
            "--gradient_checkpoint true",
            "--per_device_batch_size 4",
            "--per-device-train-batch-size 4",
            "--per_device_train 4",
            "--per_device_train_batch_size four",
            "--max_seq_len 512",
            "--max_seq 512",
            "--max_seq_lenght 512",
            "--no_streaming",
            "--no-streaming",
            "--no_packing",
            "--no_bf16",
            "--packing",
            "--packing no",
            "--packing maybe",
            "--targets q_proj v_proj",
            "--targets",
            "--precision fp8",
            "--precision fp16",
            "--optim adamw_torch_fused",
            "--optim adamw_torc",
            "--lr_scheduler_type cosine",
            "--lr_scheduler_type cosin",
            "--max_steps 1e3",
            "--max_steps -1",
            "--learning_rate -1e-5",
            "--learning_rate=2e-5",
            "--evaluation_strategy no",
            "--eval_strategy epochs",
            "--overwrite_output_dir",
            "--report_to none",
            "--report_to wandb tensorboard",
            "--files a.json b.json",
            "--lora_rank 8 16",
            "--bf16 true false",
            "--tf32",
            "--deepspeed ds.json",
            "--fsdp 'full_shard auto_wrap'",
            "--ratio 0.5 --lora_r 8",
            "--seed 1.5",
            "--remove_unused_columns=False",
        )
    ),
    *(
        ("trl", f"--output_dir out {line}")
        for line in (
            "--max_length 512",
            "--max_seq_length 512",
            "--bf16",
            "--bf16 true",
            "--use_peft --lora_r 16 --lora_target_modules q_proj v_proj",
            "--use_lora",
            "--dataset_name a --dataset_streaming",
            "--load_in_4bit --packing",
            "--gradient-checkpointing",
            "--attn_implementation",
        )
    ),
    *(
        (kind, line)
        for kind in ("argparse", "full")
        for line in (
            "-b 4",
            "-b4",
            "--micro-batch 4",
            "--micro_batch_size 4",
            "--micro 4",
            "--micro-batch-size 4.5",
            "--use_lora True",
            "--use",
            "--no-bf16",
            "--no_bf16",
            "--bf16 True",
            "--targets",
            "--targets a b c",
            "--stage 4",
            "--stage two",
            "--pair 1",
            "--pair 1 2",
            "--pair 1 2 3",
            "--gradient_checkpoint true",
            "--micro-batch-size=4",
            "--use_lora=1",
        )
    ),
]
LAUNCHERS = [
    ("accelerate launch", "--mixed_precision bf16"),
    ("accelerate launch", "--mixed_precison bf16"),
    ("accelerate launch", "--mixed-precision bf16 --num-processes=8"),
    ("accelerate launch", "--mixed_precision bf15"),
    ("accelerate launch", "--num_process 8"),
    ("accelerate launch", "--multigpu"),
    ("accelerate launch", "--multi_gpu --num_machines 2"),
    ("accelerate launch", "--use_deepspeed --zero_stage 3"),
    ("torchrun", "--nproc_per_node 8"),
    ("torchrun", "--nproc-per-node=8 --nnodes 2"),
    ("torchrun", "--master 2"),
    ("torchrun", "--num_gpus 8"),
    ("torchrun", "--standalone --nproc_per_node gpu"),
    ("deepspeed", "--num_gpus 8"),
    ("deepspeed", "--num_gpu 8"),
    ("deepspeed", "--num 8"),
    ("deepspeed", "--includes localhost:0"),
    ("deepspeed", "--master_port 29500 --include localhost:0,1"),
]


def _installed(*libraries: str) -> dict[str, str]:
    return {library: pytest.importorskip(library).__version__ for library in libraries}


def _reported(folder: Path, files: dict[str, str]) -> bool:
    for name, text in files.items():
        (folder / name).write_text(text)
    found = lintfit("check", ".", "--output-format", "json", cwd=folder).json
    rules = {finding["rule"] for finding in found["findings"]}
    assert found["runs"], "no run was found"
    return bool(rules & {"refused-flag", "bare-optional-flag"})


def _refuses(code: str, line: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a script's own parser stops; what the dataclasses say of values when they are made does not count."""
    module = types.ModuleType("train_script")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "argv", ["train.py", *shlex.split(line)])
    for cls in ("transformers.TrainingArguments", "trl.SFTConfig"):
        monkeypatch.setattr(f"{cls}.__post_init__", lambda self: None)
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(compile(code, "train_script.py", "exec", dont_inherit=True), module.__dict__)
        except SystemExit:
            return True
        except Exception as error:
            return "not used by the HfArgumentParser" in str(error)
    return False


@pytest.mark.parametrize(("kind", "line"), LINES, ids=lambda value: value or "-")
def test_a_script(kind: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = _installed("transformers", "trl")
    pins = "".join(f"{library}=={version}\n" for library, version in versions.items())
    files = {"train.py": SCRIPTS[kind] + TRAINS, "run.sh": f"python train.py {line}\n", "requirements.txt": pins}
    assert _reported(tmp_path, files) == _refuses(SCRIPTS[kind], line, monkeypatch)


def _parser_of(launcher: str) -> Callable[[list[str]], Any]:
    if launcher == "torchrun":
        from torch.distributed.run import parse_args

        return parse_args
    if launcher == "deepspeed":
        from deepspeed.launcher.runner import parse_args as of_deepspeed

        return of_deepspeed
    from accelerate.commands.launch import launch_command_parser

    return launch_command_parser().parse_args


@pytest.mark.parametrize(("launcher", "line"), LAUNCHERS)
def test_a_launcher(launcher: str, line: str, tmp_path: Path) -> None:
    _installed("torch", "accelerate", "deepspeed")
    words = [*line.split(), "train.py"]
    refused = False
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            _parser_of(launcher)(words)
        except SystemExit:
            refused = True
    script = 'from transformers import TrainingArguments\ntraining = TrainingArguments("out")\n' + TRAINS
    files = {"train.py": script, "run.sh": f"{launcher} {line} train.py\n"}
    assert _reported(tmp_path, files) == refused


def test_every_field_is_as_the_installed_parser_has_it() -> None:
    """Names and numbers of words of every field, where the installed versions are studied ones."""
    versions = _installed("transformers", "trl")
    import transformers
    import trl

    from lintfit.sources.flag_grammars.grammar import Grammar, ranges_of

    for library, names in {
        "transformers": ("TrainingArguments", "Seq2SeqTrainingArguments"),
        "trl": ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig", "RLOOConfig", "ModelConfig",
                "ScriptArguments"),
    }.items():  # fmt: skip
        for name in names:
            cls = getattr(transformers if library == "transformers" else trl, name)
            parser = transformers.HfArgumentParser((cls,))
            classes = (f"{library}.{name}",)
            ranges = ranges_of(classes, versions)
            assert ranges is not None
            if any(len(each.possible) > 1 for each in ranges):
                pytest.skip("the installed versions are not studied ones")
            real = {text: action for action in parser._actions for text in action.option_strings}
            ours = {
                text: option for option in Grammar(classes=classes, ranges=ranges).newest() for text in option.names
            }
            assert ours.keys() == real.keys(), name
            for text, action in real.items():
                if ours[text].nargs != "*":
                    assert ours[text].nargs == action.nargs, (name, text)
                if ours[text].choices:
                    assert [str(each) for each in ours[text].choices] == [str(each) for each in action.choices]
