"""What other launches of the tree read stays as it is; what a file's name says stays true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check, load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit.apart import _SPOKEN_OF, Apart, _without_comments_of, _without_old_reasons
from lintfit.fit.applying import Applied, apply_changes
from lintfit.fit.options import Candidate, Option
from lintfit.fit.planner import _without_unwritten
from lintfit.fit.search import Fitting
from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.options.model import Options
from lintfit.run.write import write_one
from tests.support import lintfit

TRAINER = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
Trainer(model=model, args=args).train()
"""
ZERO2 = """\
{
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2},
    "gradient_clipping": "auto",
    "train_micro_batch_size_per_gpu": "auto"
}
"""
RUN = """\
torchrun --nproc_per_node 4 train.py \\
    --output_dir out \\
    --bf16 True \\
    --gradient_checkpointing True \\
    --per_device_train_batch_size 1 \\
    --deepspeed ./{config}
"""
WHOLE = {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
CARDS = ("--gpu", "3090", "--host-memory", "512")


def tree(folder: Path, **files: str) -> Path:
    for name, text in {"train.py": TRAINER, **files}.items():
        (folder / name.replace("__", "/").replace("_dot_", ".")).write_text(text)
    return folder


def fixed(folder: Path, launch: str = "a.sh", length: int = 1024) -> str:
    lintfit("check", launch, "--fix", "--unsafe-fixes", "--seq-len", str(length), *CARDS, cwd=folder)
    return (folder / launch).read_text()


def test_a_json_that_another_launch_reads_gets_a_copy(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), b_dot_sh=RUN.format(config="ds.json"), ds_dot_json=ZERO2)
    assert "--deepspeed ./ds_zero3_offload.json" in fixed(tmp_path)
    assert (tmp_path / "ds.json").read_text() == ZERO2
    zero = json.loads((tmp_path / "ds_zero3_offload.json").read_text())["zero_optimization"]
    assert zero["stage"] == 3
    assert zero["offload_optimizer"] == {"device": "cpu"}


@pytest.mark.parametrize(("other", "kept"), [("python train.py --output_dir out\n", True), ("", False)])
def test_a_map_that_spreads_the_model_of_another_launch_stays(tmp_path: Path, other: str, kept: bool) -> None:
    spread = TRAINER.replace('dtype="bfloat16"', 'dtype="bfloat16", device_map="auto"')
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), ds_dot_json=ZERO2, b_dot_sh=other)
    (tmp_path / "train.py").write_text(spread)
    fixed(tmp_path)
    assert ((tmp_path / "train.py").read_text() == spread) is kept


@pytest.mark.parametrize("half", ["bf16", "fp16"])
def test_a_trainer_s_file_that_leaves_its_precision_out_has_it_once_zero3_makes_the_shards(
    tmp_path: Path, half: str
) -> None:
    config = json.loads(ZERO2)
    del config["bf16"]
    start = RUN.format(config="ds.json").replace("bf16", half)
    tree(tmp_path, a_dot_sh=start, b_dot_sh=start, ds_dot_json=json.dumps(config, indent=4))
    fixed(tmp_path)
    made = json.loads((tmp_path / "ds_zero3_offload.json").read_text())
    assert made["zero_optimization"]["stage"] == 3
    assert made[half] == {"enabled": "auto"}


def test_a_json_that_a_notebook_s_command_reads_gets_a_copy(tmp_path: Path) -> None:
    command = "!" + RUN.format(config="ds.json").replace(" \\\n   ", "")
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": [command]}]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), b_dot_ipynb=notebook, ds_dot_json=ZERO2)
    assert "--deepspeed ./ds_zero3_offload.json" in fixed(tmp_path)
    assert (tmp_path / "ds.json").read_text() == ZERO2


def test_a_json_that_a_noted_command_reads_gets_a_copy(tmp_path: Path) -> None:
    notes = "On the cluster:\n\n" + RUN.format(config="ds.json")
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), notes_dot_txt=notes, ds_dot_json=ZERO2)
    assert "--deepspeed ./ds_zero3_offload.json" in fixed(tmp_path)


def test_a_json_that_only_one_launch_reads_is_edited(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), ds_dot_json=ZERO2)
    assert "--deepspeed ./ds.json" in fixed(tmp_path)
    assert json.loads((tmp_path / "ds.json").read_text())["zero_optimization"]["stage"] == 3


def test_a_name_that_would_be_a_lie_stays_with_what_it_names(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=RUN.format(config="zero2.json"), zero2_dot_json=ZERO2)
    assert "--deepspeed ./zero3_offload.json" in fixed(tmp_path)
    assert (tmp_path / "zero2.json").read_text() == ZERO2


@pytest.mark.parametrize(
    ("name", "kept"), [("gpu", True), ("ds_gpu", True), ("single_gpu_ds", False), ("ds_4_gpu", False), ("gpus", False)]
)
def test_a_config_that_is_called_by_the_gpu_offloads_nothing(tmp_path: Path, name: str, kept: bool) -> None:
    zero3 = ZERO2.replace('"stage": 2', '"stage": 3')
    start = RUN.format(config=f"{name}.json").replace("node 4", "node 1")
    tree(tmp_path, a_dot_sh=start, **{f"{name}_dot_json": zero3})
    assert (f"--deepspeed ./{name}.json" not in fixed(tmp_path)) is kept
    assert ((tmp_path / f"{name}.json").read_text() == zero3) is kept


@pytest.mark.parametrize(
    ("name", "made"),
    [("ds_z3_config", "ds_z3_offload_config"), ("ds_z2_config", "ds_z3_offload_config"), ("my_z3_config", None)],
)
def test_a_config_by_the_name_of_one_that_offloads_nothing_offloads_nothing(
    tmp_path: Path, name: str, made: str | None
) -> None:
    """LLaMA-Factory's ``examples/deepspeed`` has both, by these names."""
    stage = int(name[name.index("_z") + 2])
    text = ZERO2.replace('"stage": 2', f'"stage": {stage}')
    start = RUN.format(config=f"{name}.json").replace("node 4", "node 1")
    tree(tmp_path, a_dot_sh=start, **{f"{name}_dot_json": text})
    assert f"--deepspeed ./{made or name}.json" in fixed(tmp_path)
    assert ((tmp_path / f"{name}.json").read_text() == text) is (made is not None)


