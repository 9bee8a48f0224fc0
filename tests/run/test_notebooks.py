"""Runs that stand in notebooks: what trains in the cells, what is launched from them, and the machine they are for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

TRAIN = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
args = TrainingArguments("out", per_device_train_batch_size=BATCH, bf16=True)
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()
"""

IN_FP16 = TRAIN.replace("bf16", "fp16").replace("Qwen/Qwen2.5-0.5B", "google/gemma-3-1b-it")
"""With a model that fp16 breaks."""


def write(path: Path, *cells: str, **metadata: Any) -> str:
    """A notebook with these code cells; its text."""
    made = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell.splitlines(True)}
        for cell in cells
    ]
    text = json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
    path.write_text(text, "utf-8")
    return text


def check(folder: Path, *arguments: str) -> Any:
    return lintfit("check", *arguments, "--output-format", "json", cwd=folder).json


def value(run: dict[str, Any], name: str) -> Any:
    return run["settings"][name]["value"]


def test_the_cells_are_a_run_of_one_process_whose_id_is_the_line_that_trains(tmp_path: Path) -> None:
    text = write(tmp_path / "n.ipynb", "BATCH = 3", TRAIN)
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100", "--gpus", "8")["runs"]
    line = int(run["id"].removeprefix("n.ipynb:"))
    assert "trainer.train()" in text.split("\n")[line - 1]
    assert (value(run, "micro_batch_size"), value(run, "gpus"), value(run, "engine")) == (3, 1, "single")
    assert run["verdict"] in ("fits", "tight")
    batch = run["settings"]["micro_batch_size"]["from"]
    assert (batch["cell"], batch["cell_line"]) == (1, 1)


def test_a_search_finds_it_and_passes_over_notebooks_that_train_nothing(tmp_path: Path) -> None:
    write(tmp_path / "n.ipynb", "BATCH = 3", TRAIN)
    write(tmp_path / "plot.ipynb", "import matplotlib.pyplot as plt\nplt.plot([1, 2])")
    write(tmp_path / "uses.ipynb", "from transformers import pipeline, TrainingArguments\npipeline('x')('y')")
    found = check(tmp_path)
    assert [run["id"].partition(":")[0] for run in found["runs"]] == ["n.ipynb"]
    assert found["skipped"] == []
    named = check(tmp_path, "uses.ipynb")
    assert named["runs"] == []
    assert [each["reason"] for each in named["skipped"]] == ["a notebook in which nothing that trains was found"]


def test_what_is_no_notebook_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "n.ipynb").write_text('{"cells": [', "utf-8")
    outcome = lintfit("check", "n.ipynb", cwd=tmp_path)
    assert outcome.status == 2
    assert "n.ipynb: is not a notebook: line 1 is no JSON" in outcome.err


def test_a_script_that_a_cell_writes_and_another_launches(tmp_path: Path) -> None:
    text = write(
        tmp_path / "n.ipynb",
        "N = 2",
        f"%%writefile train.py\nBATCH = 5\n{TRAIN}",
        "!accelerate launch --num_processes {N} train.py",
    )
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert "accelerate launch" in text.split("\n")[int(run["id"].partition(":")[2]) - 1]
    assert (value(run, "micro_batch_size"), value(run, "gpus"), value(run, "engine")) == (5, 2, "ddp")
    batch = run["settings"]["micro_batch_size"]["from"]
    assert "BATCH = 5" in text.split("\n")[batch["line"] - 1]
    assert (batch["cell"], batch["cell_line"]) == (2, 2)


def test_a_config_that_a_cell_writes_is_the_one_that_the_arguments_name(tmp_path: Path) -> None:
    write(
        tmp_path / "n.ipynb",
        '%%writefile ds.json\n{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}',
        "BATCH = 1",
        TRAIN.replace("bf16=True", 'bf16=True, deepspeed="ds.json"'),
    )
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert (value(run, "engine"), value(run, "zero_stage")) == ("deepspeed", 2)
    assert run["settings"]["zero_stage"]["from"]["cell"] == 1


