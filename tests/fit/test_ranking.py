"""One ranking: what is written comes first in every list, and what is said of all that is cheaper is true."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lintfit.commands.check import check, load_runs
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability
from lintfit.fit.alternatives import alternatives
from lintfit.fit.axes import buckets
from lintfit.fit.options import Effect, Subject, run_of
from lintfit.fit.planner import MORE_GPUS
from lintfit.fit.proof import cheaper
from lintfit.fit.search import Search, cost, may_suffice, suffices
from lintfit.fit.space import Space
from lintfit.memory import estimate
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB
from lintfit.options.model import Margin, Options
from lintfit.run.change import changed_spec
from tests.fit.generated import spec_of
from tests.support import ROOT, lintfit

PROJECTS = ROOT / "tests" / "projects"

few = settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)

small = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["Qwen/Qwen2.5-1.5B", "gpt2-xl"]),
        "gpu": st.sampled_from(["RTX 4070", "RTX 3090"]),
        "gpus": st.sampled_from([1, 2]),
        "weights_dtype": st.just("bf16"),
        "mixed_precision": st.just("bf16"),
        "method": st.sampled_from(["full", "lora"]),
        "micro_batch_size": st.sampled_from([1, 4]),
        "gradient_accumulation_steps": st.sampled_from([1, 4]),
        "seq_len": st.sampled_from([512, 2048]),
        "gradient_checkpointing": st.booleans(),
        "attention": st.just("sdpa"),
        "engine": st.sampled_from(["plain", "deepspeed", "fsdp"]),
        "zero_stage": st.sampled_from([2, 3]),
    }
)
"""Runs whose whole space is small enough to estimate; nobody says how large their host is."""


@few
@given(small)
def test_what_is_said_of_all_that_is_cheaper_holds_for_the_whole_space(described: dict[str, Any]) -> None:
    spec = spec_of(described)
    search = Search(Space(Subject(run_of(spec), spec), Effect.ADAPTERS), Margin())
    found = next((one for effect in Effect for one in search.of_class(effect)), None)
    if found is None:
        return
    said = cheaper(search, found)
    for candidate in search.space:
        changed = changed_spec(spec, candidate.changes)
        rank = search.rank(candidate, changed)
        less = candidate.effect <= found.candidate.effect and rank[1:3] <= found.rank[1:3]
        if not less or candidate.changes == found.candidate.changes or not suffices(estimate(changed), search.limit):
            continue
        if "costs less time among them" in said:
            assert round(search.step_time(changed), 1) >= round(found.step_time, 1) - 0.1, candidate.name
        elif "with as few changes" in said:
            faster = search.step_time(changed) < found.step_time - 0.1
            assert not (faster and candidate.count <= found.candidate.count), candidate.name


@few
@given(small)
def test_what_may_fit_is_the_best_of_what_may_fit(described: dict[str, Any]) -> None:
    spec = spec_of(described)
    search = Search(Space(Subject(run_of(spec), spec), Effect.NUMERICS), Margin())
    for effect in (Effect.SAME, Effect.NUMERICS):
        next(search.of_class(effect), None)
    looking = search.for_tight()
    found = next((one for effect in (Effect.SAME, Effect.NUMERICS) for one in looking.of_class(effect)), None)
    ranks = []
    for candidate in search.space:
        changed = changed_spec(spec, candidate.changes)
        if may_suffice(estimate(changed), search.limit):
            ranks.append(search.rank(candidate, changed))
    best = min(ranks, default=None)
    assert (found is None) is (best is None)
    if found is not None and best is not None:
        assert found.rank[:4] == best[:4]
        assert found.step_time < 1.5 * best[6]
        first = next(one for one in looking.first_fitting(looking.ranked) if one.rank == best)
        safer = first.estimate.peak.high + first.candidate.count * GIB
        assert found.estimate.peak.high + found.candidate.count * GIB <= safer


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.integers(0, 9), st.integers(0, 9))
def test_a_faster_plan_with_no_more_changes_costs_no_more(time: float, other: float, count: int, more: int) -> None:
    assert cost(min(time, other), count) <= cost(max(time, other), count + more)


SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype="bfloat16")
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size={micro},
    gradient_accumulation_steps={steps},
    gradient_checkpointing={checkpointing},
    bf16=True,
    deepspeed={deepspeed},
)
Trainer(model=model, args=args, train_dataset=data).train()
"""

projects = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-7B"]),
        "micro": st.sampled_from([1, 4, 8]),
        "steps": st.sampled_from([1, 4]),
        "checkpointing": st.booleans(),
        "stage": st.sampled_from([None, 2, 3]),
        "gpus": st.sampled_from([1, 2, 8]),
        "gpu": st.sampled_from(["RTX 3090", "NVIDIA A100-SXM4-40GB"]),
    }
)