def test_the_config_for_the_other_place_of_the_states_is_named(tmp_path: Path) -> None:
    zero3 = json.loads(ZERO2)
    files = {"gpu_dot_json": {"stage": 3}, "cpu_dot_json": {"stage": 3, **WHOLE}}
    start = "CONFIG=gpu.json\n" + RUN.replace("./{config}", "$CONFIG").replace("node 4", "node 1")
    texts = {name: json.dumps({**zero3, "zero_optimization": zero}, indent=4) for name, zero in files.items()}
    tree(tmp_path, a_dot_sh=start, **texts)
    assert fixed(tmp_path) == start.replace("gpu.json", "cpu.json")
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["cpu.json", "gpu.json"]


def test_a_name_that_was_untrue_before_is_no_reason_for_a_copy(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=RUN.format(config="ds_fp16.json"), ds_fp16_dot_json=ZERO2)
    assert "--deepspeed ./ds_fp16.json" in fixed(tmp_path)
    assert json.loads((tmp_path / "ds_fp16.json").read_text())["zero_optimization"]["stage"] == 3


BY_VARIABLE = """\
config="zero2.json"
accelerate launch --num_processes 4 --use_deepspeed --deepspeed_config_file "${config}" train.py \\
    --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 \\
    --deepspeed "${config}"
"""


def test_a_variable_that_names_a_config_twice_names_the_other(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=BY_VARIABLE, zero2_dot_json=ZERO2)
    assert fixed(tmp_path) == BY_VARIABLE.replace("zero2.json", "zero3_offload.json")


def test_a_config_in_the_script_s_own_folder_stays_there(tmp_path: Path) -> None:
    own = BY_VARIABLE.replace('config="', 'HERE="$(cd "$(dirname "$0")" && pwd)"\nconfig="$HERE/').replace(
        '    --deepspeed "${config}"\n', ""
    )
    own = own.replace("size 1 \\\n", "size 1\n")
    tree(tmp_path, a_dot_sh=own, zero2_dot_json=ZERO2)
    assert fixed(tmp_path) == own.replace("zero2.json", "zero3_offload.json")


def test_a_json_of_the_tree_that_says_it_comes_before_a_new_one(tmp_path: Path) -> None:
    there = json.loads(ZERO2)
    there["zero_optimization"] = {
        "stage": 3,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "stage3_gather_16bit_weights_on_model_save": True,
    }
    (tmp_path / "configs").mkdir()
    tree(tmp_path, a_dot_sh=RUN.format(config="zero2.json"), zero2_dot_json=ZERO2)
    (tmp_path / "configs" / "stage3.json").write_text(json.dumps(there, indent=4))
    assert "--deepspeed ./configs/stage3.json" in fixed(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["zero2.json"]


OPTIONS = """\
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--steps", type=int, default=1)
options = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(options.model, torch_dtype="bfloat16")
args = TrainingArguments(
    output_dir="out",
    bf16=True,
    gradient_checkpointing=True,
    per_device_train_batch_size=options.batch,
    gradient_accumulation_steps=options.steps,
)
Trainer(model=model, args=args).train()
"""


def test_a_default_is_everybodys_and_a_flag_is_not(tmp_path: Path) -> None:
    tree(tmp_path, train_dot_py=OPTIONS, a_dot_sh="python train.py\n", b_dot_sh="python train.py --steps 2\n")
    launch = fixed(tmp_path)
    assert "--batch" in launch
    assert "--steps" in launch
    assert (tmp_path / "train.py").read_text() == OPTIONS


def test_a_statement_that_other_launches_run_is_changed_by_hand(tmp_path: Path) -> None:
    script = OPTIONS.replace("gradient_checkpointing=True", "gradient_checkpointing=False").replace("64", "1")
    big, small = "python train.py --model Qwen/Qwen2.5-1.5B\n", "python train.py\n"
    tree(tmp_path, train_dot_py=script, a_dot_sh=big, b_dot_sh=small)
    said = " ".join(lintfit("check", "a.sh", "--seq-len", "4096", *CARDS, cwd=tmp_path).out.split())
    assert "b.sh:1 has train.py as well, and would change its" in said
    assert fixed(tmp_path, length=4096) == big
    assert (tmp_path / "train.py").read_text() == script
    (tmp_path / "b.sh").unlink()
    fixed(tmp_path, length=4096)
    assert (tmp_path / "train.py").read_text() != script


def test_a_statement_that_the_other_launches_need_as_much_is_changed_for_all(tmp_path: Path) -> None:
    script = OPTIONS.replace("gradient_checkpointing=True", "gradient_checkpointing=False").replace("64", "1")
    launches = {name: f"python train.py --model Qwen/Qwen2.5-1.5B --out {name}\n" for name in ("a", "b")}
    script = script.replace("options =", 'parser.add_argument("--out")\noptions =')
    tree(tmp_path, train_dot_py=script, a_dot_sh=launches["a"], b_dot_sh=launches["b"])
    said = " ".join(lintfit("check", "a.sh", "--seq-len", "4096", *CARDS, cwd=tmp_path).out.split())
    assert "The same then holds for b.sh:1, which runs train.py as well and does not fit these GPUs either" in said
    assert fixed(tmp_path, length=4096) == launches["a"]
    assert "gradient_checkpointing=True" in (tmp_path / "train.py").read_text()


def test_commands_of_one_file_get_all_of_a_plan_or_nothing(tmp_path: Path) -> None:
    """They may be the nodes of one run."""
    script = OPTIONS.replace("gradient_checkpointing=True", "gradient_checkpointing=False").replace("64", "2")
    script = script.replace("options =", 'parser.add_argument("--rank")\noptions =')
    command = "python train.py --model Qwen/Qwen2.5-1.5B --rank {}\n"
    tree(tmp_path, train_dot_py=script, a_dot_sh=command.format(0) + command.format(1))
    (tmp_path / "requirements.txt").write_text("transformers\n")
    assert "--batch" not in fixed(tmp_path, length=4096)
    assert (tmp_path / "train.py").read_text() == script
    tree(tmp_path, train_dot_py=script, a_dot_sh=command.format(0), b_dot_sh=command.format(1))
    assert "--batch 1" in fixed(tmp_path, length=4096)


@pytest.mark.parametrize(("steps", "both"), [(" --gradient_accumulation_steps 1", True), ("", False)])
def test_the_two_branches_that_start_one_training_get_a_plan_together(tmp_path: Path, steps: str, both: bool) -> None:
    """The words that both have are changed once, where the other launch needs the change as much; a flag that is new
    would be one launch's alone."""
    params = f"--output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 64{steps}"
    branches = (
        f'params=({params})\nif [[ "$1" == "deepspeed" ]]; then\n'
        '  deepspeed --num_gpus 2 train.py --deepspeed ds.json "${params[@]}"\nelse\n'
        '  torchrun --nproc_per_node 2 train.py "${params[@]}"\nfi\n'
    )
    json_ = ZERO2.replace('"stage": 2', '"stage": 2, "offload_optimizer": {"device": "cpu"}')
    small = TRAINER.replace("7B", "0.5B")
    there = tree(tmp_path, run_dot_sh=branches, ds_dot_json=json_)
    (there / "train.py").write_text(small)
    (there / "requirements.txt").write_text("transformers\ndeepspeed\n")
    written = fixed(there, "run.sh")
    found = re.search(r"--per_device_train_batch_size (\d+)", written)
    assert found is not None and (int(found[1]) < 64) is both


def test_a_config_of_the_project_that_offloads_more_comes_before_a_new_one(tmp_path: Path) -> None:
    config = json.loads(ZERO2)
    for name, zero in (("ds", {"stage": 3}), ("ds_offload", {"stage": 3, **WHOLE})):
        (tmp_path / f"{name}.json").write_text(json.dumps({**config, "zero_optimization": zero}, indent=4))
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), b_dot_sh=RUN.format(config="ds.json"))
    assert "--deepspeed ./ds_offload.json" in fixed(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["ds.json", "ds_offload.json"]


def test_a_config_that_brings_a_schedule_does_not_come_before_a_new_one(tmp_path: Path) -> None:
    config = json.loads(ZERO2)
    scheduler = {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}}
    for name, zero, more in (("ds", {"stage": 3}, {}), ("ds_offload", {"stage": 3, **WHOLE}, scheduler)):
        (tmp_path / f"{name}.json").write_text(json.dumps({**config, **more, "zero_optimization": zero}, indent=4))
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), b_dot_sh=RUN.format(config="ds.json"))
    assert "--deepspeed ./ds_offload.json" not in fixed(tmp_path)


