"""Files outside of the checked tree: what a file of the tree names there is not read, so that no report can show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.report import REPORTERS
from tests.support import Outcome, lintfit

SECRET = "s3cr3t-t0ken"
IMPORTS = """\
from {module} import MODEL
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained(MODEL), args=args).train()
"""
PLAIN = IMPORTS.format(module="x").replace("from x import MODEL\n", "").replace("MODEL", '"gpt2"')
OPENS = "import json, yaml\nMODEL = json.load(open({name!r}))['m']\n" + IMPORTS.format(module="x").partition("\n")[2]
RUN = "torchrun --nproc_per_node 1 train.py --output_dir out\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository; beside it files with a secret, of every kind that is read."""
    folder = tmp_path / "tree"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "env.sh").write_text(f"MODEL={SECRET}\n")
    (tmp_path / "lib.py").write_text(f'MODEL = "{SECRET}"\n')
    (tmp_path / "a.json").write_text(f'{{"m": "{SECRET}", "zero_optimization": {{"stage": 2}}, "{SECRET}": 1}}\n')
    (tmp_path / "args.txt").write_text(f"--model_name_or_path\n{SECRET}\n")
    (tmp_path / "recipe.yaml").write_text(f"model_name_or_path: {SECRET}\nstage: sft\ndo_train: true\n{SECRET}: 1\n")
    (tmp_path / "text").write_text(f"{SECRET}\n")
    (tmp_path / "lintfit.other").write_text(f'{SECRET} = "{SECRET}"\n')
    return folder


def shown(folder: Path, *flags: str) -> list[Outcome]:
    return [
        lintfit("check", ".", *flags, "--verbose", "--gpu", "3090", "--output-format", name, cwd=folder)
        for name in REPORTERS
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": f"source ../env.sh\n{RUN}".replace("out\n", "$MODEL --optim $MODEL\n"), "train.py": PLAIN},
        {"run.sh": f". {{above}}/env.sh\n{RUN}".replace("out\n", "$MODEL --optim $MODEL\n"), "train.py": PLAIN},
        {"run.sh": RUN, "train.py": IMPORTS.format(module="lib")},
        {"run.sh": RUN, "train.py": OPENS.format(name="../a.json")},
        {"run.sh": RUN, "train.py": OPENS.format(name="{above}/a.json")},
        {"run.sh": "torchrun train.py @../args.txt\n", "train.py": PLAIN},
        {"run.sh": "torchrun train.py ../a.json\n", "train.py": PLAIN},
        {"run.sh": f"{RUN[:-1]} --deepspeed ../text\n", "train.py": PLAIN},
        {"run.sh": f"deepspeed --hostfile ../text {RUN.split(None, 3)[3]}", "train.py": PLAIN},
        {"run.sh": f"accelerate launch --config_file ../text {RUN.split(None, 3)[3]}", "train.py": PLAIN},
        {"run.sh": "llamafactory-cli train ../recipe.yaml\n"},
        {"run.sh": "trl sft --config ../recipe.yaml\n"},
        {"run.sh": RUN, "train.py": PLAIN, "lintfit.toml": 'model-config = "../a.json"\n'},
        {"run.sh": RUN, "train.py": PLAIN, "lintfit.toml": 'baseline = "{above}/a.json"\n'},
        {"train.py": PLAIN, "lintfit.toml": '[[run]]\nfiles = ["train.py", "../a.json"]\n'},
    ],
    ids=range(15),
)
def test_what_lies_outside_is_not_shown(files: dict[str, str], tree: Path) -> None:
    for name, text in files.items():
        (tree / name).write_text(text.replace("{above}", tree.parent.as_posix()))
    for outcome in shown(tree):
        assert SECRET not in outcome.out + outcome.err
        assert "internal error" not in outcome.err


@pytest.mark.parametrize(
    "name", ["a.json", "x.yaml", "train.py", "run.sh", "lintfit.toml", "pyproject.toml", "requirements.txt"]
)
@pytest.mark.parametrize("target", ["text", "lintfit.other", "env.sh"])
def test_links_that_lead_out(name: str, target: str, tree: Path) -> None:
    (tree / "run2.sh").write_text(RUN.replace("train.py", "main.py"))
    (tree / "main.py").write_text(PLAIN)
    (tree / name).symlink_to(tree.parent / target)
    for outcome in shown(tree):
        assert SECRET not in outcome.out + outcome.err


@pytest.mark.parametrize("key", ["model-config", "baseline", "model"])
def test_a_config_names_no_file_outside(key: str, tree: Path) -> None:
    (tree.parent / "config.json").write_text('{"model_type": "gpt2"}')
    value = ".." if key == "model" else "../config.json"
    (tree / "lintfit.toml").write_text(f'# one\n{key} = "{value}"\n')
    outcome = lintfit("check", ".", cwd=tree)
    assert outcome.status == 2
    said = f'{key} = "{value}": lies outside of {tree}; name it with --{key}, as only the command line may'
    assert outcome.err == f"lintfit: lintfit.toml:2: {said}\n"


def test_the_command_line_names_what_it_likes(tree: Path) -> None:
    (tree / "run.sh").write_text(RUN)
    (tree / "train.py").write_text(PLAIN.replace('"gpt2"', "args.output_dir"))
    config = '{"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257}'
    (tree.parent / "config.json").write_text(config)
    flags = ("--gpu", "3090", "--output-format", "json", "--model-config", "../config.json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tree).json["runs"]
    assert run["estimate"] is not None


def test_a_link_in_the_place_of_the_config_is_said(tree: Path) -> None:
    (tree / "lintfit.toml").symlink_to(tree.parent / "lintfit.other")
    outcome = lintfit("check", ".", cwd=tree)
    assert (outcome.status, outcome.err) == (2, f"lintfit: lintfit.toml: leads out of {tree}, and is not read\n")