def _write(folder: Path, project: dict[str, Any]) -> Options:
    config = None
    if project["stage"] is not None:
        config = "ds.json"
        section = {"stage": project["stage"]}
        (folder / config).write_text(json.dumps({"bf16": {"enabled": True}, "zero_optimization": section}, indent=4))
    (folder / "train.py").write_text(SCRIPT.format(**{**project, "deepspeed": repr(config)}))
    stated = {"gpu": project["gpu"], "gpus": project["gpus"], "seq_len": 1024}
    return Options(**stated, isolated=True, show_plans=True, origins=dict.fromkeys(stated, "--flag"))


@few
@given(projects)
def test_what_check_writes_is_the_first_of_every_list(project: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        options = _write(Path(name), project)
        (judged,) = check([Path(name)], options).runs
        if judged.verdict is not Verdict.DOES_NOT_FIT:
            return
        (run,) = load_runs([Path(name)], options)[1]
        listed = alternatives(run.run, Workspace(), options).plans
        assert [plan.name for plan in judged.alternatives] == [plan.name for plan in listed]
        if judged.plan is None:
            assert all(plan.by_hand == MORE_GPUS for plan in listed)
            return
        assert listed[0].name == judged.plan.name
        assert listed[0].applicability is judged.plan.applicability
        assert listed[0].proof == judged.plan.proof
        hand = [bool(plan.by_hand == MORE_GPUS) for plan in listed]
        assert hand == sorted(hand), "more GPUs than there are come last"
        assert all(plan.applicability is Applicability.DISPLAY for plan in listed if plan.by_hand)


def test_a_run_that_does_not_fit_gets_no_larger_micro_batch_for_speed(tmp_path: Path) -> None:
    """FSDP offloaded to the host brings every shard up for each of the micro-batches."""
    (tmp_path / "train.py").write_text(
        SCRIPT.format(model="Qwen/Qwen2.5-7B", micro=1, steps=16, checkpointing=True, deepspeed=None).replace(
            "deepspeed=None", 'fsdp="full_shard auto_wrap"'
        )
    )
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    (tmp_path / "lintfit.toml").write_text('gpu = "RTX A6000"\nseq-len = 1024\nhost-memory = "512GiB"\n')
    (run,) = lintfit("check", ".", "--output-format", "json", cwd=tmp_path).json["runs"]
    assert [step["setting"] for step in run["plan"]["steps"]] == ["fsdp"]


FOUR_BITS = """\
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments

config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float16, bnb_4bit_quant_type="nf4")
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", quantization_config=config)
args = TrainingArguments(output_dir="out", fp16=True, per_device_train_batch_size=4, gradient_accumulation_steps=2)
Trainer(model=model, args=args, train_dataset=data).train()
"""


def test_four_bits_without_adapters_get_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FOUR_BITS)
    flags = ("--gpu", "T4", "--gpus", "1", "--seq-len", "1024", "--output-format", "json")
    (run,) = lintfit("check", ".", *flags, cwd=tmp_path).json["runs"]
    assert run["plan"]["name"] == "LoRA + gradient checkpointing" and "by_hand" not in run["plan"]
    assert "quantization" not in {step["setting"] for step in run["plan"]["steps"]}