@pytest.mark.parametrize(
    ("there", "made"),
    [
        ({"stage": 3, "offload_optimizer": {"device": "cpu"}}, "ds_zero3_no_offload.json"),
        ({"stage": 2}, ""),  # it says by its name what it is not
    ],
)
def test_a_new_config_is_told_from_one_of_its_name_by_a_word_or_not_made(
    there: dict[str, Any], made: str, tmp_path: Path
) -> None:
    other = {**json.loads(ZERO2), "zero_optimization": there}
    tree(tmp_path, a_dot_sh=RUN.format(config="ds_zero2.json"), ds_zero2_dot_json=ZERO2)
    (tmp_path / "ds_zero3.json").write_text(json.dumps(other))
    options = Options(gpu="A100-SXM4-80GB", seq_len=512, isolated=True)
    (judged,) = load_runs([tmp_path / "a.sh"], options)[1]
    applied = apply_changes(judged.run, {"zero_stage": 3}, Workspace(), options)
    if made:
        assert isinstance(applied, Applied)
        assert {path.name for path in applied.texts} == {"a.sh", made}
    else:
        assert isinstance(applied, str) and "ds_zero3.json is there already" in applied


@pytest.mark.parametrize(
    ("name", "becomes"),
    [("default_offload_opt_param", "default_zero3_offload"), ("ds_offload_params_v2", "ds_v2_zero3_offload")],
)
def test_the_words_of_what_is_offloaded_go_with_the_old_name(tmp_path: Path, name: str, becomes: str) -> None:
    launches = {f"{each}_dot_sh": RUN.format(config=f"{name}.json") for each in "ab"}
    tree(tmp_path, **launches, **{f"{name}_dot_json": ZERO2.replace('"stage": 2', '"stage": 3')})
    assert f"--deepspeed ./{becomes}.json" in fixed(tmp_path)


@pytest.mark.parametrize(
    ("stem", "changes", "becomes"),
    [
        ("ds_zero2", {"reduce_bucket_size": 50_000_000}, "ds_zero2_small_buffers"),
        ("ds_zero2", {"reduce_bucket_size": 50_000_000, "zero_stage": 3}, "ds_zero3_offload"),
        ("ds_zero3", {"reduce_bucket_size": 50_000_000}, "ds_zero2_offload"),
    ],
)
def test_a_copy_with_other_buffers_alone_is_named_by_those(
    tmp_path: Path, stem: str, changes: dict[str, int], becomes: str
) -> None:
    """What is offloaded already was so by the old name, too."""
    offloads = ZERO2.replace('"stage": 2', '"stage": 2, "offload_optimizer": {"device": "cpu"}')
    tree(tmp_path, a_dot_sh=RUN.format(config=f"{stem}.json"), **{f"{stem}_dot_json": offloads})
    _, results = load_runs([tmp_path / "a.sh"], Options())
    apart = Apart(results[0].run, Workspace(tmp_path), Options(), changes.items())
    assert apart._free(Path(f"{stem}.json"), {}).name == f"{becomes}.json"


def test_a_stage_by_its_first_letter_goes_with_its_name(tmp_path: Path) -> None:
    """``config_s2.json`` becomes ``config_s3.json`` and no ``zero3_config_s2.json``."""
    tree(tmp_path, a_dot_sh=RUN.format(config="ds_config_s2.json"), b_dot_sh=RUN.format(config="ds_config_s2.json"))
    tree(tmp_path, ds_config_s2_dot_json=ZERO2)
    assert "--deepspeed ./ds_config_s3" in fixed(tmp_path)


def test_a_number_of_fsdp_goes_with_its_name(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=RUN.format(config="ds.json"), ds_dot_json=ZERO2)
    _, results = load_runs([tmp_path / "a.sh"], Options())
    apart = Apart(
        results[0].run,
        Workspace(tmp_path),
        Options(),
        [("engine", "deepspeed"), ("zero_stage", 3), ("offload_optimizer", "cpu")],
    )
    assert apart._free(Path("fsdp1.yaml"), {}).name == "deepspeed_zero3_offload.yaml"


