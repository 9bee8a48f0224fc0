"""What could be written and is shown instead: engines of scripts that no launcher starts, examples in pages, packages
that a project does not install."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check, load_runs
from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, FileEdit, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Plan
from lintfit.fit.care import Care, said_anew, spoken_of
from lintfit.fit.feasibility import Feasibility
from lintfit.memory.spec import GIB
from lintfit.options.model import Options

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-{size}", torch_dtype="float32")
args = TrainingArguments(output_dir="out", per_device_train_batch_size={micro}, bf16=True{more})
Trainer(model=model, args=args).train()
"""
FLAGS = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args).train()
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _plan(file: Path, gpus: int = 1, seq_len: int | None = 1024, **more: Any) -> Plan:
    return next(each for each in _plans(file, gpus, seq_len, **more) if each is not None)


def _plans(file: Path, gpus: int = 1, seq_len: int | None = 1024, **more: Any) -> list[Plan | None]:
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": gpus, **more}
    if seq_len is not None:
        stated["seq_len"] = seq_len
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    return [each.plan for each in check([file], options).runs]


def test_an_engine_is_not_hard_wired_into_a_script_that_nothing_launches(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(size="3B", micro=1, more=""))
    plan = _plan(script, gpus=8)
    assert "launcher" in plan.by_hand
    assert plan.fix.changes["engine"] in ("deepspeed", "fsdp") and plan.actions
    script.write_text(SCRIPT.format(size="0.5B", micro=32, more=""))
    plan = _plan(script, gpus=8)
    assert not plan.by_hand and "engine" not in plan.fix.changes


@pytest.mark.parametrize(
    ("name", "text", "by_hand"),
    [
        ("setup.py", 'def make(path="run.sh"):\n    with open(path, "w") as f:\n        f.write(TEXT)\n', True),
        ("setup.py", 'from pathlib import Path\nPath("run.sh").write_text(TEXT)\n', True),
        ("setup.sh", "cat > run.sh <<EOF\nabc\nEOF\n", True),
        ("setup.sh", "cat <<EOF > ./run.sh\nabc\nEOF\n", True),
        ("setup.py", 'run("run.sh")\nwith open("log.txt", "w") as f:\n    f.write(TEXT)\n', False),
        ("setup.sh", "bash run.sh > log.txt\ncat <<EOF > other_run.sh\nEOF\n", False),
    ],
)
def test_what_another_script_writes_is_not_written(tmp_path: Path, name: str, text: str, by_hand: bool) -> None:
    run = tmp_path / "run.sh"
    (tmp_path / "train.py").write_text(FLAGS)
    run.write_text(
        "python train.py --output_dir out --bf16 True --per_device_train_batch_size 32 --gradient_accumulation_steps 1"
        " --gradient_checkpointing True\n"
    )
    (tmp_path / name).write_text(text)
    plan = _plan(Path("run.sh"))
    assert plan.by_hand == (f"run.sh is written by {name}" if by_hand else "")


@pytest.mark.parametrize(("steps", "by_hand"), [("", True), (" --gradient_accumulation_steps 1", False)])
def test_an_example_of_a_page_gets_no_new_flags(tmp_path: Path, steps: str, by_hand: bool) -> None:
    page = tmp_path / "README.md"
    (tmp_path / "train.py").write_text(FLAGS)
    command = f"python train.py --output_dir out --bf16 True --per_device_train_batch_size=32{steps}"
    page.write_text(f"# Training\n\n```bash\n{command} --gradient_checkpointing True\n```\n")
    plan = _plan(page)
    assert bool(plan.by_hand) is by_hand
    assert plan.fix.changes["micro_batch_size"] < 32
    assert any(action.lines for action in plan.actions)


