"""Which files date the libraries of a front end's recipe, where a tree has parts that are installed apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog.peers import oldest_transformers
from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from lintfit.run.front_end_pins import FrontEndPins
from lintfit.run.model import Run
from lintfit.run.requirements import asked_near

LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: identity
template: qwen
output_dir: out
bf16: true
"""
NEW = LLAMAFACTORY + "val_size: 0.1\neval_strategy: steps\n"
AXOLOTL = """\
base_model: Qwen/Qwen2.5-0.5B
adapter: lora
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 4
"""


def read(folder: Path, files: dict[str, str], name: str) -> Run:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    _, (result,) = load_runs([folder / name], Options(isolated=True))
    return result.run


def dated(run: Run) -> dict[str, Any]:
    own = {"requirements.txt", "README.md", "pyproject.toml"}
    return {name: each for name, each in run.versions.items() if Path(run.versions.sources.get(name, "")).name in own}


@pytest.mark.parametrize(
    ("files", "transformers", "refused"),
    [
        # another part's, beside which no release of LLaMA-Factory can stand
        ({"requirements.txt": "torch==1.13.1\ntransformers==4.30.1\n"}, None, []),
        # a release of LLaMA-Factory can, but the recipe's keys are newer, and the file does not install it
        ({"requirements.txt": "torch==2.1.0\ntransformers==4.38.0\n"}, None, []),
        # the file installs LLaMA-Factory, too
        ({"requirements.txt": "transformers==4.38.0\nllamafactory\n"}, "4.38.0", ["eval_strategy"]),
        ({"requirements.txt": "transformers==4.38.0\n-e git+https://github.com/hiyouga/LLaMA-Factory\n"},
         "4.38.0", ["eval_strategy"]),
        ({"README.md": "git clone https://github.com/hiyouga/LLaMA-Factory\npip install transformers==4.38.0\n"},
         "4.38.0", ["eval_strategy"]),
        ({"README.md": "Recipes of LLaMA-Factory.\n\n    pip install transformers==4.38.0\n"}, None, []),
        ({"requirements.txt": "# no llamafactory\ntransformers==4.38.0\n"}, None, []),
        # its own checkout
        ({"requirements.txt": "transformers==4.38.0\n", "src/llamafactory/__init__.py": ""},
         "4.38.0", ["eval_strategy"]),
        # nothing speaks against it
        ({"requirements.txt": "torch==2.4.0\ntransformers==4.45.0\n"}, "4.45.0", []),
    ],
)  # fmt: skip
def test_llamafactory(tmp_path: Path, files: dict[str, str], transformers: str | None, refused: list[str]) -> None:
    run = read(tmp_path, {"sft.yaml": NEW, **files}, "sft.yaml")
    assert [each.name for each in run.refused] == refused
    assert dated(run).get("transformers") == transformers
    assert ("torch" in dated(run)) == (transformers == "4.45.0")


def test_what_is_known_of_the_release_counts(tmp_path: Path) -> None:
    files = {"requirements.txt": "transformers==4.45.0\n", "README.md": "pip install llamafactory==0.9.5\n"}
    run = read(tmp_path, {"sft.yaml": LLAMAFACTORY, **files}, "sft.yaml")
    assert dated(run) == {"llamafactory": "0.9.5"}


def test_axolotl_brings_its_own(tmp_path: Path) -> None:
    files = {"requirements.txt": "transformers==4.30.1\ntorch==1.13.1\n"}
    assert dated(read(tmp_path / "apart", {"recipe.yml": AXOLOTL, **files}, "recipe.yml")) == {}
    files["requirements.txt"] += "axolotl @ git+https://github.com/axolotl-ai-cloud/axolotl\n"
    assert dated(read(tmp_path / "together", {"recipe.yml": AXOLOTL, **files}, "recipe.yml")) == {
        "transformers": "4.30.1",
        "torch": "1.13.1",
    }


def test_a_script_goes_by_whatever_its_project_pins(tmp_path: Path) -> None:
    script = "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments('o')).train()\n"
    run = read(tmp_path, {"train.py": script, "requirements.txt": "transformers==4.30.1\n"}, "train.py")
    assert dated(run) == {"transformers": "4.30.1"}


def test_a_nearer_file_of_another_part_hides_none(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "requirements.txt").write_text("trl==0.19.0\nms-swift==3.5\ntransformers==4.52.0\n")
    (tmp_path / "part" / "requirements.txt").write_text("transformers==4.12.0\n")
    path = tmp_path / "part" / "sft.yaml"
    assert asked_near(path, tmp_path)["transformers"][0] == "4.12.0"
    pins = FrontEndPins("swift", oldest_transformers("swift", None))
    assert asked_near(path, tmp_path, pins)["transformers"][0] == "4.52.0"


def test_environments() -> None:
    pins = FrontEndPins("swift", "4.33")
    assert pins.of_environment({"transformers": "4.40.0"}) and not pins.of_environment({"transformers": "4.30.0"})
    assert pins.of_environment({"transformers": "4.30.0", "ms-swift": "1.1.0"})
    assert not FrontEndPins("swift", "4.33", strict=True).of_environment({"transformers": "4.40.0"})


def test_what_front_ends_ask_for() -> None:
    assert oldest_transformers("llamafactory", None) == "4.37.2"
    assert oldest_transformers("llamafactory", "0.9.4") == "4.51"
    assert oldest_transformers("torchtune", None) is None
    assert oldest_transformers("trl", "0.1") == oldest_transformers("trl", None)
