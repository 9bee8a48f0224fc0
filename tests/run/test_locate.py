"""Launches that are meant to be made from a folder that they do not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, HfArgumentParser

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=data).train()
"""
FLAGS = "--output_dir out --bf16 --per_device_train_batch_size 1"
ZERO = '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'


def run(folder: Path, name: str) -> dict[str, Any]:
    command = ("check", name, "--gpu", "a100-80gb", "--gpus", "2", "--seq-len", "512", "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, cwd=folder).json["runs"][0]
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_the_one_script_of_that_path_says_from_which_folder(tmp_path: Path) -> None:
    for script in ("src/own/train.py", "./src/own/train.py"):
        files = {"scripts/run.sh": f"torchrun {script} {FLAGS} --deepspeed ./zero.json\n"}
        write(tmp_path, {**files, "part/src/own/train.py": SCRIPT, "part/zero.json": ZERO})
        assert run(tmp_path, "scripts/run.sh")["verdict"] == "fits"


def test_of_two_scripts_it_is_the_one_beside_which_the_config_is(tmp_path: Path) -> None:
    page = f"```sh\ntorchrun train.py {FLAGS} --deepspeed configs/zero.json\n```\n"
    write(tmp_path, {"docs/page.md": page, "a/train.py": SCRIPT, "b/train.py": SCRIPT, "b/configs/zero.json": ZERO})
    assert run(tmp_path, "docs/page.md")["verdict"] == "fits"
    (tmp_path / "a" / "configs").mkdir()
    (tmp_path / "a" / "configs" / "zero.json").write_text(ZERO)
    assert run(tmp_path, "docs/page.md")["verdict"] == "unknown"


def test_a_path_that_leads_up_is_meant_from_a_folder_below(tmp_path: Path) -> None:
    page = f"```sh\ntorchrun ../train.py {FLAGS} --deepspeed ../configs/zero.json\n```\n"
    write(tmp_path, {"README.md": page, "train.py": SCRIPT, "configs/zero.json": ZERO, "script/run.txt": ""})
    assert run(tmp_path, "README.md")["verdict"] == "fits"


def test_of_several_folders_below_the_one_that_has_the_config(tmp_path: Path) -> None:
    page = f"```sh\ntorchrun ../train.py {FLAGS} --deepspeed zero.json\n```\n"
    write(tmp_path, {"README.md": page, "train.py": SCRIPT, "a/run.txt": "", "b/zero.json": ZERO})
    assert "b/zero.json" in run(tmp_path, "README.md")["documents"]
    write(tmp_path, {"a/zero.json": ZERO})
    assert {"a/zero.json", "b/zero.json"}.isdisjoint(run(tmp_path, "README.md")["documents"])


JOB = """\
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
        - name: main
          image: own/image
          command: ["torchrun", "/opt/app/train.py", "--output_dir", "out", "--deepspeed", "/etc/configs/zero.json"]
          resources: {limits: {nvidia.com/gpu: 2}}
"""


def test_a_job_names_files_by_their_place_in_the_container(tmp_path: Path) -> None:
    write(tmp_path, {"k8s/job.yaml": JOB, "src/train.py": SCRIPT, "config/zero.json": ZERO})
    assert run(tmp_path, "k8s/job.yaml")["verdict"] == "fits"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.py").write_text(SCRIPT)
    assert run(tmp_path, "k8s/job.yaml")["verdict"] == "unknown"


def test_a_skypilot_task_starts_in_the_folder_that_it_takes_along(tmp_path: Path) -> None:
    command = f"torchrun train.py {FLAGS} --deepspeed zero.json"
    task = f"resources:\n  accelerators: A100-80GB:2\nworkdir: part\nrun: |\n  {command}\n"
    write(
        tmp_path,
        {"task.yaml": task, "part/train.py": SCRIPT, "part/zero.json": ZERO, "train.py": "", "zero.json": "{}"},
    )
    assert run(tmp_path, "task.yaml")["verdict"] == "fits"


def test_fastchats_scripts_are_known_by_their_path(tmp_path: Path) -> None:
    flags = "--model_name_or_path Qwen/Qwen2.5-0.5B --data_path d.json --model_max_length 512 --lazy_preprocess True"
    write(
        tmp_path, {"run.sh": f"torchrun fastchat/train/train_mem.py {flags} {FLAGS}\ntorchrun train_mem.py {flags}\n"}
    )
    assert run(tmp_path, "run.sh")["verdict"] == "fits"


def test_a_path_below_a_folder_that_is_to_be_filled_in_is_the_projects(tmp_path: Path) -> None:
    line = f"torchrun path_to_project/src/train.py {FLAGS} --deepspeed path_to_project/configs/zero.json\n"
    write(tmp_path, {"run.sh": line, "src/train.py": SCRIPT, "configs/zero.json": ZERO})
    assert run(tmp_path, "run.sh")["verdict"] == "fits"


def test_a_path_below_the_checkouts_own_folder_is_the_projects(tmp_path: Path) -> None:
    line = f"torchrun project/src/train.py {FLAGS} --deepspeed project/zero.json\n"
    write(tmp_path / "project", {"run.sh": line, "src/train.py": SCRIPT, "zero.json": ZERO, ".git/HEAD": ""})
    assert run(tmp_path / "project", "run.sh")["verdict"] == "fits"


def test_a_page_by_its_whole_path_is_one_of_the_root_all_the_same(tmp_path: Path) -> None:
    page = f"```sh\ntorchrun train.py {FLAGS}\n```\n"
    write(tmp_path, {"docs/page.md": page, "part/train.py": SCRIPT})
    assert run(tmp_path, str(tmp_path / "docs/page.md"))["verdict"] == "fits"


def test_a_page_beside_the_root_speaks_of_no_script_in_it_by_its_name_alone(tmp_path: Path) -> None:
    lines = SCRIPT.replace("0.5B", "7B").splitlines()
    lines[2] = 'args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1)'
    page, script = "```sh\npython train.py\n```\n", "\n".join(lines)
    start = "torchrun --nproc_per_node 8 train.py\n"
    write(tmp_path, {".git/HEAD": "", "docs/page.md": page, "part/train.py": script, "part/run.sh": start})
    command = ("check", "run.sh", "--gpu", "a100-40gb", "--seq-len", "512", "--output-format", "json")
    (found,) = lintfit(*command, cwd=tmp_path / "part").json["runs"]
    assert found["verdict"] == "does-not-fit" and "by_hand" not in found["plan"]


def test_a_script_above_a_launch_that_is_named_from_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, {"project/train.py": SCRIPT, "project/scripts/run.sh": f"python train.py {FLAGS}\n"})
    (tmp_path / "elsewhere").mkdir()
    launch = str(tmp_path / "project" / "scripts" / "run.sh")
    assert run(tmp_path / "elsewhere", launch)["verdict"] == "fits"
    # What is asked about from its own folder is all that is read.
    assert run(tmp_path / "project" / "scripts", "run.sh")["verdict"] == "unknown"


