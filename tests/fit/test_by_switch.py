"""What a script works out from one of its flags is written as that flag; what it then refuses is not written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit.alternatives import alternatives
from lintfit.fit.applying import Applied, apply_changes
from lintfit.fit.feasibility import Feasibility
from lintfit.options.model import Options
from lintfit.run.model import Run

CHAT = """\
import argparse

import deepspeed
from transformers import AutoModelForCausalLM


def ds_config(offload, stage, args):
    device = "cpu" if offload else "none"
    return {{
        "train_batch_size": args.batch_size * 2 * args.steps,
        "train_micro_batch_size_per_gpu": args.batch_size,
        "zero_optimization": {{
            "stage": stage,
            "offload_param": {{"device": device}},
            "offload_optimizer": {{"device": device}},
        }},
        "bf16": {{"enabled": True}},
    }}


parser = argparse.ArgumentParser()
parser.add_argument("--offload", action="store_true")
parser.add_argument("--zero_stage", type=int, default=0)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--steps", type=int, default=1)
args = parser.parse_args()
{refusal}
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B", torch_dtype="bfloat16")
engine, *_ = deepspeed.initialize(model=model, config=ds_config(args.offload, args.zero_stage, args))
for batch in loader:
    engine.backward(engine(**batch).loss)
    engine.step()
"""

BITS = """\
from dataclasses import dataclass

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Arguments(TrainingArguments):
    {field}