def test_a_command_that_is_cut_off_gets_no_plan(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    whole = "python train.py --output_dir out --bf16 True \\\n"
    flags = ("--gpu", "RTX 3090", "--gpus", "1", "--seq-len", "1024")
    for comment, planned in (("", True), ("  # a note\n", False)):
        (tmp_path / "run.sh").write_text(f"{whole}{comment}  --per_device_train_batch_size 4\n")
        (run,) = lintfit("check", ".", *flags, "--output-format", "json", cwd=tmp_path).json["runs"]
        assert run["verdict"] == "does-not-fit"
        assert (run["plan"] is not None) is planned
        said = lintfit("fit", ".", *flags, cwd=tmp_path).out
        assert ("its command is cut off or refused" in " ".join(said.split())) is not planned


def test_what_is_only_likely_to_fit_is_written_where_nothing_else_is(tmp_path: Path) -> None:
    work = shutil.copytree(PROJECTS / "grpo-reward-model" / "input", tmp_path / "project")
    (run,) = lintfit("check", ".", "--output-format", "json", cwd=work).json["runs"]
    plan, capacity = run["plan"], run["estimate"]["capacity_bytes"]
    assert (plan["verdict"], plan["applicability"]) == ("tight", "unsafe")
    peak = plan["estimate"]["peak_bytes"]
    assert peak["likely"] <= capacity < peak["high"]
    said = " ".join(lintfit("check", ".", cwd=work).out.split())
    assert f"it may take up to {peak['high'] / 2**30:.1f} of {capacity / 2**30:.1f} GiB (" in said
    assert "tight." in lintfit("fit", ".", "--apply", "1", cwd=work).out
    (after,) = lintfit("check", ".", "--output-format", "json", cwd=work).json["runs"]
    assert after["verdict"] == "tight"


NEARLY = {
    "model": "Qwen/Qwen2.5-1.5B", "gpu_memory_gib": 4.0, "gpus": 1, "method": "lora", "weights_dtype": "bf16",
    "mixed_precision": "bf16", "micro_batch_size": 2, "seq_len": 2048, "gradient_checkpointing": True,
    "attention": "sdpa", "loss": "full",
}  # fmt: skip


def test_what_leaves_more_of_the_training_and_may_fit_is_named_beside_a_plan(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(NEARLY))
    (run,) = lintfit("fit", "--spec", "run.json", "--output-format", "json", cwd=tmp_path).json["runs"]
    first, near = run["plans"][:2]
    assert first["verdict"] == "fits" and near["verdict"] == "tight"
    assert near["by_hand"].startswith("it may take up to ")
    assert any("four bits" in effect for effect in first["effects"])
    assert not any("four bits" in effect for effect in near["effects"])


def test_a_key_of_an_accelerate_yaml_comes_before_a_json_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")\n'
        "Trainer(model=model, args=args).train()\n"
    )
    (tmp_path / "zero3.yaml").write_text(
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: none\n"
        "  offload_param_device: none\n  zero3_init_flag: true\nmixed_precision: bf16\nnum_processes: 6\n"
    )
    launch = "accelerate launch --config_file zero3.yaml train.py --output_dir out --bf16 True"
    (tmp_path / "run.sh").write_text(f"{launch} --per_device_train_batch_size 1 --gradient_checkpointing True\n")
    options = Options(gpu="GeForce RTX 3090", isolated=True, seq_len=1024, origins={"gpu": "--gpu"})
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    assert judged.run.spec is not None
    search = Search(Space(Subject(judged.run, judged.run.spec), Effect.SAME), Margin())
    found = [one.candidate for one in search.of_class(Effect.SAME)]
    assert {one.splits for one in found} == {True, False}
    assert [one.splits for one in found] == sorted(one.splits for one in found)
    offloads = ("cpu" in (one.changes.get("offload_optimizer"), one.changes.get("offload_param")) for one in found)
    assert next(offloads)


def test_a_plan_that_makes_micro_batches_larger_comes_behind_those_that_do_not(tmp_path: Path) -> None:
    """It is faster beside an offload, and nobody expects it of what is to save memory."""
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")\n'
        "args = TrainingArguments('out', bf16=True, per_device_train_batch_size=1, gradient_accumulation_steps=8,\n"
        "                         gradient_checkpointing=True, deepspeed='zero3.json')\n"
        "Trainer(model=model, args=args).train()\n"
    )
    (tmp_path / "zero3.json").write_text('{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}')
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 4 train.py\n")
    options = Options(gpu="GeForce RTX 3090", isolated=True, seq_len=512, origins={"gpu": "--gpu"})
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    assert judged.run.spec is not None
    search = Search(Space(Subject(judged.run, judged.run.spec), Effect.SAME), Margin())
    grows = ["micro_batch_size" in one.candidate.changes for one in search.of_class(Effect.SAME)]
    assert set(grows) == {True, False} and grows == sorted(grows)
    asked = Search(Space(Subject(judged.run, judged.run.spec, recomputes=False), Effect.SAME), Margin())
    grows = ["micro_batch_size" in one.candidate.changes for one in asked.of_class(Effect.SAME)]
    assert grows != sorted(grows)


LOOP = """\
from accelerate import Accelerator
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
steps = accelerator.gradient_accumulation_steps
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")
loader = DataLoader(data, batch_size=1)
model, optimizer, loader = accelerator.prepare(model, AdamW(model.parameters()), loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(("stated", "splits"), [("", True), ("  gradient_accumulation_steps: 8\n", False)])
def test_the_accumulation_of_a_loop_stays_in_its_yaml(stated: str, splits: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "zero3.yaml").write_text(
        f"distributed_type: DEEPSPEED\ndeepspeed_config:\n{stated}  zero_stage: 3\n"
        "  zero3_init_flag: true\nmixed_precision: bf16\nnum_processes: 6\n"
    )
    (tmp_path / "run.sh").write_text("accelerate launch --config_file zero3.yaml train.py\n")
    options = Options(gpu="GeForce RTX 3090", isolated=True, seq_len=1024, origins={"gpu": "--gpu"})
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    subject = Subject(judged.run, judged.run.spec)  # type: ignore[arg-type]
    assert any(option.splits for option in buckets.options(subject)) is splits
