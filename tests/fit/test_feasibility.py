"""What is asked of a change before anything is carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit.feasibility import Feasibility
from lintfit.fit.unfit import unfit_for_half, unfit_for_shards
from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.spec import GIB
from lintfit.options.model import Options
from lintfit.run.model import Run
from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
weights = trainer.model.state_dict()
"""
ACCELERATE = """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero3_save_16bit_model: true
  zero_stage: 2
num_processes: 2
"""
OPTIONS = Options(gpu="A100-SXM4-80GB", seq_len=512, isolated=True)


def launched(launch: str, script: str, **files: str) -> Run:
    """The run of a launch in the working directory, beside its script and files (``accelerate_dot_yaml``)."""
    for name, text in {"train.py": script, "run.sh": f"{launch}\n", **files}.items():
        Path(name.replace("_dot_", ".")).write_text(text)
    (judged,) = load_runs([Path("run.sh")], OPTIONS)[1]
    return judged.run


@pytest.mark.parametrize(("line", "refused"), [("", True), ("engine.save_16bit_model('out')\n", False)])
def test_only_a_call_saves_what_zero3_shards(
    line: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of the same words in Accelerate's YAML is about what Accelerate saves, which the script does by itself."""
    monkeypatch.chdir(tmp_path)
    run = launched(
        "accelerate launch --config_file accelerate.yaml train.py", SCRIPT + line, accelerate_dot_yaml=ACCELERATE
    )
    assert ("saves state_dict() of the model" in unfit_for_shards(run, {"zero_stage": 3})) is refused


WITHIN = """\
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
trainer = Trainer(model=model, args=args)
trainer.train()
{test}with FSDP.state_dict_type(trainer.model, None):
    trainer.save_model()
"""


@pytest.mark.parametrize(("test", "refused"), [("", True), ("if trainer.is_fsdp_enabled:\n  ", False)])
def test_a_script_that_saves_within_fsdp_s_own_context_keeps_fsdp(
    test: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched(
        "torchrun --nproc_per_node 2 train.py --output_dir out --fsdp full_shard",
        WITHIN.replace("{test}", test).replace("    trainer.save", "      trainer.save"),
    )
    reason = unfit_for_shards(run, {"engine": "deepspeed", "zero_stage": 2})
    assert ("train.py:8 saves within FSDP.state_dict_type" in reason) is refused
    assert not unfit_for_shards(run, {"micro_batch_size": 1})


HANDED_ON = """\
from transformers import AutoConfig, AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained("{name}"))
base = AutoModelForCausalLM.from_pretrained("{name}"){taken}
{handed}
Trainer(model=model, args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("taken", "handed", "refused"),
    [
        (".state_dict()", "model.load_state_dict(base, strict=False)", True),
        ("", "model.load_state_dict(base.state_dict())", True),
        ("", "model.head.load_state_dict(torch.load('head.bin'))", False),
        ("", "print(base)", False),
    ],
)
def test_weights_that_are_handed_on_have_no_size_under_zero3(
    taken: str, handed: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched(
        "torchrun --nproc_per_node 2 train.py --output_dir out",
        HANDED_ON.format(name="Qwen/Qwen2.5-0.5B", taken=taken, handed=handed),
    )
    reason = unfit_for_shards(run, {"zero_stage": 3})
    assert reason == "train.py:5 hands weights on that ZeRO-3 shards as they load" * refused


def test_a_checkpoint_that_is_stored_quantised_is_loaded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched(
        "torchrun --nproc_per_node 2 train.py --output_dir out",
        HANDED_ON.format(name="openai/gpt-oss-20b", taken="", handed=""),
    )
    assert "whole on every rank" in unfit_for_shards(run, {"zero_stage": 3})
    assert not unfit_for_shards(run, {"zero_stage": 2})
    assert run.spec is not None
    sharded = replace(run.spec, engine="deepspeed", zero_stage=3, mixed_precision="bf16", weights_dtype="bf16")
    assert max(moment.allocated for moment in estimate(sharded).moments if moment.phase == "load") > 38 * GIB


DISTILLS = """\
import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoModelForSequenceClassification

model = AutoModelForSequenceClassification.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype=torch.float32).to("cuda")
teacher = make_teacher().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for batch in loader:
    with torch.no_grad():
        teacher_logits = teacher(**batch).logits
    out = model(**batch)
    loss = out.loss + {loss}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "stops"),
    [
        ("nn.MSELoss()(out.logits, teacher_logits)", True),
        ("F.mse_loss(out.logits, teacher_logits)", True),
        ("F.mse_loss(out.logits.float(), teacher_logits)", False),
        ("F.mse_loss(out.logits, batch['scores'])", False),
        ("F.kl_div(out.logits.log_softmax(-1), teacher_logits.softmax(-1))", False),
    ],
)
def test_a_loss_against_outputs_in_fp32_takes_no_model_in_16_bits(tmp_path: Path, loss: str, stops: bool) -> None:
    (tmp_path / "train.py").write_text(DISTILLS.format(loss=loss))
    (judged,) = load_runs([tmp_path / "train.py"], OPTIONS)[1]
    reason = unfit_for_half(judged.run, {"weights_dtype": "bf16"})
    assert ("cast them with .float()" in reason) is stops
    assert not unfit_for_half(judged.run, {"weights_dtype": "bf16", "mixed_precision": "bf16"})
    assert not unfit_for_half(judged.run, {"micro_batch_size": 1})


