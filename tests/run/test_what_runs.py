"""Which files and lines are runs: what trains, and not what evaluates, defines or starts another script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

TRAINER = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", dtype="bfloat16")
trainer = Trainer(model=model, args=args)
"""
BY_SWITCH = TRAINER + "if args.do_train:\n    trainer.train()\nif args.do_eval:\n    trainer.evaluate()\n"
ALWAYS = TRAINER + "trainer.train()\n"


def runs_of(folder: Path, *names: str) -> list[dict[str, Any]]:
    outcome = lintfit("check", *(names or (".",)), "--gpu", "RTX 4090", "--output-format", "json", cwd=folder)
    assert outcome.err == ""
    runs: list[dict[str, Any]] = outcome.json["runs"]
    return runs


@pytest.mark.parametrize(
    ("script", "line", "number"),
    [
        (BY_SWITCH, "torchrun train.py --do_predict --output_dir out", 0),
        (BY_SWITCH, "torchrun train.py --do_train False --do_eval --output_dir out", 0),
        (BY_SWITCH, "torchrun train.py --do_eval --learning_rate 1e-5 --output_dir out", 0),
        (BY_SWITCH, "torchrun train.py --do_train --do_eval --output_dir out", 1),
        (ALWAYS, "torchrun train.py --do_eval --output_dir out", 1),
        (ALWAYS, "deepspeed train.py --do_eval False --output_dir out", 1),
    ],
)
def test_an_evaluation_alone_is_no_run_where_the_script_trains_by_a_switch(
    tmp_path: Path, script: str, line: str, number: int
) -> None:
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "run.sh").write_text(f"{line}\n")
    assert len(runs_of(tmp_path, "run.sh")) == number


SCORES = """\
from accelerate import Accelerator
from transformers import AutoModelForSequenceClassification, AutoTokenizer

accelerator = Accelerator()
model = AutoModelForSequenceClassification.from_pretrained("Qwen/Qwen2.5-0.5B", num_labels=1)
with accelerator.split_between_processes(texts) as mine:
    scores = [model(**tokenized(text)).logits.item() for text in mine]
"""


ASKED = """\
import torch
with torch.no_grad():
    optimizer_type = "paged_adamw_32bit"  # of a dataclass that other scripts have as well
    model(**batch)
"""


@pytest.mark.parametrize(
    ("more", "number"),
    [
        ("", 0),
        ("from own import train_all\ntrain_all(model)\n", 1),
        (ASKED, 0),
        (ASKED + "engine.step()\n", 1),
        ("from own import optimize\noptimize(model)\n", 1),
    ],
)
def test_a_script_that_only_runs_a_model_is_no_run_whatever_starts_it(tmp_path: Path, more: str, number: int) -> None:
    (tmp_path / "rewards.py").write_text(SCORES + more)
    (tmp_path / "run.sh").write_text("accelerate launch --num_processes 8 rewards.py\n")
    assert len(runs_of(tmp_path, "run.sh")) == number