(args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
quantized = {{}}
if {test}:
    config = BitsAndBytesConfig(load_in_4bit={four}, bnb_4bit_quant_type="nf4")
    quantized["quantization_config"] = config
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B", torch_dtype=torch.bfloat16, **quantized)
model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
Trainer(model=model, args=args).train()
"""

TRAINER = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", bf16=True, gradient_accumulation_steps=4)
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B", torch_dtype="bfloat16"{mapped})
Trainer(model=model, args=args).train()
"""


def _run(folder: Path, script: str, command: str) -> tuple[Run, Options]:
    (folder / "train.py").write_text(script)
    (folder / "run.sh").write_text(command)
    options = Options(gpu="A100-SXM4-40GB", isolated=True, origins={"gpu": "--gpu"})
    (judged,) = load_runs([folder / "run.sh"], options)[1]
    return judged.run, options


def _written(folder: Path, script: str, command: str, changes: dict[str, Any]) -> Applied | str:
    run, options = _run(folder, script, command)
    assert run.spec is not None
    carried = apply_changes(run, changes, Workspace(), options)
    assert Feasibility(run, Workspace(), options).can(changes) is isinstance(carried, Applied)
    return carried


@pytest.mark.parametrize("refusal", ["", 'assert not args.offload, "offload is coming soon"'])
def test_the_switch_for_offload_is_given_unless_the_script_asserts_against_it(refusal: str, tmp_path: Path) -> None:
    changes = {"offload_optimizer": "cpu", "offload_param": "cpu"}
    command = "deepspeed --num_gpus 2 train.py --zero_stage 3\n"
    carried = _written(tmp_path, CHAT.format(refusal=refusal), command, changes)
    if refusal:
        assert carried == "an assertion of the script speaks of --offload"
        return
    assert isinstance(carried, Applied) and carried.run.spec is not None
    assert carried.texts == {tmp_path / "run.sh": "deepspeed --num_gpus 2 train.py --zero_stage 3 --offload\n"}
    assert (carried.run.spec.offload_optimizer, carried.run.spec.offload_param) == ("cpu", "cpu")


def test_the_stage_is_changed_where_the_flag_of_the_script_says_it(tmp_path: Path) -> None:
    command = "deepspeed --num_gpus 2 train.py --zero_stage 2  # kept\n"
    carried = _written(tmp_path, CHAT.format(refusal=""), command, {"zero_stage": 3})
    assert isinstance(carried, Applied)
    assert carried.texts == {tmp_path / "run.sh": command.replace("2  #", "3  #")}


@pytest.mark.parametrize(
    ("field", "test", "four", "added"),
    [
        ("bits: int = 16", "args.bits in [4, 8]", "args.bits == 4", "--bits 4"),
        ("load_in_4bit: bool = False", "args.load_in_4bit", "True", "--load_in_4bit True"),
        (
            "load_in_4bit: bool = False\n    qlora: bool = False",
            "args.qlora and args.load_in_4bit",
            "args.load_in_4bit",
            "--load_in_4bit True --qlora True",
        ),
        ("squeeze: bool = False", "args.squeeze", "True", "--squeeze True"),
        ("squeeze: bool = False", "(lambda squeeze: squeeze)(args.squeeze)", "True", "--squeeze True"),
    ],
)
def test_four_bits_by_the_flags_of_the_script(field: str, test: str, four: str, added: str, tmp_path: Path) -> None:
    command = "torchrun --nproc_per_node 2 train.py --output_dir out --bf16 True"
    script = BITS.format(field=field, test=test, four=four)
    carried = _written(tmp_path, script, f"{command}\n", {"quantization": "nf4"})
    assert isinstance(carried, Applied) and carried.run.spec is not None
    assert carried.run.spec.quantization == "nf4"
    assert carried.texts[tmp_path / "run.sh"].replace("\\\n", "").split() == f"{command} {added}".split()


def test_one_process_becomes_one_for_each_card(tmp_path: Path) -> None:
    changes = {"gpus": 2, "engine": "ddp", "gradient_accumulation_steps": 2}
    carried = _written(tmp_path, TRAINER.format(mapped=""), "python3 train.py  # kept\n", changes)
    assert isinstance(carried, Applied) and carried.run.spec is not None
    assert carried.texts[tmp_path / "run.sh"] == "torchrun --nproc_per_node 2 train.py  # kept\n"
    assert (carried.run.spec.engine, carried.run.spec.gpus) == ("ddp", 2)


@pytest.mark.parametrize(
    ("command", "mapped", "reason"),
    [
        ("python train.py\n", ', device_map="auto"', "the script lays the model over all GPUs itself"),
        ("CUDA_VISIBLE_DEVICES=0 python train.py\n", "", "CUDA_VISIBLE_DEVICES says which GPUs the run may see"),
    ],
)
def test_why_one_process_stays_one(command: str, mapped: str, reason: str, tmp_path: Path) -> None:
    changes = {"gpus": 2, "engine": "ddp", "gradient_accumulation_steps": 2}
    carried = _written(tmp_path, TRAINER.format(mapped=mapped), command, changes)
    assert isinstance(carried, str) and carried.startswith(reason)


OFF_WITH_ADAPTERS = """\
from dataclasses import dataclass

from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Arguments(TrainingArguments):
    use_peft: bool = True


(args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")
if args.use_peft:
    if args.gradient_checkpointing:
        args.gradient_checkpointing = False
    model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
Trainer(model=model, args=args).train()
"""


def test_what_the_script_undoes_is_never_said_to_be_written(tmp_path: Path) -> None:
    """Checkpointing that adapters switch off again: what is listed as written does without it."""
    command = "python train.py --output_dir out --bf16 True --gradient_checkpointing False "
    command += "--per_device_train_batch_size 8 --gradient_accumulation_steps 2\n"
    (tmp_path / "train.py").write_text(OFF_WITH_ADAPTERS)
    (tmp_path / "run.sh").write_text(command)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "seq_len": 1024}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    plans = alternatives(judged.run, Workspace(), options).plans
    checkpoints = [plan for plan in plans if "gradient checkpointing" in plan.name and "GPUs" not in plan.name]
    reason = "once written, gradient checkpointing would still be off: something else decides it"
    assert checkpoints and {plan.by_hand for plan in checkpoints} == {reason}
    written = [plan for plan in plans if not plan.by_hand]
    assert written and all(plan.estimate.verdict == "fits" for plan in written)