def test_a_script_right_in_the_checkout_on_another_machine(tmp_path: Path) -> None:
    line = f"torchrun /home/me/project/train.py {FLAGS}\n"
    names = {
        "project": "fits",
        "project-main": "fits",
        "me__project": "fits",
        "other": "unknown",
        "a__other": "unknown",
    }
    for name, verdict in names.items():
        write(tmp_path / name, {"run.sh": line, "train.py": SCRIPT, ".git/HEAD": ""})
        assert run(tmp_path / name, "run.sh")["verdict"] == verdict


def test_a_script_and_its_config_side_by_side_on_another_machine(tmp_path: Path) -> None:
    line = f"torchrun /home/me/code/train.py {FLAGS} --deepspeed /home/me/code/zero.json\n"
    write(tmp_path, {"run.sh": line, "train.py": SCRIPT})
    assert run(tmp_path, "run.sh")["verdict"] == "unknown"
    write(tmp_path, {"zero.json": ZERO})
    assert run(tmp_path, "run.sh")["verdict"] == "fits"


def test_a_script_beside_the_launcher_s_config_above_a_launch_of_another_machine(tmp_path: Path) -> None:
    """Whatever the checkout is called here; a script alone may be of another project."""
    line = "accelerate launch --config_file /home/me/code/zero2.yaml /home/me/code/train.py"
    yaml = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\nmixed_precision: bf16\nnum_processes: 2\n"
    write(tmp_path, {"scripts/run.sh": f"{line} {FLAGS}\n", "train.py": SCRIPT})
    assert run(tmp_path, "scripts/run.sh")["documents"] == ["scripts/run.sh"]
    write(tmp_path, {"zero2.yaml": yaml})
    found = run(tmp_path, "scripts/run.sh")
    assert found["settings"]["zero_stage"]["value"] == 2
    assert {Path(each).name for each in found["documents"]} == {"run.sh", "train.py", "zero2.yaml"}