DEFINES = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()
"""


def test_a_module_that_only_defines_is_no_run_unless_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "offload.py").write_text(DEFINES)
    assert runs_of(tmp_path) == []
    assert [run["id"] for run in runs_of(tmp_path, "offload.py")] == ["offload.py"]
    (tmp_path / "offload.py").write_text(DEFINES + "\n\ntrain(model, loader, optimizer)\n")
    assert [run["id"] for run in runs_of(tmp_path)] == ["offload.py"]


def test_a_command_in_an_array_is_a_run_with_what_a_branch_may_add(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ALWAYS)
    (tmp_path / "run.sh").write_text(
        "CMD=(torchrun --nproc_per_node 4 train.py --output_dir out --per_device_train_batch_size 2)\n"
        'if [ -n "$SMALL" ]; then\n  CMD+=(--gradient_checkpointing)\nfi\n"${CMD[@]}"\n'
    )
    (run,) = runs_of(tmp_path, "run.sh")
    assert [run["settings"][name]["value"] for name in ("gpus", "micro_batch_size")] == [4, 2]
    assert run["settings"]["gradient_checkpointing"]["value"] is None


def test_a_front_ends_own_script_is_said_to_be_that(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from llamafactory.train.tuner import run_exp\n\n\nif __name__ == '__main__':\n    run_exp()\n"
    )
    (tmp_path / "run.sh").write_text("torchrun train.py --stage sft --do_train --finetuning_type lora\n")
    (run,) = runs_of(tmp_path, "run.sh")
    assert "method" not in run["settings"]
    assert run["unknown"][0].startswith("the settings that LLaMA-Factory reads itself (train.py is its own)")


def test_what_only_starts_verl_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = "import hydra\nimport ray\nfrom verl.trainer.ppo.ray_trainer import RayPPOTrainer\n\n\n"
    main += "@hydra.main(config_path='config', config_name='ppo')\ndef main(config):\n    run_ppo(config)\n\n\nmain()\n"
    (tmp_path / "main_ppo.py").write_text(main)
    (tmp_path / "run.sh").write_text("python main_ppo.py actor.lr=1e-6\n")
    followed: list[object] = []
    monkeypatch.setattr("lintfit.sources.script.source.Interpreter.run", lambda self: followed.append(self))
    (run,) = runs_of(tmp_path, "run.sh")
    assert run["unknown"][0].startswith("the settings that verl reads itself (main_ppo.py is its own)")
    assert not followed
    (tmp_path / "main_ppo.py").write_text(f"{main}# loss.backward()\n")
    runs_of(tmp_path, "run.sh")
    assert followed


def test_how_many_processes_a_script_spawns_is_its_own_matter(tmp_path: Path) -> None:
    loop = "    loss = model(**batch).loss\n    loss.backward()\n    optimizer.step()\n"
    script = (
        "import sys\nimport torch\n\n\ndef work(rank, world):\n"
        + loop
        + "\n\ntorch.multiprocessing.spawn(work, nprocs=%s)\n"
    )
    (tmp_path / "train.py").write_text(script % "int(sys.argv[1])")
    (tmp_path / "run.sh").write_text("python train.py 4 --lr 1e-5\n")
    (run,) = runs_of(tmp_path, "run.sh")
    assert run["settings"]["gpus"]["value"] != 1


@pytest.mark.parametrize(
    ("asked", "runs"), [("evaluate()", 0), ("predict(data)", 0), ("train()", 1), ("save_model()", 1)]
)
def test_a_trainer_that_only_evaluates_is_no_run(tmp_path: Path, asked: str, runs: int) -> None:
    (tmp_path / "judge.py").write_text(f"{TRAINER}trainer.{asked}\n")
    assert len(runs_of(tmp_path)) == runs


SWITCHED = """\
from transformers import AutoModel

model = AutoModel.from_pretrained("bert-base-uncased")


def restore(trained):
    if trained:
        model.train()
"""


@pytest.mark.parametrize(("asked", "runs"), [("predict(data)", 0), ("train()", 1)])
def test_the_mode_of_a_model_is_no_training(tmp_path: Path, asked: str, runs: int) -> None:
    (tmp_path / "labels.py").write_text(SWITCHED)
    (tmp_path / "judge.py").write_text(f"from labels import restore\n{TRAINER}trainer.{asked}\nrestore(True)\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 4 judge.py --output_dir out\n")
    assert len(runs_of(tmp_path)) == runs


MEASURED = """import torch
from transformers import AutoModelForCausalLM
%s
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B").cuda()
for length in (128, 256):
    data = torch.randint(0, 1000, (1, length), device="cuda")
    model(data, labels=data).loss.backward()
    %s
    print(torch.cuda.max_memory_allocated())
