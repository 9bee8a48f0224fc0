"""A plan's actions name every line that it changes, by the numbers of the files as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Plan
from lintfit.fit.actions import _sizes, actions
from lintfit.fit.alternatives import alternatives
from lintfit.fit.applying import Applied, apply_changes
from lintfit.fit.planner import plan
from lintfit.options.model import Options
from lintfit.run.model import Run
from tests.support import ROOT, lintfit

EXAMPLES = ("medicalgpt", "three-strategies", "trl-grpo")


@pytest.fixture(autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples without the rest of the repository, whose pages name the same files in hundreds of commands."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    monkeypatch.chdir(folder)


def _run(name: str) -> Run:
    _, (result, *_) = load_runs([Path("examples") / name], Options())
    return result.run


def _plan(name: str) -> Plan:
    found = plan(_run(name), Workspace(), Options()).plan
    assert found is not None
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_changed_line_belongs_to_an_action(name: str) -> None:
    plans = alternatives(_run(name), Workspace(), Options()).plans
    assert plans
    for each in plans:
        said = {(line.path, line.line) for action in each.actions for line in action.lines}
        made = {action.creates for action in each.actions if action.creates is not None}
        for edit in each.fix.edits:
            if edit.document is None:
                assert edit.path in made
                continue
            first = edit.document.position(edit.edit.span.start).line
            last = edit.document.position(edit.edit.span.end).line
            near = range(first - 1, last + 2)  # an insertion may be counted to the line behind it or before it
            assert any((edit.path, line) in said for line in near), (each.name, edit.path, first)


def test_a_file_that_is_made_and_the_flag_that_hands_it_over() -> None:
    said = [action.said(lambda path: path.name) for action in _plan("medicalgpt").actions]
    assert said[1:] == [
        "create ds_zero3.json (ZeRO-3, reduce_bucket_size auto, stage3_prefetch_bucket_size auto)",
        "run_sft.sh:20: add --deepspeed ds_zero3.json",
    ]
    assert said[0].startswith("keep the weights as they are loaded: supervised_finetuning.py:77 (delete else: ")


def test_a_value_that_the_words_have_is_not_repeated() -> None:
    said = [action.said(lambda path: path.name) for action in _plan("trl-grpo").actions]
    assert said == [
        "lower the micro-batch from 8 to 2: train_grpo.py:33",
        "accumulate 16 steps instead of 4: train_grpo.py:34",
    ]


def test_an_argument_that_is_added_is_shown() -> None:
    (action,) = _plan("three-strategies").actions
    assert (
        action.said(lambda path: path.name)
        == "turn on gradient checkpointing: train.py:28 (add gradient_checkpointing=True)"
    )


def test_lines_are_those_of_the_files_as_they_are(tmp_path: Path) -> None:
    """Adapters add an import at the top first; the lines below are counted without it."""
    plans = alternatives(_run("three-strategies"), Workspace(), Options()).plans
    adapters = next(each for each in plans if each.name.startswith("LoRA"))
    (checkpointing,) = [action for action in adapters.actions if "checkpointing" in action.text]
    assert [line.line for line in checkpointing.lines] == [28]


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_spec_words(name: str) -> None:
    for each in alternatives(_run(name), Workspace(), Options()).plans:
        for action in each.actions:
            assert "→" not in action.said()
            if action.creates is None and not each.by_hand:  # of a new file its own keys are said
                assert "_" not in action.text.replace("FULL_SHARD", "").replace("W_pack", "")


def test_adapters_of_the_script_s_own_have_their_own_rank() -> None:
    plans = alternatives(_run("medicalgpt"), Workspace(), Options()).plans
    adapters = next(each for each in plans if each.name == "LoRA")
    assert adapters.actions[0].text == "train LoRA adapters of rank 8 on W_pack in place of all weights"
    assert all("rank" not in effect for effect in adapters.effects)


def test_what_a_yaml_gets_is_said_with_the_key_that_gets_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        'model = AutoModelForCausalLM.from_pretrained("EleutherAI/gpt-j-6b")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    (tmp_path / "shards.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: false\n"
        "  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_transformer_layer_cls_to_wrap: GPTJBlock\n"
        "  fsdp_state_dict_type: SHARDED_STATE_DICT\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\n"
    )
    (tmp_path / "run.sh").write_text("accelerate launch --config_file shards.yaml train.py --output_dir out\n")
    (tmp_path / "lintfit.toml").write_text('gpu = "RTX 3090"\nseq-len = 1024\n')
    options = Options(gpu="RTX 3090", seq_len=1024, isolated=True, origins={"gpu": "--gpu", "seq_len": "--seq-len"})
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    zero = {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "none"}
    changes = {"engine": "deepspeed", **zero, "fsdp": None, "mixed_precision": "bf16"}
    applied = apply_changes(judged.run, changes, Workspace(), options)
    assert isinstance(applied, Applied)
    said = "; ".join(action.said(lambda path: path.name) for action in actions(judged.run, changes, applied))
    assert "shards.yaml:3 (delete 6 lines from here on)" in said
    assert "shards.yaml:2 (add deepspeed_config: with zero_stage: 3, zero3_save_16bit_model: true)" in said
    assert "(add offload_optimizer_device: cpu to deepspeed_config)" in said


def test_what_is_only_moved_to_lines_of_its_own_is_no_action(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype="bfloat16")\n'
        'training = SFTConfig("out", max_length=1024, per_device_train_batch_size=2)\n'
        "SFTTrainer(model=model, args=training, train_dataset=data).train()\n"
    )
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    (tmp_path / "lintfit.toml").write_text('gpu = "RTX 4090"\nversions = {transformers = "5.23.0", trl = "1.16.0"}\n')
    said = " ".join(lintfit("fit", ".", cwd=tmp_path).out.split())
    assert 'train.py:4: add deepspeed="ds_zero3' in said
    assert "change the line" not in said and ",))" not in said


def test_a_new_file_says_the_sizes_that_are_the_plan_s_own() -> None:
    text = '{"zero_optimization": {"stage": 3, "sub_group_size": 1e8, "reduce_bucket_size": "auto", "other": 5e7}}'
    own = {"sub_group_size": 100_000_000}
    assert list(_sizes(text, own)) == ["sub_group_size 1e8", "reduce_bucket_size auto"]
    assert list(_sizes(text, {})) == ["reduce_bucket_size auto"]
