"""A recipe that all commands of the tree do something else with is no training; one that some may train by is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.documents.model import FileText
from lintfit.documents.shell_reader import read_shell
from lintfit.sources.launchers.idle_commands import trains_by
from tests.support import lintfit

AXOLOTL = """\
base_model: Qwen/Qwen2.5-0.5B
adapter: qlora
load_in_4bit: true
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 4
datasets_path: test.json
"""


def runs(folder: Path, files: dict[str, str], *words: str) -> tuple[list[str], list[str]]:
    """The runs that are read, and what is said of skipped files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = json.loads(lintfit("check", *(words or (".",)), "--output-format", "json", cwd=folder).out)
    return [run["id"] for run in found["runs"]], [each["reason"] for each in found["skipped"]]


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": "python3 -m axolotl.cli.inference test.yml --lora_model_dir ${2}\n"},
        {"run.sh": "python3 -m axolotl.axolotl.cli.inference examples/llama-2/test.yml\ncat test.yml\n"},
        {"run.sh": "accelerate launch -m axolotl.cli.preprocess test.yml\n", "b.sh": "axolotl merge-lora test.yml\n"},
        {"README.md": "# Use\n\n```bash\naccelerate launch scripts/finetune.py test.yml --inference\n```\n"},
    ],
)
def test_what_no_command_trains_by_is_no_run(tmp_path: Path, files: dict[str, str]) -> None:
    assert runs(tmp_path, {"test.yml": AXOLOTL, **files}) == ([], [])


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"run.sh": "cat test.yml\n"},
        {"run.sh": "axolotl inference test.yml\n", "submit.sh": "sbatch train.sh test.yml\n"},
        {"run.sh": "axolotl preprocess examples/test.yml\naxolotl train examples/test.yml\n"},
        {"run.sh": "axolotl inference test.yml\n", "start.py": 'CONFIG = "test.yml"\n'},
        {"run.sh": "axolotl inference other/test.yml\n", "other/test.yml": AXOLOTL},
    ],
)
def test_what_some_command_may_train_by_is_one(tmp_path: Path, files: dict[str, str]) -> None:
    found, _ = runs(tmp_path, {"test.yml": AXOLOTL, **files})
    assert "test.yml" in found
    assert "other/test.yml" not in found


def test_a_recipe_that_was_named_is_spoken_of(tmp_path: Path) -> None:
    files = {"test.yml": AXOLOTL, "run.sh": "axolotl inference test.yml\n"}
    found, reasons = runs(tmp_path, files, "test.yml", "run.sh")
    assert found == [] and "a recipe that only commands are given that do not train (run.sh)" in reasons


@pytest.mark.parametrize(
    ("command", "trains"),
    [
        ("llamafactory-cli chat x.yaml", False),
        ("llamafactory-cli export x.yaml", False),
        ("API_PORT=8000 llamafactory-cli api x.yaml", False),
        ("llamafactory-cli train x.yaml", True),
        ("swift infer --config x.yaml", False),
        ("swift merge-lora --config x.yaml", False),
        ("swift sft --config x.yaml", True),
        ("python -m swift.cli.export --config x.yaml", False),
        ("tune run generate --config x.yaml", False),
        ("tune run lora_finetune_single_device --config x.yaml", True),
        ("tune cp llama3_2/1B_lora x.yaml", None),
        ("trl vllm-serve --config x.yaml", False),
        ("litgpt evaluate --config x.yaml", False),
        ("accelerate launch -m axolotl.cli.train x.yml", True),
        ("python scripts/finetune.py x.yml --merge_lora", False),
        ("python scripts/finetune.py x.yml", True),
        ("axolotl some-new-command x.yml", True),
        ("python train.py x.yml", True),
        ("bash run.sh x.yml", True),
        ("cp x.yml y.yml", None),
    ],
)
def test_commands(command: str, trains: bool | None) -> None:
    (found,) = read_shell(FileText(Path("run.sh"), f"{command}\n")).commands
    assert trains_by(found.words) is trains