"""


@pytest.mark.parametrize(
    ("imports", "then", "runs"),
    [
        ("", "model.zero_grad()", 0),
        ("", "update(model, rate)", 0),
        ("from steps import update", "update(model, rate)", 1),
        ("", "torch.optim.SGD(model.parameters()).step()", 1),
        ("", "engine.step()", 1),
        ("", "for p in model.parameters(): p.data -= 1e-5 * p.grad", 1),
    ],
)
def test_a_backward_pass_without_an_update_is_no_training(tmp_path: Path, imports: str, then: str, runs: int) -> None:
    (tmp_path / "measure.py").write_text(MEASURED % (imports, then))
    (tmp_path / "steps.py").write_text("from torch.optim import SGD\n\n\ndef update(model, rate):\n    pass\n")
    assert len(runs_of(tmp_path)) == runs


HIDDEN = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args, train_dataset=load()).train()
"""


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        ('torchrun --nproc_per_node 2 train.py --output_dir "$(mktemp -d)" --bf16 true', True),
        ("torchrun --nproc_per_node 2 train.py --output_dir out $EXTRA", True),
        ("more=$(arguments)\ntorchrun --nproc_per_node 2 train.py $more", False),
        ('more="$(arguments) --bf16 true"\ntorchrun --nproc_per_node 2 train.py $more', False),
    ],
)
def test_flags_that_a_command_makes_are_not_taken_for_absent(tmp_path: Path, lines: str, seen: bool) -> None:
    (tmp_path / "train.py").write_text(HIDDEN)
    (tmp_path / "run.sh").write_text(f"{lines}\n")
    flags = ("--gpu", "A100-80GB", "--seq-len", "512", "--output-format", "json")
    (run,) = json.loads(lintfit("check", "run.sh", *flags, cwd=tmp_path).out)["runs"]
    assert (run["verdict"] != "unknown") == seen, run["unknown"]


@pytest.mark.parametrize(("line", "runs"), [("trainer.train()", 1), ("print(trainer.evaluate())", 0)])
def test_a_trainer_that_nobody_has_train_is_no_run(tmp_path: Path, line: str, runs: int) -> None:
    (tmp_path / "train.py").write_text(
        HIDDEN.replace("Trainer(model", "trainer = Trainer(model").replace(".train()", f"\n{line}")
    )
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py --output_dir out\n")
    out = lintfit("check", "run.sh", "--output-format", "json", cwd=tmp_path).out
    assert len(json.loads(out)["runs"]) == runs


COMMENTED_OUT = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

def train():
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
    # trainer = Trainer(model=model, args=args, train_dataset=data)
    # trainer.train()
    LAST

train()
"""


@pytest.mark.parametrize(
    ("last", "runs"),
    [
        ("print(model)", 0),
        ("Trainer(model=model, args=args, train_dataset=data).train()", 1),
        ("model(**batch).loss.backward()", 1),
        ("engine.fit(model)", 1),
        ("train_by_another_package(model)", 1),
        ("train_test_split(data)", 0),
    ],
)
def test_a_script_of_whose_training_comments_are_left_is_no_run(tmp_path: Path, last: str, runs: int) -> None:
    (tmp_path / "train.py").write_text(COMMENTED_OUT.replace("LAST", last))
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py --output_dir out --bf16 true\n")
    out = lintfit("check", "run.sh", "--output-format", "json", cwd=tmp_path).out
    assert len(json.loads(out)["runs"]) == runs


@pytest.mark.parametrize(
    ("fsdp", "processes", "engine"),
    [
        ("config.get('fsdp')", 4, None),
        ("config.get('fsdp')", 1, "single"),
        ("''", 4, "ddp"),
        ("'full_shard auto_wrap'", 4, "fsdp"),
    ],
)
def test_the_engine_is_not_known_where_nobody_can_tell_what_shards(
    tmp_path: Path, fsdp: str, processes: int, engine: str | None
) -> None:
    (tmp_path / "train.py").write_text(
        "import yaml\n"
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "config = yaml.safe_load(open(somewhere()))\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-32B", dtype="bfloat16")\n'
        f'Trainer(model=model, args=TrainingArguments("out", fsdp={fsdp})).train()\n'
    )
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node {processes} train.py\n")
    (run,) = runs_of(tmp_path, "run.sh")
    assert run["settings"]["engine"]["value"] == engine