LOOP = """\
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    accelerator.backward(model(**batch).loss)
    optimizer.step()
if accelerator.is_main_process:
    print("done")
    {saved}
"""


@pytest.mark.parametrize(
    ("saved", "refused"),
    [
        ('accelerator.unwrap_model(model).save_pretrained("out")', True),
        ("model.generate(**question)", True),
        ('tokenizer.save_pretrained("out")', False),
        ('model.save_pretrained("out", state_dict=weights)  # of accelerator.get_state_dict(model)', False),
    ],
)
def test_a_loop_that_runs_its_model_on_one_rank_gets_no_zero3(
    saved: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched(
        "accelerate launch --config_file accelerate.yaml train.py",
        LOOP.format(saved=saved),
        accelerate_dot_yaml=ACCELERATE,
    )
    reason = unfit_for_shards(run, {"zero_stage": 3})
    assert reason == (
        "train.py:10 runs or saves the model on one rank, and ZeRO-3 gathers its parameters on all of them" * refused
    )


SAVED = """\
import os
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

def save(trainer):
    trainer.save_model("out")

rank = int(os.environ["RANK"])
is_main = rank == 0
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
"""


@pytest.mark.parametrize(
    ("saved", "why"),
    [
        ("if is_main:\n    trainer.save_model()", "calls save_model() on one rank (is_main)"),
        ("if trainer.is_world_process_zero():\n    save(trainer)", "calls save_model() on one rank"),
        ("if rank in (-1, 0):\n    trainer.accelerator.get_state_dict(model)", "calls get_state_dict() on one rank"),
        ("model.save_pretrained('out')", "saves the model itself"),
        ("trainer.model.save_pretrained('out')", "saves the model itself"),
        ("trainer.save_model()\nif is_main:\n    tokenizer.save_pretrained('out')", ""),
        ("if is_main and not trainer.is_fsdp_enabled and not zero3:\n    trainer.save_model()", ""),
        ("model.save_pretrained('out', state_dict=trainer.accelerator.get_state_dict(model))", ""),
    ],
)
def test_a_script_whose_save_does_not_survive_shards_gets_neither_zero3_nor_fsdp(
    saved: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched("torchrun --nproc_per_node 2 train.py", f"{SAVED}{saved}\n")
    for changes in ({"zero_stage": 3}, {"engine": "fsdp"}):
        reason = unfit_for_shards(run, changes)
        assert why in reason and bool(reason) is bool(why)
    assert unfit_for_shards(run, {"zero_stage": 2}) == ""


HANDED = """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parts = REGISTRY[name](AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B"))
model = parts.model
tokenizer = parts.tokenizer
trainer = Trainer(model=model, args=TrainingArguments("out"))
if torch.__version__ >= "2":
    model = torch.compile(model)
trainer.train()
{saved}.save_pretrained("out")
"""


@pytest.mark.parametrize(("saved", "refused"), [("model", True), ("tokenizer", False)])
def test_the_model_that_the_trainer_was_handed_is_the_trained_one_whatever_made_it(
    saved: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched("torchrun --nproc_per_node 2 train.py", HANDED.format(saved=saved))
    assert ("saves the model itself" in unfit_for_shards(run, {"zero_stage": 3})) is refused


@pytest.mark.parametrize(("each", "by_hand"), [("8", True), ("4", False)])
def test_a_launch_that_starts_more_processes_than_there_are_gpus_is_not_written_for(
    each: str, by_hand: bool, tmp_path: Path
) -> None:
    script = SCRIPT.replace("weights = trainer.model.state_dict()\n", "").replace('"out"', '"out", bf16=True')
    (tmp_path / "train.py").write_text(script.replace("0.5B", "7B"))
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node {each} --nnodes $SLURM_NNODES train.py\n")
    command = (
        "run.sh",
        "--gpu",
        "a100-40gb",
        "--gpus",
        "4",
        "--seq-len",
        "512",
        "--isolated",
        "--output-format",
        "json",
    )
    (run,) = lintfit("check", *command, cwd=tmp_path).json["runs"]
    assert ("starts 8 processes on each machine" in run["plan"].get("by_hand", "")) is by_hand


REFUSING = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from transformers.integrations import deepspeed

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
if args.lora and deepspeed.is_deepspeed_zero3_enabled():
    {then}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(("then", "refused"), [('raise RuntimeError("no ZeRO-3")', True), ('print("ZeRO-3")', False)])
def test_a_script_that_may_refuse_zero3_is_left_to_a_person(
    then: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched(
        "accelerate launch --config_file accelerate.yaml train.py --output_dir out",
        REFUSING.format(then=then),
        accelerate_dot_yaml=ACCELERATE,
    )
    assert unfit_for_shards(run, {"zero_stage": 3}) == "train.py:6 may refuse ZeRO-3" * refused
    assert unfit_for_shards(run, {"zero_stage": 1}) == ""


OWN_TRAINER = """\
from transformers import Trainer

class OwnTrainer(Trainer):
    def __init__(self, ref_model=None, **kwargs):
        super().__init__(**kwargs)
        if ref_model is not None:
            if (
                self.is_deepspeed_enabled
                and self.accelerator.state.deepspeed_plugin.zero_stage {test}
            ):
                {then}
"""
OF_OWN_TRAINER = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, TrainingArguments
from project.trainers.own import OwnTrainer

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
OwnTrainer(model=model, args=args).train()
"""


@pytest.mark.parametrize("package", ["project", "project_code"])
@pytest.mark.parametrize(
    ("test", "then", "refused"),
    [
        ("== 3", 'raise ValueError("no ZeRO-3")', True),
        ("== 3 and self.precompute_ref_log_probs", 'raise ValueError("no ZeRO-3")', False),
        ("== 3", "ref_model = None", False),
        ("== 2", 'raise ValueError("no ZeRO-2")', False),
    ],
)
def test_a_trainer_of_the_tree_that_may_refuse_zero3_is_left_to_a_person(
    test: str, then: str, refused: bool, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the package that the script imports it from is called otherwise in the tree."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(OF_OWN_TRAINER)
    Path(package, "trainers").mkdir(parents=True)
    Path(package, "trainers/own.py").write_text(OWN_TRAINER.format(test=test, then=then))
    Path("accelerate.yaml").write_text(ACCELERATE)
    Path("run.sh").write_text("accelerate launch --config_file accelerate.yaml train.py --output_dir out\n")
    workspace, (judged,) = Workspace(), load_runs([Path("run.sh")], OPTIONS)[1]
    found = Feasibility(judged.run, workspace, OPTIONS).why_not({"zero_stage": 3})
    assert (found == f"{package}/trainers/own.py:11 may refuse ZeRO-3") is refused


LATE = """\
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

{first}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"{how}){then}
args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True)
Trainer(model=model, args=args).train()
"""


def _by_hand(run_sh: str = "torchrun --nproc_per_node 8 train.py\n", **files: str) -> str:
    for name, text in {**files, "run.sh": run_sh}.items():
        path = Path(name.replace("__", "/").replace("_py", ".py"))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 8, "seq_len": 1024, "host_memory_bytes": 1 << 40}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    workspace = Workspace()
    judged = load_runs([Path("run.sh")], options, workspace)[1][0]
    zero = {"engine": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"}
    return Feasibility(judged.run, workspace, options).why_not({**zero, "mixed_precision": "bf16"})


@pytest.mark.parametrize(
    ("first", "how", "then", "why"),
    [
        ("", "", "", ""),
        ("accelerator = Accelerator()", "", "", "train.py:5 makes an Accelerator before the arguments"),
        ("", "", ".to(torch.cuda.current_device())", "train.py:6 puts the whole model on the GPU before"),
        ("", ', device_map={"": 0}', "", "train.py:6 puts the whole model on the GPU before"),
    ],
)
def test_arguments_that_come_too_late_for_deepspeed(
    first: str, how: str, then: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reason = _by_hand(train_py=LATE.format(first=first, how=how, then=then))
    assert reason.startswith(why) and bool(reason) is bool(why)


@pytest.mark.parametrize(
    ("start", "by_hand"),
    [
        ("CUDA_VISIBLE_DEVICES=0 accelerate launch train.py\n", True),
        ("accelerate launch --num_processes 1 train.py\n", True),
        ("accelerate launch --num_processes 8 train.py\n", False),
        ("torchrun --nproc_per_node 1 train.py\n", False),
        ("deepspeed --num_gpus 1 train.py\n", False),
    ],
)
def test_one_process_of_accelerate_s_has_no_ranks_for_deepspeed(
    start: str, by_hand: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parsed = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"), args=args).train()
"""
    reason = _by_hand(start.replace("train.py", "train.py --output_dir out --bf16 True"), train_py=parsed)
    assert reason.startswith("accelerate tells one process nothing of ranks") is by_hand and bool(reason) is by_hand


def test_a_model_on_the_gpu_that_is_loaded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan changes the second load, and the first is on the GPU before."""
    monkeypatch.chdir(tmp_path)
    first = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"){moved}'
    moved = LATE.format(first=first.format(moved='.to("cuda")'), how="", then="")
    assert _by_hand(train_py=moved) == "train.py:5 puts a model on the GPU that is then loaded anew: take that out"
    assert _by_hand(train_py=LATE.format(first=first.format(moved=""), how="", then="")) == ""


def test_a_config_is_not_named_in_code_that_others_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    library = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def train(name):
    args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True)
    model = AutoModelForCausalLM.from_pretrained(name)
    Trainer(model=model, args=args).train()
"""
    start = 'import sys\n\nfrom lib.training import train\n\ntrain("Qwen/Qwen2.5-7B")\n'
    reason = _by_hand(train_py=start, lib__training_py=library)
    assert reason == "lib/training.py makes the arguments for all that import it: no place for a path"


ADAPTERS = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments("out", bf16=True, deepspeed="ds.json")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj"], modules_to_save={whole}))
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("whole", "installed", "refused"),
    [
        ('["lm_head"]', "peft==0.8.2", True),
        ('["lm_head"]', "transformers==4.32.0", True),
        ('["lm_head"]', "peft==0.9.0\ntransformers==4.32.0", False),
        ('["lm_head"]', "transformers==4.57.1", False),
        ('["lm_head"]', "", False),
        ("None", "peft==0.8.2", False),
    ],
)
def test_what_zero3_has_sharded_is_not_copied(
    whole: str, installed: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(ADAPTERS.format(whole=whole))
    Path("ds.json").write_text(
        '{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}'
    )
    Path("run.sh").write_text("deepspeed --num_gpus 2 train.py\n")
    Path("requirements.txt").write_text(f"{installed}\n")
    (judged,) = load_runs([Path("run.sh")], OPTIONS)[1]
    said = unfit_for_shards(judged.run, {"zero_stage": 3})
    assert said == "PEFT before 0.9 copies modules_to_save (lm_head) from what ZeRO-3 has sharded" * refused


REWARDED = """\
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig("out", per_device_train_batch_size=8, num_generations=8)
GRPOTrainer("Qwen/Qwen2.5-0.5B", reward_funcs={rewards}, args=args, train_dataset=load_dataset("x")).train()
"""


@pytest.mark.parametrize(
    ("rewards", "version", "refused"),
    [
        ('"Qwen/Qwen2.5-1.5B"', "0.16.1", True),
        ('"Qwen/Qwen2.5-1.5B"', "0.17.0", False),
        ("lambda completions, **given: [0.0 for _ in completions]", "0.16.1", False),
    ],
)
def test_a_reward_model_without_an_engine_gets_no_zero3(
    rewards: str, version: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = launched(
        "accelerate launch --num_processes 2 train.py",
        REWARDED.format(rewards=rewards),
        requirements_dot_txt=f"trl=={version}\n",
    )
    reason = unfit_for_shards(run, {"engine": "deepspeed", "zero_stage": 3})
    assert ("gives the reward model no engine" in reason) is refused


PLAIN = """\
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "{shown}"
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=[]).train()
"""


@pytest.mark.parametrize(("shown", "written"), [("0", True), ("0,1,2,3", False)])
def test_a_process_to_which_a_script_shows_several_gpus_is_left_to_a_person(
    shown: str, written: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PLAIN.format(shown=shown))
    (tmp_path / "run.sh").write_text("python train.py --output_dir out --per_device_train_batch_size 32 --bf16 True\n")
    flags = ("--gpu", "RTX 3090", "--gpus", "4", "--seq-len", "1024", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == "does-not-fit" and ("by_hand" not in run["plan"]) is written
    assert written or "train.py:2 shows one process several GPUs" in run["plan"]["by_hand"]