def test_cd_and_the_scripts_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(TRAIN.replace("BATCH", "7"), "utf-8")
    for number, cells in enumerate(
        (["%cd src", "!python train.py"], ["!cd src && python train.py"], ["%run src/train.py"])
    ):
        write(tmp_path / f"n{number}.ipynb", *cells)
        (run,) = check(tmp_path, f"n{number}.ipynb", "--gpu", "A100")["runs"]
        assert value(run, "micro_batch_size") == 7


def test_a_shell_of_its_own_does_not_move_the_next(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("BATCH", "7"), "utf-8")
    write(tmp_path / "n.ipynb", "!cd elsewhere && ls", "!python train.py")
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert value(run, "micro_batch_size") == 7


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("!pip install transformers==4.44.2", "fp32"),
        ('%pip install -q \\\n  "transformers==4.44.2"', "fp32"),
        ("!uv pip install 'transformers<5'", "fp32"),
        ("!pip install transformers==5.0.0", "bf16"),
        ("!pip install transformers==4.44.2\n!pip install -U transformers==5.0.0", "bf16"),
    ],
)
def test_installs_state_versions(tmp_path: Path, cell: str, said: str) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.30.0\n", "utf-8")
    write(tmp_path / "n.ipynb", cell, "BATCH = 1", TRAIN)
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert value(run, "weights_dtype") == said


@pytest.mark.parametrize(
    ("metadata", "gpu", "gpus"),
    [
        ({"accelerator": "GPU", "colab": {"gpuType": "T4"}}, "T4", 1),
        ({"accelerator": "GPU", "colab": {}}, "T4", 1),
        ({"accelerator": "GPU", "colab": {"gpuType": "A100"}}, "A100-40GB", 1),
        ({"kaggle": {"accelerator": "nvidiaTeslaT4"}}, "T4", 2),
        ({"kaggle": {"accelerator": "none"}}, None, None),
        ({"accelerator": "TPU", "colab": {}}, None, None),
        ({"accelerator": ["GPU"], "colab": 3, "kaggle": 4}, None, None),
    ],
)
def test_the_machine_of_colab_and_kaggle_is_assumed(
    tmp_path: Path, metadata: dict[str, Any], gpu: str | None, gpus: int | None
) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("BATCH", "1"), "utf-8")
    write(tmp_path / "n.ipynb", "!accelerate launch train.py", **metadata)
    (run,) = check(tmp_path, "n.ipynb")["runs"]
    found = run["settings"].get("gpu", {"value": None})
    assert found["value"] == gpu
    if gpu is not None:
        assert found["from"]["kind"] == "assumed"
        assert value(run, "gpus") == gpus
    (named,) = check(tmp_path, "n.ipynb", "--gpu", "H100")["runs"]
    assert value(named, "gpu") == "H100"


def test_what_a_launcher_of_the_notebook_starts(tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in TRAIN.replace("BATCH", "2").splitlines())
    write(
        tmp_path / "n.ipynb",
        f"def work():\n{body}",
        "from accelerate import notebook_launcher\nnotebook_launcher(work, num_processes=4)",
    )
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert (value(run, "gpus"), value(run, "engine"), value(run, "micro_batch_size")) == (4, "ddp", 2)


def _differences(before: str, after: str) -> list[int]:
    """The cells whose source differs; all else of the two notebooks is the same."""
    a, b = json.loads(before), json.loads(after)
    pairs = list(zip(a["cells"], b["cells"], strict=True))
    own = [index for index, (one, other) in enumerate(pairs) if one["source"] != other["source"]]
    for one, other in pairs:
        assert {**one, "source": None} == {**other, "source": None}
    assert {**a, "cells": None} == {**b, "cells": None}
    return own


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_fix_edits_the_source_of_cells_and_nothing_else(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "n.ipynb"
    cells = json.loads(write(path, 'BATCH = 64\nprint("é")', TRAIN, "trainer.save_model()"))
    cells["cells"][1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["model = 1\n", "é"]}]
    text = json.dumps(cells, indent=indent, ensure_ascii=False)
    path.write_text(text, "utf-8")
    flags = ("--gpu", "RTX 3090", "--seq-len", "2048", "--fix", "--unsafe-fixes")
    diff = lintfit("check", "n.ipynb", *flags, "--diff", cwd=tmp_path).out
    assert path.read_text("utf-8") == text
    assert "+++ n.ipynb" in diff
    lintfit("check", "n.ipynb", *flags, cwd=tmp_path)
    after = path.read_text("utf-8")
    assert set(_differences(text, after)) <= {0, 1}
    assert after != text
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "RTX 3090", "--seq-len", "2048")["runs"]
    assert run["verdict"] in ("fits", "tight")
    compile("".join(json.loads(after)["cells"][1]["source"]), "cell", "exec")