def test_activation_checkpointing_of_fsdp_is_taken_over(tmp_path: Path) -> None:
    launch = RUN.format(config="x").replace(
        "--deepspeed ./x", '--fsdp "full_shard auto_wrap" \\\n    --fsdp_config f.json'
    )
    launch = launch.replace("    --gradient_checkpointing True \\\n", "    --gradient_accumulation_steps 8 \\\n")
    config = '{"activation_checkpointing": true}\n'
    script = TRAINER.replace("Qwen2.5-7B", "Qwen2.5-14B")
    tree(tmp_path, train_dot_py=script, a_dot_sh=launch, f_dot_json=config)
    after = fixed(tmp_path, length=4096)
    assert "--deepspeed" in after
    assert "--fsdp" not in after
    assert "--gradient_checkpointing True" in after


def test_gpus_by_a_number_beyond_those_that_there_are_get_no_plan(tmp_path: Path) -> None:
    launch = "CUDA_VISIBLE_DEVICES={} " + RUN.format(config="ds.json").replace("4 train", "2 train")
    for name, numbers in (("a.sh", "0,1"), ("b.sh", "4,5")):
        (tmp_path / name).write_text(launch.format(numbers))
    tree(tmp_path, ds_dot_json=ZERO2)
    found = [
        lintfit("check", name, "--gpus", "4", "--seq-len", "1024", *CARDS, "--output-format", "json", cwd=tmp_path)
        for name in ("a.sh", "b.sh")
    ]
    assert [each.json["runs"][0]["plan"] is None for each in found] == [False, True]


SFT = """\
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

script_args, args, model_args = TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()
trainer = SFTTrainer(model=model_args.model_name_or_path, args=args, train_dataset=data)
trainer.train()
"""
ARGUMENTS = """\
model_name_or_path: Qwen/Qwen2.5-1.5B
output_dir: out
bf16: true
gradient_checkpointing: true
per_device_train_batch_size: 16
max_length: 4096
"""


def test_a_key_of_a_file_of_arguments_that_other_launches_read_is_a_flag_of_this_one(tmp_path: Path) -> None:
    start = "torchrun --nproc_per_node 4 sft.py --config sft.yaml"
    short, page = (
        f"{start} --max_length 128 --per_device_train_batch_size 1\n",
        f"```sh\n{start} --max_length 64\n```\n",
    )
    files = {"sft_dot_py": SFT, "sft_dot_yaml": ARGUMENTS, "b_dot_sh": short, "README_dot_md": page}
    tree(tmp_path, a_dot_sh=f"{start}\n", **files)
    written = fixed(tmp_path, length=4096)
    assert "--config sft.yaml" in written and "--per_device_train_batch_size 1" in written
    assert (tmp_path / "sft.yaml").read_text() == ARGUMENTS


def test_a_flag_behind_a_yaml_that_is_the_first_word_is_glued_to_its_value(tmp_path: Path) -> None:
    """alignment-handbook's parser splits each at its ``=``, and fails where there is none."""
    script = SFT.replace("TrlParser", "H4ArgumentParser").replace("parse_args_and_config()", "parse()")
    script = script.replace(", H4ArgumentParser\n", "\nfrom alignment import H4ArgumentParser\n", 1)
    start = "torchrun --nproc_per_node 4 sft.py sft.yaml"
    files = {"sft_dot_py": script, "sft_dot_yaml": ARGUMENTS, "b_dot_sh": f"{start} --max_length=128\n"}
    tree(tmp_path, a_dot_sh=f"{start}\n", **files)
    written = fixed(tmp_path, length=4096)
    assert "--per_device_train_batch_size=1 " in written and "--gradient_accumulation_steps=16" in written
    assert (tmp_path / "sft.yaml").read_text() == ARGUMENTS


def test_a_key_of_a_file_that_the_script_makes_words_of_is_no_flag(tmp_path: Path) -> None:
    script = SFT.replace("TrlParser", "HfArgumentParser").replace("_args_and_config()", "_args_into_dataclasses()")
    script = script.replace(", HfArgumentParser\n", "\nfrom transformers import HfArgumentParser\n", 1)
    start = "torchrun --nproc_per_node 4 sft.py --config sft.yaml"
    files = {"sft_dot_py": f"import sys\n\nsys.argv.extend(words)\n{script}", "sft_dot_yaml": ARGUMENTS}
    tree(tmp_path, a_dot_sh=f"{start}\n", b_dot_sh=f"{start} --max_length 128\n", **files)
    assert fixed(tmp_path, length=4096) == f"{start}\n"
    assert (tmp_path / "sft.yaml").read_text() == ARGUMENTS


def test_a_page_that_shows_the_launch_itself_is_no_other_run(tmp_path: Path) -> None:
    start = "torchrun --nproc_per_node 4 sft.py --config sft.yaml"
    files = {"sft_dot_py": SFT, "sft_dot_yaml": ARGUMENTS, "README_dot_md": f"```sh\n{start}\n```\n"}
    tree(tmp_path, a_dot_sh=f"{start}\n", **files)
    assert fixed(tmp_path, length=4096) == f"{start}\n"
    assert "per_device_train_batch_size: 1\n" in (tmp_path / "sft.yaml").read_text()