@pytest.mark.parametrize(("beside", "by_hand"), [("To train:", False), ("It was trained by this command:", True)])
def test_an_example_may_be_shown_one_gpu(tmp_path: Path, beside: str, by_hand: bool) -> None:
    page = tmp_path / "README.md"
    (tmp_path / "train.py").write_text(SCRIPT.format(size="0.5B", micro=32, more=""))
    page.write_text(f"# Training\n\n{beside}\n\n```bash\npython train.py\n```\n")
    plan = _plan(page, gpus=8)
    assert any("CUDA_VISIBLE_DEVICES=0" in action.said() for action in plan.actions)
    assert bool(plan.by_hand) is by_hand


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        ("Runs on one GPU of 32 GB.", ""),
        ("We use a batch size of 32.", "speaks of 32 beside its example"),
        ("## Results\n\nWith a batch size of 32.", ""),
        ("or\n\n```bash\n{smaller}\n```", "has that command already, on line 10"),
    ],
)
def test_an_example_that_a_page_speaks_of_stays(tmp_path: Path, beside: str, why: str) -> None:
    page = tmp_path / "README.md"
    (tmp_path / "train.py").write_text(FLAGS)
    command = (
        "python train.py --output_dir out --bf16 True --per_device_train_batch_size {} --gradient_accumulation_steps {}"
        " --gradient_checkpointing True"
    )
    page.write_text(f"# Training\n\n```bash\n{command.format(32, 1)}\n```\n\n")
    micro = _plan(page).fix.changes["micro_batch_size"]
    with page.open("a") as file:
        file.write(beside.format(smaller=command.format(micro, 32 // micro)) + "\n")
    by_hand = _plan(page).by_hand
    assert by_hand.endswith(f"README.md {why}") if why else not by_hand


@pytest.mark.parametrize(
    ("above", "record"),
    [
        ("The adapter on the Hub was trained on March 26 with the following command:", True),
        ("We trained it by", False),
        ("It was trained so.\n\nTo train it yourself:", False),
        ("To train it:", False),
    ],
)
def test_a_command_that_a_page_records_stays(tmp_path: Path, above: str, record: bool) -> None:
    page = tmp_path / "README.md"
    (tmp_path / "train.py").write_text(FLAGS)
    command = "python train.py --output_dir out --bf16 True --per_device_train_batch_size 32"
    command += " --gradient_accumulation_steps 1 --gradient_checkpointing True"
    page.write_text(f"# Training\n\n{above}\n\n```bash\n{command}\n```\n")
    by_hand = _plan(page).by_hand
    assert by_hand.endswith("records the command of a training that was made") if record else not by_hand


@pytest.mark.parametrize(
    ("asked", "offered"), [(None, True), ("transformers\n", False), ("transformers\nbitsandbytes\n", True)]
)
def test_a_package_that_is_not_installed_is_left_to_a_person(tmp_path: Path, asked: str | None, offered: bool) -> None:
    (tmp_path / "run.sh").write_text("python train.py\n")
    (tmp_path / "train.py").write_text(SCRIPT.format(size="1.5B", micro=2, more=", gradient_checkpointing=True"))
    if asked is not None:
        (tmp_path / "requirements.txt").write_text(asked)
    plan = _plan(tmp_path / "run.sh")
    assert not plan.by_hand
    assert ("optimizer" in plan.fix.changes) is offered


@pytest.mark.parametrize("folder", ["full_finetune", "sft"])
def test_adapters_are_no_pull_request_to_what_is_called_full(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    script = tmp_path / folder / "run.sh"
    script.write_text("python ../train.py\n")
    (tmp_path / "train.py").write_text(SCRIPT.format(size="7B", micro=1, more=", gradient_checkpointing=True"))
    plan = _plan(script)
    assert plan.fix.changes["method"] == "lora"
    assert ("trains all weights" in plan.by_hand) is (folder == "full_finetune")


DISTRIBUTED = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=TrainingArguments("out", bf16=True), train_dataset=data).train()
"""


@pytest.mark.parametrize(("name", "kept"), [("train_ddp", True), ("train_fsdp", False), ("train_multi_gpu", False)])
def test_a_launch_that_is_called_by_one_engine_gets_no_other(tmp_path: Path, name: str, kept: bool) -> None:
    script = tmp_path / f"{name}.sh"
    script.write_text("torchrun --nproc_per_node 2 train.py\n")
    (tmp_path / "train.py").write_text(DISTRIBUTED)
    workspace, options = Workspace(tmp_path), Options(gpu="A100-SXM4-80GB", isolated=True)
    (judged,) = load_runs([script], options, workspace)[1]
    feasibility = Feasibility(judged.run, workspace, options)
    assert ("by its name" in feasibility.why_not({"engine": "fsdp"})) is kept
    assert "by its name" not in feasibility.why_not({"gradient_checkpointing": True})


@pytest.mark.parametrize(
    ("name", "kept"), [("sft_zero2", True), ("run-ds2", True), ("sft_zero3", False), ("stage2_sft", False)]
)
def test_a_launch_that_is_called_by_a_stage_gets_no_other(tmp_path: Path, name: str, kept: bool) -> None:
    script = tmp_path / f"{name}.sh"
    script.write_text("deepspeed --num_gpus 2 train.py --deepspeed zero.json --output_dir out --bf16 True\n")
    (tmp_path / "zero.json").write_text('{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}')
    (tmp_path / "train.py").write_text(FLAGS)
    workspace, options = Workspace(tmp_path), Options(gpu="A100-SXM4-80GB", isolated=True)
    (judged,) = load_runs([script], options, workspace)[1]
    feasibility = Feasibility(judged.run, workspace, options)
    assert ("by its name" in feasibility.why_not({"zero_stage": 3})) is kept
    assert not feasibility.why_not({"offload_optimizer": "cpu"})


GRPO = """\
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype="bfloat16")
args = GRPOConfig(
    "out", bf16=True, per_device_train_batch_size=16, max_completion_length=2048, gradient_checkpointing=True{more}
)
GRPOTrainer(model=model, args=args, reward_funcs=len, train_dataset=data, peft_config=LoraConfig()).train()
"""
OLDER = "trl==0.21.0\ntransformers==4.55.0\n"


@pytest.mark.parametrize("more", ["", ", steps_per_generation=4"])
def test_a_micro_batch_that_says_how_much_is_generated_is_left_to_a_person(tmp_path: Path, more: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(GRPO.format(more=more))
    (tmp_path / "requirements.txt").write_text(OLDER)
    options = Options(gpu="A100-SXM4-80GB", isolated=True, origins={"gpu": "--gpu"})
    plan = next(each.plan for each in check([script], options).runs if each.plan is not None)
    assert plan.fix.changes["micro_batch_size"] < 16
    assert ("steps_per_generation" in plan.by_hand) is bool(more)


@pytest.mark.parametrize(("share", "planned"), [(0.05, False), (0.5, True)])
def test_nothing_is_planned_where_vllm_does_not_start(tmp_path: Path, share: float, planned: bool) -> None:
    script = tmp_path / "train.py"
    more = f', use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization={share}'
    script.write_text(GRPO.format(more=more))
    (tmp_path / "requirements.txt").write_text(OLDER)
    options = Options(gpu="RTX 3090", isolated=True, origins={"gpu": "--gpu"})
    (run,) = check([script], options).runs
    assert (run.plan is not None) is planned


RECIPE = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: {method}
dataset: alpaca
template: qwen
packing: {packing}
cutoff_len: {length}
output_dir: out
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
"""


def test_what_a_shorter_sample_loses_is_for_a_person_to_say(tmp_path: Path) -> None:
    recipe = tmp_path / "full.yaml"
    more = "enable_liger_kernel: true\nflash_attn: fa2\ndeepspeed: ds.json\n"
    text = RECIPE.format(method="full", packing="true", length=32768).replace("7B", "32B") + more
    recipe.write_text(text)
    offload = '"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}'
    batch = '"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"'
    (tmp_path / "ds.json").write_text(f'{{"zero_optimization": {{"stage": 3, {offload}}}, {batch}}}\n')
    plan = _plan(recipe, gpus=8, seq_len=None)
    assert plan.by_hand == "it cuts samples at 8,192 tokens instead of 32,768: what that loses is for a person to say"
    assert plan.actions[0].lines


def test_a_run_that_fits_with_shorter_samples_is_left_as_it_is(tmp_path: Path) -> None:
    recipe = tmp_path / "lora.yaml"
    recipe.write_text(RECIPE.format(method="lora", packing="false", length=16384))
    plan = _plan(recipe, gpus=8, seq_len=None)
    assert plan.by_hand.startswith(("the run fits as it is while no sample has more than", "it cuts samples at"))
    recipe.write_text(RECIPE.format(method="lora", packing="true", length=16384))
    assert not (_plan(recipe, gpus=8, seq_len=None).by_hand or "").startswith("the run fits as it is")


@pytest.mark.parametrize(("data", "by_hand"), [(False, True), (True, False)])
def test_a_new_file_for_a_recipe_that_nothing_starts(tmp_path: Path, data: bool, by_hand: bool) -> None:
    """Its path counts from the folder where the command is typed, which another path of the recipe may tell."""
    recipe = tmp_path / "full.yaml"
    recipe.write_text(RECIPE.format(method="full", packing="true", length=1024) + "dataset_dir: ./my/data\n")
    if data:
        (tmp_path / "my" / "data").mkdir(parents=True)
    plan = _plan(recipe, gpus=8, seq_len=None)
    assert plan.fix.changes["engine"] == "deepspeed"
    assert ("from which folder" in plan.by_hand) is by_hand


def test_one_gpu_is_not_given_deepspeed_by_a_recipe_that_nothing_starts(tmp_path: Path) -> None:
    recipe = tmp_path / "full_single_gpu.yaml"
    recipe.write_text(RECIPE.format(method="full", packing="true", length=1024))
    plan = _plan(recipe, gpus=8, seq_len=None)
    if plan.fix.changes.get("engine") == "deepspeed":
        assert "FORCE_TORCHRUN=1" in plan.by_hand


def test_a_command_that_its_parser_refuses_gets_no_plan(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FLAGS)
    command = "python train.py --output_dir out --bf16 True --per_device_train_batch_size 64"
    for flags, plans in (("", 1), (" --logging_steps1 --report_to none", 0)):
        (tmp_path / "run.sh").write_text(f"{command}{flags}\n")
        assert sum(each is not None for each in _plans(tmp_path / "run.sh")) == plans


@pytest.mark.parametrize(
    ("launch", "gpus", "shown"),
    [
        ("python train.py", 8, True),
        ("python train.py", 1, False),
        ("CUDA_VISIBLE_DEVICES=1 python train.py", 8, False),
        ("torchrun --nproc_per_node 8 train.py", 8, False),
    ],
)
def test_a_trainer_in_one_process_is_shown_the_gpu_that_it_is_judged_on(
    tmp_path: Path, launch: str, gpus: int, shown: bool
) -> None:
    (tmp_path / "train.py").write_text(FLAGS)
    (tmp_path / "run.sh").write_text(f"{launch} --output_dir out --bf16 True --per_device_train_batch_size 64\n")
    plan = _plan(tmp_path / "run.sh", gpus=gpus)
    assert not plan.by_hand
    texts = [edit.edit.text for edit in plan.fix.edits if edit.path.name == "run.sh"]
    assert any("CUDA_VISIBLE_DEVICES=0 python" in text for text in texts) is shown


@pytest.mark.parametrize(
    ("stated", "filled"),
    [("", True), ('"gradient_accumulation_steps": "auto",', False), ('"train_batch_size": "auto",', False)],
)
def test_deepspeed_is_told_of_an_accumulation_that_is_new(tmp_path: Path, stated: str, filled: bool) -> None:
    (tmp_path / "train.py").write_text(FLAGS)
    zero = '"zero_optimization": {"stage": 1}'
    (tmp_path / "ds.json").write_text(f'{{{stated}"train_micro_batch_size_per_gpu": "auto", {zero}}}\n')
    command = "torchrun --nproc_per_node 8 train.py --output_dir out --per_device_train_batch_size 64"
    (tmp_path / "run.sh").write_text(f"{command} --gradient_checkpointing True --deepspeed ds.json\n")
    plan = _plan(tmp_path / "run.sh", gpus=8)
    assert not plan.by_hand and plan.fix.changes["gradient_accumulation_steps"] > 1
    texts = "".join(edit.edit.text for edit in plan.fix.edits if edit.path.suffix == ".json")
    assert ("gradient_accumulation_steps" in texts) is filled


@pytest.mark.parametrize(
    ("before", "behind", "said"),
    [
        ("", "", False),
        ("# Same batch size for a fair comparison\n", "", True),
        ("# Same data.\n\n", "", False),
        ("", "  # was 32 before, 64 is faster", True),
        ("# per GPU\n", "  # samples", False),
        ("", "  # 每块GPU上的批次大小。对于3090和0.6B模型，64或128是安全的选择", True),
        ("", "  # 与论文保持一致", True),
        ("", "  # 每块GPU上的批次大小", False),
        ("", "  # The paper has 64.", True),
        ("", "  # 64.5 GiB, at v64", False),
    ],
)
def test_a_number_of_which_a_comment_speaks(tmp_path: Path, before: str, behind: str, said: bool) -> None:
    (tmp_path / "a.yaml").write_text(f"lr: 64\n{before}batch: 64{behind}\nother: 2  # keep\n")
    document = Workspace(tmp_path).read(Path("a.yaml"))
    at = document.text.index("batch: 64") + len("batch: ")
    edit = FileEdit(document.path, Edit(Span(at, at + 2), "8"), document)
    assert spoken_of([edit]).endswith("says why it is 64") is said


@pytest.mark.parametrize(
    ("comment", "then"),
    [
        ("  #64 for 8B, 2 for 70B", "  #8 for 8B, 2 for 70B"),
        ("  # 64", "  # 8"),
        ("  # 64 for us, the paper has 64", None),
        ("  # 64 GPUs", None),
        ("  # must be 64", None),
        ("  # 64 per GPU, keep", None),
    ],
)
def test_a_comment_that_says_its_number_again_says_the_new_one(tmp_path: Path, comment: str, then: str | None) -> None:
    (tmp_path / "a.yaml").write_text(f"batch: 64{comment}\nother: 2\n")
    document = Workspace(tmp_path).read(Path("a.yaml"))
    edit = FileEdit(document.path, Edit(Span(7, 9), "8"), document)
    edits = [edit, *said_anew([edit])]
    after = apply(document.text, [each.edit for each in edits])
    assert after == f"batch: 8{then if then is not None else comment}\nother: 2\n"
    assert bool(spoken_of(edits)) is (then is None)
    assert Care(Workspace(tmp_path)).of(edits).comments == ()


@pytest.mark.parametrize(
    ("asked", "by_hand"), [("transformers==4.46.0\n", True), ("transformers\n", False), ("transformers\npeft\n", False)]
)
def test_adapters_need_peft(tmp_path: Path, asked: str, by_hand: bool) -> None:
    (tmp_path / "run.sh").write_text("python train.py\n")
    (tmp_path / "train.py").write_text(SCRIPT.format(size="7B", micro=1, more=", gradient_checkpointing=True"))
    (tmp_path / "requirements.txt").write_text(asked)
    plan = _plan(tmp_path / "run.sh")
    assert plan.fix.changes["method"] == "lora"
    assert ("it needs peft" in plan.by_hand) is by_hand


def test_an_error_that_a_run_stops_with_already_is_mended_with_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FLAGS.replace('0.5B")', '0.5B", device_map="auto")'))
    command = "torchrun --nproc_per_node 8 train.py --output_dir out --bf16 True --per_device_train_batch_size 64"
    (tmp_path / "run.sh").write_text(f"{command}\n")
    plan = _plan(tmp_path / "run.sh", gpus=8)
    assert not plan.by_hand
    assert any(edit.path.name == "train.py" and "device_map" not in edit.edit.text for edit in plan.fix.edits)


def test_unsloth_is_given_no_engine(tmp_path: Path) -> None:
    text = SCRIPT.format(size="7B", micro=1, more="")
    (tmp_path / "train.py").write_text(f"import unsloth\n{text}")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 8 train.py\n")
    (plan,) = _plans(tmp_path / "run.sh", gpus=8)
    assert plan is None or plan.by_hand or "engine" not in plan.fix.changes
    (tmp_path / "train.py").write_text(text)
    assert _plan(tmp_path / "run.sh", gpus=8).fix.changes["engine"] in ("deepspeed", "fsdp")


@pytest.mark.parametrize(
    ("size", "there", "by_hand"),
    [("72B", None, True), ("72B", 2048 * GIB, False), ("32B", None, False)],
)
def test_a_host_that_few_machines_have_is_for_a_person_to_say(
    tmp_path: Path, size: str, there: int | None, by_hand: bool
) -> None:
    (tmp_path / "ds.json").write_text('{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}\n')
    (tmp_path / "train.py").write_text(FLAGS.replace("0.5B", size))
    flags = "--output_dir out --bf16 True --gradient_checkpointing True --deepspeed ds.json"
    batch = "--per_device_train_batch_size 1"
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node 8 train.py {flags} {batch}\n")
    plan = _plan(tmp_path / "run.sh", gpus=8, **({} if there is None else {"host_memory_bytes": there}))
    assert plan.fix.changes["offload_optimizer"] == "cpu"
    assert ("of host memory on each node" in plan.by_hand) is by_hand
    assert bool(plan.by_hand) is by_hand


@pytest.mark.parametrize(
    ("resumes", "release", "said"),
    [("True", "4.51.3", True), ("True", "4.30.2", False), ("True", "5.24.0", False), ("False", "4.51.3", False)],
)
def test_a_checkpoint_brings_its_micro_batch_back(tmp_path: Path, resumes: str, release: str, said: bool) -> None:
    script = tmp_path / "train.py"
    text = SCRIPT.format(size="0.5B", micro=32, more="").replace("train()", f"train(resume_from_checkpoint={resumes})")
    script.write_text(text)
    (tmp_path / "requirements.txt").write_text(f"transformers=={release}\n")
    plan = _plan(script)
    assert plan.fix.changes["micro_batch_size"] < 32
    assert ("train.py:5 goes on from a checkpoint, which brings micro-batch 32 back" in plan.by_hand) is said


YAML = """\
compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 8
  zero_stage: 2
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 1
"""


@pytest.mark.parametrize(("tokens", "sure"), [(4096, True), (5120, False)])
def test_one_config_that_likely_does_comes_before_two_that_surely_do(tmp_path: Path, tokens: int, sure: bool) -> None:
    """An Accelerate YAML has no sizes of buffers: for those a DeepSpeed JSON would have to stand beside it."""
    run = tmp_path / "run.sh"
    (tmp_path / "train.py").write_text(
        FLAGS.replace('Qwen/Qwen2.5-0.5B"', 'out/Qwen2.5-3B/checkpoint-9", torch_dtype="bfloat16"')
    )
    (tmp_path / "zero2.yaml").write_text(YAML)
    flags = "--output_dir out --bf16 True --per_device_train_batch_size 1 --gradient_checkpointing True"
    run.write_text(f"accelerate launch --config_file zero2.yaml train.py {flags} --gradient_accumulation_steps 8\n")
    plan = _plan(Path("run.sh"), seq_len=tokens)
    assert not plan.by_hand and plan.fix.changes.get("offload_optimizer") == "cpu"
    assert "buffers" not in plan.name
    assert (plan.applicability.value == "safe") is sure


@pytest.mark.parametrize(
    ("loss", "by_hand"),
    [
        ("    labels = torch.arange(len(one))\n    return cross_entropy(one @ other.T, labels)\n", True),
        ("    places = torch.arange(len(one))\n    return cross_entropy(one[places], other)\n", False),
        ("    loss = (one * other).sum(dim=1).sum() / max_length\n    return loss\n", True),
        ("    loss = (one * other).sum() / 1024  # tokens\n    return loss\n", True),
        ("    loss = (one * other).sum() / (one.size(0) * max_length)\n    return loss\n", False),
        ("    loss = (one * other).sum() / other.sum()\n    return loss\n", False),
    ],
)
def test_a_loss_that_knows_its_batch_keeps_it(tmp_path: Path, loss: str, by_hand: bool) -> None:
    script = tmp_path / "train.py"
    imports = "import torch\nfrom torch.nn.functional import cross_entropy\n"
    more = f"{imports}\n\ndef contrast(one, other, max_length=1024):\n{loss}\n\n"
    script.write_text(more + SCRIPT.format(size="0.5B", micro=32, more=", gradient_checkpointing=True"))
    plan = _plan(script)
    assert ("micro_batch_size" in plan.fix.changes and not plan.by_hand) is not by_hand