def test_the_edits_of_a_report_are_those_of_the_file(tmp_path: Path) -> None:
    text = write(tmp_path / "n.ipynb", "BATCH = 1", IN_FP16)
    found = check(tmp_path, "n.ipynb", "--gpu", "A100")["findings"]
    (finding,) = [each for each in found if each["rule"] == "fp16-for-bf16-model"]
    line = text.split("\n")[finding["line"] - 1]
    assert line[finding["column"] - 1 :].startswith("fp16=True") or "fp16" in line
    after = text
    for edit in sorted(finding["fix"]["edits"], key=lambda each: -each["start"]):
        after = after[: edit["start"]] + edit["text"] + after[edit["end"] :]
    assert _differences(text, after) == [1]
    assert "bf16=True" in "".join(json.loads(after)["cells"][1]["source"])


def test_a_comment_in_a_cell_silences(tmp_path: Path) -> None:
    own = IN_FP16.replace("args =", "# lintfit: ignore[fp16-for-bf16-model]\nargs =")
    write(tmp_path / "n.ipynb", "BATCH = 1", own)
    found = check(tmp_path, "n.ipynb", "--gpu", "A100")
    assert "fp16-for-bf16-model" not in {each["rule"] for each in found["findings"]}
    assert found["summary"]["ignored"] == 1


def test_ignores_are_added_above_the_line_of_the_cell(tmp_path: Path) -> None:
    text = write(tmp_path / "n.ipynb", "BATCH = 1", IN_FP16)
    lintfit("check", "n.ipynb", "--gpu", "A100", "--add-ignores", cwd=tmp_path)
    after = (tmp_path / "n.ipynb").read_text("utf-8")
    assert _differences(text, after) == [1]
    assert "# lintfit: ignore[" in after