IN_CODE = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1, gradient_accumulation_steps=8)
args.gradient_checkpointing = True
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
Trainer(model=model, args=args).train()
"""


def test_an_engine_is_asked_of_accelerate_s_launcher_where_the_arguments_are_every_launch_s(tmp_path: Path) -> None:
    start = "accelerate launch --num_processes 4 train.py\n"
    tree(tmp_path, train_dot_py=IN_CODE, a_dot_sh=start, b_dot_sh=start)
    written = fixed(tmp_path)
    assert "--use_deepspeed --zero_stage 3" in written and "--gradient_accumulation_steps 8" in written
    assert (tmp_path / "train.py").read_text() == IN_CODE and (tmp_path / "b.sh").read_text() == start


def test_a_plan_says_why_a_file_that_is_there_does_not_do(tmp_path: Path) -> None:
    offload = '"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}'
    other = f'{{"zero_optimization": {{"stage": 3, {offload}}}, "scheduler": {{"type": "WarmupLR"}}}}'
    tree(tmp_path, a_dot_sh=RUN.format(config="zero2.json"), zero2_dot_json=ZERO2, zero3_offload_dot_json=other)
    report = lintfit("check", "a.sh", "--seq-len", "1024", "--output-format", "json", *CARDS, cwd=tmp_path).json
    (message,) = (each["fix"]["message"] for each in report["findings"] if each["rule"] == "does-not-fit")
    assert message.startswith("create zero3_offload_optimizer.json (")
    assert "; zero3_offload.json would bring a schedule of its own)" in message


@pytest.mark.parametrize(
    ("own", "there", "named"),
    [("auto", "auto", True), ("auto", 0.5, True), ("auto", None, False), (1.0, 0, False), (None, None, True)],
)
def test_a_config_that_does_not_clip_does_not_stand_in_for_one_that_does(
    tmp_path: Path, own: object, there: object, named: bool
) -> None:
    """The Trainer leaves clipping to DeepSpeed, which clips by nothing but its file."""

    def config(clipping: object, zero: dict[str, object]) -> str:
        asked = {} if clipping is None else {"gradient_clipping": clipping}
        return json.dumps({"bf16": {"enabled": "auto"}, "zero_optimization": zero, **asked}, indent=2)

    offload = {"stage": 3, **WHOLE}
    start = RUN.format(config="zero2.json").replace("node 4", "node 1")
    files = {"zero2_dot_json": config(own, {"stage": 2}), "zero3_offload_dot_json": config(there, offload)}
    tree(tmp_path, a_dot_sh=start, b_dot_sh=start, **files)
    assert ("--deepspeed ./zero3_offload.json" in fixed(tmp_path)) is named


def test_an_engine_that_is_new_takes_no_config_that_does_not_clip(tmp_path: Path) -> None:
    start = RUN.replace(" \\\n    --deepspeed ./{config}", "")
    config = {"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, **WHOLE}}
    tree(tmp_path, a_dot_sh=start, ds_dot_json=json.dumps({**config, "gradient_clipping": "auto"}))
    assert "--deepspeed ds.json" in fixed(tmp_path)
    tree(tmp_path, a_dot_sh=start, ds_dot_json=json.dumps(config))
    assert "--deepspeed ds_zero3_offload.json" in fixed(tmp_path)


def test_a_config_of_the_tree_with_another_schedule_does_not_stand_in_for_the_run_s_own(tmp_path: Path) -> None:
    """DeepSpeed's WarmupLR goes on at the full rate where WarmupDecayLR ends at zero."""
    offload = {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
    auto = dict.fromkeys(("warmup_min_lr", "warmup_max_lr", "warmup_num_steps"), "auto")

    def config(kind: str, **zero: object) -> str:
        schedule = {"type": kind, "params": auto | ({"total_num_steps": "auto"} if "Decay" in kind else {})}
        rest = {"bf16": {"enabled": "auto"}, "scheduler": schedule, "train_micro_batch_size_per_gpu": "auto"}
        return json.dumps({**rest, "gradient_clipping": "auto", "zero_optimization": {"stage": 3, **zero}}, indent=2)

    own, start = config("WarmupDecayLR"), RUN.format(config="zero3.json").replace("node 4", "node 1")
    files = {"zero3_dot_json": own, "zero3_offload_dot_json": config("WarmupLR", **offload)}
    tree(tmp_path, a_dot_sh=start, b_dot_sh=start, **files)
    assert "--deepspeed ./zero3_offload_warmupdecaylr.json" in fixed(tmp_path)
    copy = json.loads((tmp_path / "zero3_offload_warmupdecaylr.json").read_text())
    assert copy["scheduler"]["type"] == "WarmupDecayLR" and copy["zero_optimization"]["offload_param"]

    (tmp_path / "zero3_offload_warmupdecaylr.json").unlink()
    tree(tmp_path, a_dot_sh=start, **{**files, "zero3_offload_dot_json": config("WarmupDecayLR", **offload)})
    assert "--deepspeed ./zero3_offload.json" in fixed(tmp_path)


def test_a_plan_lists_no_buffers_that_a_config_of_the_tree_has_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = RUN.format(config="zero3.json")
    own = {"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto"}
    offload = {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
    plain, there = ({**own, "zero_optimization": {"stage": 3, **more}} for more in ({}, offload))
    files = {"zero3_dot_json": json.dumps(plain, indent=2), "zero3_offload_dot_json": json.dumps(there, indent=2)}
    tree(tmp_path, a_dot_sh=start, b_dot_sh=start, **files)
    monkeypatch.chdir(tmp_path)
    stated: dict[str, Any] = {"gpu": "A100-SXM4-80GB", "seq_len": 1024, "host_memory_bytes": 512 << 30}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    workspace = Workspace()
    run = load_runs([Path("a.sh")], options, workspace)[1][0].run
    assert run.spec is not None
    changes = {"offload_optimizer": "cpu", "offload_param": "cpu", "sub_group_size": 100_000_000}
    made = apply_changes(run, changes, workspace, options)
    assert isinstance(made, Applied) and made.run.deepspeed is not None
    assert made.run.deepspeed.document.path.name == "zero3_offload.json"
    parts = {name: {key: changes[key]} for name, key in (("ZeRO-3", "offload_param"), ("buffers", "sub_group_size"))}
    candidate = Candidate(tuple(Option(name, part) for name, part in parts.items()), changes)
    found = Fitting(candidate, run.spec, estimate(run.spec), 1.0, ())
    left = _without_unwritten(found, made).candidate
    assert left.name == "ZeRO-3" and "sub_group_size" not in left.changes and "offload_param" in left.changes
    refused = replace(made, refused=frozenset({"sub_group_size"}))
    assert _without_unwritten(found, refused).candidate is candidate


def test_the_kernel_of_a_model_that_trl_loads_is_written_where_its_argument_is_read(tmp_path: Path) -> None:
    loaded = SFT.replace(
        "args=args,", "args=args, model_init_kwargs=dict(attn_implementation=model_args.attn_implementation),"
    )
    files = {"sft_dot_py": loaded, "sft_dot_yaml": f"{ARGUMENTS}attn_implementation: flash_attention_2\n"}
    tree(tmp_path, a_dot_sh="torchrun --nproc_per_node 4 sft.py --config sft.yaml\n", **files)
    (run,) = load_runs([tmp_path / "a.sh"], Options(gpu="A100-SXM4-40GB", isolated=True))[1]
    edits = write_one(run.run, "attention", "sdpa")
    assert edits is not None and [edit.edit.text for edit in edits] == ["sdpa"]
    assert edits[0].path.name == "sft.yaml"


YAML = """\
compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_clipping: 1.0
  offload_optimizer_device: {optimizer}
  offload_param_device: none
  zero3_init_flag: true
  zero3_save_16bit_model: true
  zero_stage: {stage}
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 4
"""
WITH_YAML = """\
accelerate launch --config_file zero2.yaml train.py --output_dir out --bf16 True \\
    --gradient_checkpointing True --per_device_train_batch_size 1
"""


def test_a_yaml_of_the_tree_that_says_the_same_is_named(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=WITH_YAML, zero2_dot_yaml=YAML.format(stage=2, optimizer="none"))
    tree(tmp_path, everything_dot_yaml=YAML.format(stage=3, optimizer="cpu"))
    assert "--config_file everything.yaml" in fixed(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.yaml")) == ["everything.yaml", "zero2.yaml"]


def test_a_yaml_of_the_tree_with_another_number_of_processes_is_not(tmp_path: Path) -> None:
    tree(tmp_path, a_dot_sh=WITH_YAML, zero2_dot_yaml=YAML.format(stage=2, optimizer="none"))
    tree(tmp_path, everything_dot_yaml=YAML.format(stage=3, optimizer="cpu").replace("processes: 4", "processes: 2"))
    assert "--config_file zero3_offload.yaml" in fixed(tmp_path)


@pytest.mark.parametrize(("its_processes", "named"), [(4, True), (2, False)])
def test_a_yaml_of_the_tree_that_says_the_same_comes_before_a_change_of_the_run_s_own(
    tmp_path: Path, its_processes: int, named: bool
) -> None:
    """Though no other launch reads that."""
    own, other = (YAML.format(stage=3, optimizer=where) for where in ("none", "cpu"))
    start = WITH_YAML.replace("zero2", "zero3")
    other = other.replace("processes: 4", f"processes: {its_processes}")
    tree(tmp_path, a_dot_sh=start, zero3_dot_yaml=own, zero3_offload_dot_yaml=other)
    assert fixed(tmp_path) == (start.replace("zero3.yaml", "zero3_offload.yaml") if named else start)
    assert (tmp_path / "zero3_offload.yaml").read_text() == other
    assert ((tmp_path / "zero3.yaml").read_text() == own) is named


OPENS = """\
import yaml
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

with open("params.yaml") as file:
    params = yaml.safe_load(file)
args = TrainingArguments(
    output_dir="out", bf16=True, gradient_checkpointing=True, per_device_train_batch_size=params["batch_size"]
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args).train()
"""


def test_a_value_that_another_script_reads_is_left(tmp_path: Path) -> None:
    launch = "torchrun --nproc_per_node 1 own.py\n"
    tree(tmp_path, own_dot_py=OPENS, params_dot_yaml="batch_size: 32\n", a_dot_sh=launch)
    assert fixed(tmp_path, length=2048) == launch
    assert (tmp_path / "params.yaml").read_text() != "batch_size: 32\n"
    loop = 'import yaml\n\nwith open("params.yaml") as file:\n    size = yaml.safe_load(file)["batch_size"]\n'
    tree(tmp_path, loop_dot_py=loop, params_dot_yaml="batch_size: 32\n")
    fixed(tmp_path, length=2048)
    assert (tmp_path / "params.yaml").read_text() == "batch_size: 32\n"


def test_two_launches_of_one_file_make_two_configs(tmp_path: Path) -> None:
    lines = "".join(
        RUN.format(config="ds.json").replace("--nproc_per_node 4", f"--nproc_per_node {count}") for count in (4, 2)
    )
    tree(tmp_path, a_dot_sh=lines, b_dot_sh=RUN.format(config="ds.json"), ds_dot_json=ZERO2)
    outcome = lintfit("check", "a.sh", "--fix", "--unsafe-fixes", "--seq-len", "1024", *CARDS, cwd=tmp_path)
    assert "internal error" not in outcome.out + outcome.err
    assert (tmp_path / "ds.json").read_text() == ZERO2


SHARED_OUT = """\
import argparse
import os
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--grad_acc", type=int, default=16)
args = parser.parse_args()
args.grad_acc = args.grad_acc {operator} int(os.environ["WORLD_SIZE"])
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
made = TrainingArguments(
    output_dir="out", bf16=True, gradient_checkpointing=True, gradient_accumulation_steps=args.grad_acc,
    per_device_train_batch_size=args.batch_size,
)
Trainer(model=model, args=made, train_dataset=[]).train()
"""


@pytest.mark.parametrize(
    ("operator", "given", "becomes"), [("//", "", 256), ("//", " --grad_acc 32", 512), ("+", "", None)]
)
def test_a_number_that_the_script_divides_among_the_ranks_is_changed_by_its_flag(
    operator: str, given: str, becomes: int | None, tmp_path: Path
) -> None:
    launch = f"torchrun --nproc_per_node 4 train.py --batch_size 32{given}\n"
    script = SHARED_OUT.replace("{operator}", operator)
    tree(tmp_path, train_dot_py=script, a_dot_sh=launch)
    after = fixed(tmp_path, length=2048)
    assert "gradient_accumulation_steps=args.grad_acc," in (tmp_path / "train.py").read_text()
    assert becomes is None or after == launch.replace(f"32{given}", f"2 --grad_acc {becomes}")


RECIPE = """\
model_name_or_path: meta-llama/Llama-3.2-3B
stage: sft
do_train: true
finetuning_type: full
dataset: alpaca_en_demo
template: llama3
cutoff_len: 1024
output_dir: {name}
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
"""


def test_a_recipe_that_an_accelerate_yaml_starts_with_fsdp_offloads_by_a_copy_that_its_launches_share(
    tmp_path: Path,
) -> None:
    yaml = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 2\n"
        "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    )
    launch = "accelerate launch --config_file fsdp.yaml src/train.py {name}_full_sft.yaml\n"
    names = ("one", "two", "three")
    (tmp_path / "src").mkdir()
    start = "from llamafactory.train.tuner import run_exp\n\nrun_exp()\n"
    tree(tmp_path, src__train_dot_py=start, fsdp_dot_yaml=yaml)
    for name in names:
        (tmp_path / f"{name}_full_sft.yaml").write_text(RECIPE.format(name=name))
        (tmp_path / f"{name}.sh").write_text(launch.format(name=name))
    lintfit("check", "one.sh", "two.sh", "--fix", "--unsafe-fixes", *CARDS, "--gpus", "2", cwd=tmp_path)
    for name in names:
        points = name != "three"
        assert ("fsdp_offload.yaml" in (tmp_path / f"{name}.sh").read_text()) is points
        assert "finetuning_type: full\n" in (tmp_path / f"{name}_full_sft.yaml").read_text()
    assert sorted(path.name for path in tmp_path.glob("fsdp*")) == ["fsdp.yaml", "fsdp_offload.yaml"]
    assert "fsdp_offload_params: true" in (tmp_path / "fsdp_offload.yaml").read_text()


def test_a_copy_s_comments_name_the_copy(tmp_path: Path) -> None:
    """Its name ends with no joint of a word that is gone (``fsdp_zero3.yaml`` becomes ``fsdp_offload.yaml``), and no
    line of it with blanks."""
    yaml = (
        "# accelerate launch --config_file fsdp_zero3.yaml train.py\n"
        "compute_environment: LOCAL_MACHINE   \ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 4\n"
        "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    )
    launch = (
        "accelerate launch --config_file fsdp_zero3.yaml train.py --output_dir out --bf16 True "
        "--gradient_checkpointing True --per_device_train_batch_size 1\n"
    )
    tree(tmp_path, fsdp_zero3_dot_yaml=yaml, a_dot_sh=launch, b_dot_sh=launch)
    assert "--config_file fsdp_offload.yaml" in fixed(tmp_path)
    copy = (tmp_path / "fsdp_offload.yaml").read_text()
    first = "# accelerate launch --config_file fsdp_offload.yaml train.py\ncompute_environment: LOCAL_MACHINE\n"
    assert copy.startswith(first)
    assert (tmp_path / "fsdp_zero3.yaml").read_text() == yaml


def test_a_copy_does_not_explain_the_values_that_it_changes() -> None:
    before = (
        "fsdp_config:\n  fsdp_offload_params: false\n  fsdp_sharding_strategy: SHARD_GRAD_OP  # ZeRO-2: shards\n"
        "zero_stage: 2  # 1, 2 or 3\nmicro: 16  # 16 for 8B\nnum_processes: 4  # 4x RTX 3090\n"
    )
    after = before.replace("SHARD_GRAD_OP", "FULL_SHARD").replace("stage: 2", "stage: 3").replace("16", "4")
    assert _without_old_reasons(before, after) == after.replace("  # ZeRO-2: shards", "")
    assert _without_old_reasons(before, before) == before


def test_a_copy_for_another_engine_does_not_speak_of_the_old_one() -> None:
    yaml = (
        "# DDP for small models.\n# Copies everything.\n\ncompute_environment: LOCAL_MACHINE\n\n"
        "distributed_type: DEEPSPEED  # plain DDP\nmixed_precision: bf16  # never fp16\n\n"
        "# One process a GPU.\nnum_processes: 4\n\n# DDP\n\nnum_machines: 1\n# notes: DDP needs NCCL\n"
    )
    assert _without_comments_of(yaml, _SPOKEN_OF["ddp"]) == (
        "compute_environment: LOCAL_MACHINE\n\ndistributed_type: DEEPSPEED\nmixed_precision: bf16  # never fp16\n\n"
        "# One process a GPU.\nnum_processes: 4\n\nnum_machines: 1"
    )
    windows = yaml.replace("\n", "\r\n")
    assert _without_comments_of(windows, _SPOKEN_OF["ddp"]).replace("\r\n", "\n") == (
        _without_comments_of(yaml, _SPOKEN_OF["ddp"])
    )
    assert "\n" not in _without_comments_of(windows, _SPOKEN_OF["ddp"]).replace("\r\n", "")
    assert _without_comments_of(yaml, _SPOKEN_OF["fsdp"]) == yaml


def test_what_fsdp_steps_on_the_host_is_torch_s_adamw(tmp_path: Path) -> None:
    """bitsandbytes has no kernels there; FSDP's own offload comes before another engine."""
    yaml = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 2\n"
        "fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: false\n"
        "  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
    )
    launch = (
        "accelerate launch --config_file fsdp.yaml train.py --output_dir out --bf16 True \\\n"
        "    --gradient_checkpointing True --per_device_train_batch_size 1 --optim paged_adamw_32bit\n"
    )
    tree(tmp_path, fsdp_dot_yaml=yaml, a_dot_sh=launch)
    assert fixed(tmp_path).endswith("--per_device_train_batch_size 1 --optim adamw_torch\n")
    assert "fsdp_offload_params: true" in (tmp_path / "fsdp.yaml").read_text()


def test_a_config_of_the_tree_that_has_the_stage_is_gone_on_from(tmp_path: Path) -> None:
    """Its sizes are the project's own; what is named in the end is told once."""
    zero3 = ZERO2.replace('{"stage": 2}', '{"stage": 3, "stage3_max_live_parameters": 1e8}')
    a, b = (RUN.format(config=name) for name in ("zero2.json", "zero3.json"))
    tree(tmp_path, a_dot_sh=a, b_dot_sh=b, zero2_dot_json=ZERO2, zero3_dot_json=zero3)
    plan = lintfit("check", "a.sh", "--seq-len", "1024", "--isolated", *CARDS, cwd=tmp_path).out
    assert "write zero3_offload.json for zero2.json" in plan and "for zero3.json" not in plan
    assert "--deepspeed ./zero3_offload.json" in fixed(tmp_path)
    zero = json.loads((tmp_path / "zero3_offload.json").read_text())["zero_optimization"]
    assert zero == {"stage": 3, "stage3_max_live_parameters": 1e8, "offload_optimizer": {"device": "cpu"}}
    assert (tmp_path / "zero2.json").read_text() == ZERO2 and (tmp_path / "zero3.json").read_text() == zero3


def test_a_config_of_the_tree_that_offloads_a_part_is_gone_on_from(tmp_path: Path) -> None:
    pinned = '"offload_optimizer": {"device": "cpu", "pin_memory": true}'
    zero3 = ZERO2.replace('{"stage": 2}', f'{{"stage": 3, {pinned}}}')
    a, b = (RUN.format(config=name).replace("4 train", "2 train") for name in ("zero2.json", "zero3.json"))
    script = TRAINER.replace("Qwen2.5-7B", "Qwen2.5-14B")
    tree(tmp_path, train_dot_py=script, a_dot_sh=a, b_dot_sh=b, zero2_dot_json=ZERO2, zero3_dot_json=zero3)
    assert "--deepspeed ./zero3_offload.json" in fixed(tmp_path)
    zero = json.loads((tmp_path / "zero3_offload.json").read_text())["zero_optimization"]
    assert zero["offload_optimizer"] == {"device": "cpu", "pin_memory": True}
    assert zero["offload_param"]["device"] == "cpu"
    assert (tmp_path / "zero3.json").read_text() == zero3


def test_accumulation_that_the_launcher_and_the_trainer_are_told_is_changed_in_both(tmp_path: Path) -> None:
    yaml = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
        "deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: auto\n"
    )
    launch = (
        "accelerate launch --config_file zero3.yaml --gradient_accumulation_steps 2 train.py --output_dir out \\\n"
        "    --bf16 True --gradient_checkpointing True --per_device_train_batch_size 32 \\\n"
        "    --gradient_accumulation_steps 2\n"
    )
    tree(tmp_path, zero3_dot_yaml=yaml, a_dot_sh=launch)
    script = fixed(tmp_path)
    steps = re.findall(r"--gradient_accumulation_steps (\d+)", script)
    micro = re.search(r"--per_device_train_batch_size (\d+)", script)
    assert micro is not None and len(steps) == 2 and steps[0] == steps[1] != "2"
    assert int(micro[1]) * int(steps[0]) == 64


def test_arguments_that_hand_on_all_of_others_get_a_flag_and_no_keyword(tmp_path: Path) -> None:
    """``SFTConfig(**args.to_dict(), deepspeed=…)`` would have the keyword twice."""
    script = TRAINER.replace("Trainer, TrainingArguments", "TrainingArguments").replace(
        "Trainer(model=model, args=args).train()", "SFTTrainer(model=model, args=SFTConfig(**args.to_dict())).train()"
    )
    launch = RUN.replace(" \\\n    --deepspeed ./{config}", "")
    tree(tmp_path, train_dot_py="from trl import SFTConfig, SFTTrainer\n" + script, a_dot_sh=launch)
    assert "--deepspeed ds_zero3" in fixed(tmp_path)
    assert "deepspeed=" not in (tmp_path / "train.py").read_text()


DIVIDES = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--grad_acc", type=int, default=1)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
made = TrainingArguments(
    output_dir="out", bf16=True, gradient_checkpointing=True, gradient_accumulation_steps=args.grad_acc,
    per_device_train_batch_size={micro},
)
Trainer(model=model, args=made, train_dataset=[]).train()
"""


@pytest.mark.parametrize(
    ("micro", "added"), [("args.batch_size // args.grad_acc", "--grad_acc"), ("args.batch_size", "--batch_size")]
)
def test_a_micro_batch_that_is_worked_out_of_the_accumulation_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, micro: str, added: str
) -> None:
    """Code that another launch runs, which fits, stays as it is: the launch has a flag."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(DIVIDES.format(micro=micro))
    Path("run.sh").write_text("torchrun --nproc_per_node=8 train.py\n")
    Path("small.sh").write_text("torchrun --nproc_per_node=8 train.py --batch_size 1\n")
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 8, "seq_len": 1024}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    plan = check([Path("run.sh")], options).runs[0].plan
    assert plan is not None and not plan.by_hand
    assert {edit.path for edit in plan.fix.edits} == {Path("run.sh")}
    assert any(added in edit.edit.text for edit in plan.fix.edits)
    assert plan.fix.changes["micro_batch_size"] * plan.fix.changes["gradient_accumulation_steps"] == 32


RECIPE_OF_TWO = """\
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 64
lora_target: all
dataset: own
template: qwen
cutoff_len: 2048
per_device_train_batch_size: 16
gradient_accumulation_steps: 1
bf16: true
deepspeed: zero2.json
output_dir: out
"""


def test_a_flag_that_the_launch_has_already_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = 'if [ "$N" -gt 1 ]; then\n  FORCE_TORCHRUN=1 NPROC_PER_NODE=${N} llamafactory-cli train sft.yaml\n'
    files = {
        "run.sh": f"{launch}else\n  llamafactory-cli train sft.yaml\nfi\n",
        "sft.yaml": RECIPE_OF_TWO,
        "zero2.json": '{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", '
        '"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    outcome = lintfit("check", ".", "--gpu", "RTX 3090", "--gpus", "8", cwd=tmp_path)
    assert "internal error" not in outcome.out + outcome.err


@pytest.mark.parametrize(("linked", "kept"), [("deepspeed_zero1", False), ("deepspeed_zero2", True), ("base", True)])
def test_a_copy_does_not_say_that_it_is_from_a_file_of_another_stage(linked: str, kept: bool, tmp_path: Path) -> None:
    link = f"# https://github.com/huggingface/trl/blob/main/examples/accelerate_configs/{linked}.yaml\n"
    stated = (
        "deepspeed_config:\n  zero_stage: 1\ndistributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 4\n"
    )
    tree(tmp_path, a_dot_sh="accelerate launch --config_file zero1.yaml train.py --output_dir out\n")
    (tmp_path / "zero1.yaml").write_text(link + stated)
    options = Options(gpu="A100-SXM4-80GB", seq_len=512, isolated=True)
    (judged,) = load_runs([tmp_path / "a.sh"], options)[1]
    applied = apply_changes(judged.run, {"zero_stage": 2}, Workspace(), options)
    assert isinstance(applied, Applied)
    copy = applied.texts[tmp_path / "zero2.yaml"]
    assert "zero_stage: 2" in copy and (link in copy) is kept
