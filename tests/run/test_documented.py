"""Launches in pages and jobs: what counts as a run of a named page, and of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.run.test_beside import put
from tests.support import lintfit

SCRIPT = """from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args).train()
"""
LAUNCH = "torchrun --nproc_per_node 2 train.py --per_device_train_batch_size 4 --bf16"
PAGE = f"# A\n\n```bash\n{LAUNCH}\n```\n\nOr on one GPU:\n\n```\n$ python train.py --bf16\n```\n"


def runs(folder: Path, files: dict[str, str], what: str = ".", *flags: str) -> list[dict[str, Any]]:
    put(folder, files)
    answer = lintfit("check", what, "--output-format", "json", *(flags or ("--gpu", "A100-80GB")), cwd=folder)
    found: list[dict[str, Any]] = answer.json["runs"]
    return found


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [run["id"] for run in found]


def test_each_command_of_a_page_is_a_run(tmp_path: Path) -> None:
    found = runs(tmp_path, {"README.md": PAGE, "train.py": SCRIPT}, "README.md")
    assert ids(found) == ["README.md:4", "README.md:10"]
    assert [run["settings"]["gpus"]["value"] for run in found] == [2, 1]
    assert found[0]["verdict"] == "fits"


def test_in_a_folder_they_count_where_no_launch_file_starts_the_script(tmp_path: Path) -> None:
    files = {"README.md": PAGE, "README_zh.md": PAGE, "train.py": SCRIPT}
    assert ids(runs(tmp_path / "a", files)) == ["README.md:4", "README.md:10"]
    assert ids(runs(tmp_path / "b", {**files, "run.sh": LAUNCH})) == ["run.sh:1"]


def test_what_a_page_says_of_other_projects_is_no_run_of_a_folder(tmp_path: Path) -> None:
    assert runs(tmp_path / "a", {"README.md": PAGE}) == []
    (run, _) = runs(tmp_path / "b", {"README.md": PAGE}, "README.md")
    assert run["verdict"] == "unknown"


def test_a_config_that_the_page_shows(tmp_path: Path) -> None:
    config = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}'
    page = f"```bash\n{LAUNCH} --deepspeed ds.json\n```\n\n`ds.json`:\n\n```json\n{config}\n```\n"
    (run,) = runs(tmp_path, {"README.md": page, "train.py": SCRIPT}, "README.md")
    assert run["settings"]["zero_stage"] == {
        "value": 2,
        "from": {"kind": "file", "path": "README.md", "line": 8, "column": 33},
    }


def test_a_page_without_a_launch_says_so(tmp_path: Path) -> None:
    put(tmp_path, {"README.md": "# A\n"})
    answer = lintfit("check", "README.md", cwd=tmp_path)
    assert "none of its code blocks starts a training" in answer.out


def test_a_fix_stays_inside_the_block(tmp_path: Path) -> None:
    page = f"Before.\n\n> ```bash\n> {LAUNCH} \\\n>   --do_train \\ \n>   --lr_scheduler_type cosine\n> ```\n\nAfter.\n"
    put(tmp_path, {"README.md": page, "train.py": SCRIPT})
    lintfit("check", "README.md", "--fix", "--gpu", "A100-80GB", cwd=tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("Before.\n\n> ```bash\n> torchrun") and text.endswith("> ```\n\nAfter.\n")
    assert "\\ \n" not in text


def test_the_machines_of_a_job_are_the_runs_and_flags_win(tmp_path: Path) -> None:
    task = f"resources:\n  accelerators: H100:2\nrun: |\n  {LAUNCH}\n"
    files = {"sky.yaml": task, "train.py": SCRIPT}
    (run,) = runs(tmp_path, files, "sky.yaml", "--isolated")
    gpu = run["settings"]["gpu"]
    assert (gpu["value"], gpu["from"]["line"]) == ("H100", 2)
    (run,) = runs(tmp_path, files, "sky.yaml", "--gpu", "RTX 3090")
    assert run["settings"]["gpu"]["value"] == "RTX 3090"


def test_a_page_that_is_written_for_a_newer_release_than_the_pinned_one_goes_by_that(tmp_path: Path) -> None:
    command = "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a/b --output_dir out --max_length 1024"
    files = {"requirements.txt": "trl==0.12.1\n", "README.md": f"```bash\n{command}\n```\n", "run.sh": command + "\n"}
    put(tmp_path, files)
    flags = ("--gpu", "A100-80GB", "--output-format", "json")
    page, script = (lintfit("check", name, *flags, cwd=tmp_path).json for name in ("README.md", "run.sh"))
    assert [found["rule"] for found in script["findings"] if found["severity"] == "error"] == ["refused-flag"]
    assert not [found for found in page["findings"] if found["rule"] == "refused-flag"]
    assert page["runs"][0]["settings"]["seq_len"]["value"] == 1024


def test_what_a_front_end_refuses_of_a_page_is_that_of_another_release(tmp_path: Path) -> None:
    command = "llamafactory-cli train --do_train --stage sft --model_name_or_path Qwen/Qwen2.5-0.5B --block_every 4"
    put(tmp_path, {"README.md": f"```bash\n{command}\n```\n", "run.sh": command + "\n"})
    page, launch = (
        lintfit("check", name, "--output-format", "json", cwd=tmp_path).json for name in ("README.md", "run.sh")
    )
    assert "refused-flag" not in [found["rule"] for found in page["findings"]]
    assert "refused-flag" in [found["rule"] for found in launch["findings"]]


TAKES_RECIPES = """from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from trl import ModelConfig, TrlParser
model, args = TrlParser((ModelConfig, TrainingArguments)).parse_args_and_config()
Trainer(model=AutoModelForCausalLM.from_pretrained(model.model_name_or_path), args=args, train_dataset=data).train()
"""


def test_a_page_that_hands_a_script_another_recipe_than_the_launch_file_does(tmp_path: Path) -> None:
    (tmp_path / "sft.py").write_text(TAKES_RECIPES)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("model_name_or_path: gpt2\noutput_dir: out\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 sft.py --config a.yaml\n")
    (tmp_path / "README.md").write_text(
        "```bash\ntorchrun --nproc_per_node 4 sft.py --config a.yaml\n"
        "torchrun --nproc_per_node 4 sft.py --config b.yaml\n```\n"
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "run.md").write_text("```bash\ntorchrun --nproc_per_node 4 sft.py --config b.yaml\n```\n")
    found = lintfit("check", ".", "--gpu", "3090", "--no-cache", "--output-format", "json", cwd=tmp_path).json
    assert [run["id"] for run in found["runs"]] == ["run.sh:1", "README.md:3"]