@pytest.mark.peers
def test_a_fixed_notebook_opens_with_nbformat(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    path = tmp_path / "n.ipynb"
    write(path, "BATCH = 64", TRAIN)
    lintfit("check", "n.ipynb", "--gpu", "RTX 3090", "--fix", "--unsafe-fixes", cwd=tmp_path)
    nbformat.validate(nbformat.read(path, as_version=4))


RECIPE = """
base_model: Qwen/Qwen2.5-0.5B
adapter: lora
lora_r: 16
sequence_len: 1024
micro_batch_size: 3
"""


@pytest.mark.parametrize(
    "cell",
    [
        f'RECIPE = """{RECIPE}"""\nimport yaml\ndata = yaml.safe_load(RECIPE)\n'
        'with open("x.yaml", "w") as f:\n    yaml.dump(data, f)',
        f'NAME = "x.yaml"\nwith open(NAME, mode="w") as f:\n    f.write("""{RECIPE}""")',
        f'from pathlib import Path\nPath("x.yaml").write_text("""{RECIPE}""")',
        'import yaml\nwith open("x.yaml", "w") as f:\n    yaml.dump({"base_model": "Qwen/Qwen2.5-0.5B", '
        '"adapter": "lora", "lora_r": 16, "sequence_len": 1024, "micro_batch_size": 3}, f)',
        f"%%writefile x.yaml\n{RECIPE}",
    ],
)
def test_a_recipe_that_python_writes_is_what_the_front_end_gets(tmp_path: Path, cell: str) -> None:
    write(tmp_path / "n.ipynb", cell, "!axolotl train x.yaml")
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert (value(run, "lora_rank"), value(run, "micro_batch_size"), value(run, "seq_len")) == (16, 3, 1024)
    assert run["settings"]["lora_rank"]["from"]["cell"] == 1


def test_each_training_of_a_notebook_is_a_run(tmp_path: Path) -> None:
    again = (
        'args = TrainingArguments("more", per_device_train_batch_size=9, fp16=True)\n'
        "trainer = Trainer(model=model, args=args, train_dataset=data)\ntrainer.train()\n"
    )
    text = write(tmp_path / "n.ipynb", "BATCH = 3", TRAIN, again, "trainer.evaluate()")
    found = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert [(value(run, "micro_batch_size"), value(run, "mixed_precision")) for run in found] == [
        (3, "bf16"),
        (9, "fp16"),
    ]
    at = [int(run["id"].partition(":")[2]) for run in found]
    assert at[0] < at[1]
    assert all("trainer.train()" in text.split("\n")[line - 1] for line in at)


def test_a_module_that_a_cell_writes_is_the_one_that_a_script_imports(tmp_path: Path) -> None:
    write(
        tmp_path / "n.ipynb",
        "%%writefile sizes.py\nBATCH = 6\n",
        f"%%writefile train.py\nfrom sizes import BATCH\n{TRAIN}",
        "!python train.py",
    )
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100")["runs"]
    assert value(run, "micro_batch_size") == 6


def test_text_from_standard_input_is_fixed_as_a_notebook(tmp_path: Path) -> None:
    text = write(tmp_path / "n.ipynb", "BATCH = 1", IN_FP16)
    flags = ("--stdin-filename", "n.ipynb", "--gpu", "A100", "--fix", "--unsafe-fixes")
    outcome = lintfit("check", *flags, cwd=tmp_path, stdin=text.encode())
    assert _differences(text, outcome.out) == [1]
    assert (tmp_path / "n.ipynb").read_text("utf-8") == text


def test_a_plan_is_applied_to_the_cell(tmp_path: Path) -> None:
    text = write(tmp_path / "n.ipynb", "BATCH = 64", TRAIN)
    shown = lintfit("fit", "n.ipynb", "--gpu", "RTX 3060", "--seq-len", "2048", cwd=tmp_path).out
    assert "n.ipynb" in shown
    lintfit("fit", "n.ipynb", "--gpu", "RTX 3060", "--seq-len", "2048", "--apply", "1", cwd=tmp_path)
    assert set(_differences(text, (tmp_path / "n.ipynb").read_text("utf-8"))) <= {0, 1}
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "RTX 3060", "--seq-len", "2048")["runs"]
    assert run["verdict"] == "fits"


def test_lines_that_are_no_bash_are_no_finding(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("BATCH", "2"), "utf-8")
    write(tmp_path / "n.ipynb", "!ls {a[0]} | awk '{print $1", "!echo it's", "BATCH = 1", TRAIN, "!python train.py")
    found = check(tmp_path, "n.ipynb", "--gpu", "A100")
    assert [(run["verdict"], value(run, "micro_batch_size")) for run in found["runs"]] == [("fits", 2), ("fits", 1)]
    assert "syntax-error" not in {each["rule"] for each in found["findings"]}


LOOP = """\
import torch


class Loop:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def run(self, data):
        for batch in data:
            self.model(**batch).loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize("written", [True, False])
def test_a_module_that_another_cell_writes_is_of_the_notebook(tmp_path: Path, written: bool) -> None:
    """Both have the notebook's path; what is read of the one stands in its own cell."""
    start = "from loop import Loop\nfrom transformers import AutoModelForCausalLM\n"
    start += 'Loop(AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")).run(data)'
    cells = (f"%%writefile loop.py\n{LOOP}", f"%%writefile train.py\n{start}" if written else start)
    write(tmp_path / "n.ipynb", *cells, *["!python train.py"] * written)
    (run,) = check(tmp_path, "n.ipynb", "--gpu", "A100", "--gpus", "1", "--seq-len", "512")["runs"]
    place = run["settings"]["optimizer"]["from"]
    assert (place["path"], place["cell"], place["cell_line"]) == ("n.ipynb", 1, 8)