@pytest.mark.parametrize(("name", "found"), [("me__project", True), ("me__other", False)])
def test_a_config_right_in_the_checkout_on_another_machine(tmp_path: Path, name: str, found: bool) -> None:
    line = f"torchrun src/train.py {FLAGS} --deepspeed /home/project/zero.json\n"
    write(tmp_path / name, {"run.sh": line, "src/train.py": SCRIPT, "zero.json": ZERO, ".git/HEAD": ""})
    assert ("zero.json" in [Path(each).name for each in run(tmp_path / name, "run.sh")["documents"]]) is found


def test_the_checkout_by_another_name(tmp_path: Path) -> None:
    launch = "accelerate launch --config_file adpo/config/zero2.yaml adpo/train.py"
    yaml = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\nmixed_precision: bf16\nnum_processes: 2\n"
    write(tmp_path, {"run.sh": f"{launch} {FLAGS}\n", "train.py": SCRIPT, "config/zero2.yaml": yaml})
    found = run(tmp_path, "run.sh")
    assert found["settings"]["zero_stage"]["value"] == 2
    assert {Path(each).name for each in found["documents"]} == {"run.sh", "train.py", "zero2.yaml"}


def test_a_folder_that_is_here_is_not_the_checkout(tmp_path: Path) -> None:
    launch = "accelerate launch --config_file adpo/config/zero2.yaml adpo/train.py"
    write(tmp_path, {"run.sh": f"{launch} {FLAGS}\n", "train.py": SCRIPT, "adpo/other.py": "", "config/zero2.yaml": ""})
    assert [Path(each).name for each in run(tmp_path, "run.sh")["documents"]] == ["run.sh"]


def test_a_path_that_goes_out_of_the_checkout_and_in_again(tmp_path: Path) -> None:
    script = f'WORK=$(cd "$(dirname "$0")/../.." && pwd)/project\ntorchrun $WORK/src/train.py {FLAGS}\n'
    write(tmp_path / "clone", {"scripts/run.sh": script, "src/train.py": SCRIPT})
    assert run(tmp_path / "clone", "scripts/run.sh")["verdict"] == "fits"
    write(tmp_path / "other", {"scripts/run.sh": script, "train.py": SCRIPT})
    assert run(tmp_path / "other", "scripts/run.sh")["verdict"] == "unknown"


def test_a_path_that_goes_back_to_the_root_itself_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "run.sh").write_text("cd scripts\npython ..\npython ../scripts/..\n")
    assert "internal error" not in lintfit("check", ".", cwd=tmp_path).err


def test_what_a_script_copies_to_the_folder_that_it_enters_lies_beside_it(tmp_path: Path) -> None:
    begun = f"cd /data/project && torchrun src/train.py {FLAGS}\n"
    write(tmp_path, {"src/train.py": SCRIPT, "project/src/train.py": SCRIPT})
    for copied, script in (("cp -r src /data/project/\n", "src/train.py"), ("", "project/src/train.py")):
        write(tmp_path, {"deploy.sh": copied + begun})
        assert run(tmp_path, "deploy.sh")["documents"] == ["deploy.sh", script]
