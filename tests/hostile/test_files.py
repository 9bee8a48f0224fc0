"""Trees whose files are no files, lead elsewhere, hold pages without end, or have names that somebody obeys."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.hostile.child import survives, write

SCRIPT = """
import json
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
config = json.load(open("{opened}"))
args = TrainingArguments(output_dir="out", fp16=True)
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args).train()
"""
SECRET = '{"a_secret_key": "a secret value", "zero_optimization": {"stage": 2, "a_secret_flag": 1}}'
FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "rdjson", "junit", "markdown", "github-review")
LINKS = {
    "the_config": ("ds.json", "{}"),
    "the_script": ("train.py", SCRIPT.format(opened="ds.json")),
    "the_launch": ("run.sh", "#!/bin/bash\n# a secret value\ntorchrun train.py --a_secret_flag 1\n"),
    "the_config_of_lintfit": ("lintfit.toml", "a_secret_key = 'a secret value'\n"),
    "pyproject": ("pyproject.toml", "[tool.lintfit]\na_secret_key = 'a secret value'\n"),
    "the_requirements": ("requirements.txt", "torch==a_secret_value\n"),
    "the_baseline": ("lintfit-baseline.json", SECRET),
    "the_notebook": (
        "a.ipynb",
        json.dumps({"cells": [{"cell_type": "code", "source": "a_secret_key\n!torchrun train.py"}]}),
    ),
    "the_module": ("helper.py", "a_secret_key = TrainingArguments(a_secret_flag='a secret value')\n"),
    "the_model": ("m/config.json", '{"model_type": "a_secret_value"}'),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("fix", [False, True])
def test_what_lies_outside_is_neither_shown_nor_changed(name: str, fix: bool, tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    file, content = LINKS[name]
    content = SECRET if content == "{}" else content
    write(outside, {file: content})
    script = "from helper import *\n" + SCRIPT.format(opened="ds.json").replace('"gpt2"', '"m"')
    write(tree, {"run.sh": "torchrun train.py\n", "train.py": script, "ds.json": "{}", "a/b.txt": ""})
    link = tree / file
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(outside / file)
    flags = ["--fix", "--unsafe-fixes"] if fix else ["--verbose"]
    outcome = survives(tree, "check", ".", "--gpu", "3090", "--gpus", "2", *flags)
    assert (outside / file).read_text() == content
    assert link.is_symlink() and not list(outside.rglob(".*.tmp"))
    assert "secret" not in outcome.out + outcome.err


@pytest.mark.parametrize(
    "path",
    ["{outside}/ds.json", "../outside/ds.json", "a/../../outside/ds.json", "/etc/hostname", "/proc/self/environ"],
)
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_script_that_opens_what_lies_outside(path: str, form: str, tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    opened = path.format(outside=outside)
    write(outside, {"ds.json": SECRET})
    write(tree, {"run.sh": "torchrun train.py\n", "train.py": SCRIPT.format(opened=opened)})
    outcome = survives(tree, "check", ".", "--gpu", "3090", "--gpus", "2", "--output-format", form)
    assert "secret" not in outcome.out + outcome.err


def test_a_config_of_the_tree_names_nothing_outside(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    write(outside, {"config.json": '{"model_type": "a_secret_value"}', "b.json": SECRET})
    write(tree, {
        "lintfit.toml": f'model-config = "{outside}/config.json"\nbaseline = "../outside/b.json"\nmodel = "{outside}"\n',
        "train.py": SCRIPT.format(opened="ds.json"), "ds.json": "{}",
    })  # fmt: skip
    outcome = survives(tree, "check", ".", "--gpu", "3090", "--gpus", "2")
    assert "secret" not in outcome.out + outcome.err
    outcome = survives(tree, "check", ".", "--write-baseline", "lintfit-baseline.json")
    assert (outside / "b.json").read_text() == SECRET


SPECIAL = (
    "ds.json",
    "train.py",
    "run.sh",
    "acc.yaml",
    "lintfit.toml",
    "pyproject.toml",
    "requirements.txt",
    "README.md",
    "a.ipynb",
    "Makefile",
    ".gitignore",
    "m/config.json",
    "hostfile",
)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "sparse", "loop", "unreadable"])
def test_files_that_are_none(kind: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(
        tree,
        {
            "a.sh": "deepspeed --hostfile hostfile train.py --deepspeed ds.json --model_name_or_path m\naccelerate launch --config_file acc.yaml train.py\n"
        },
    )
    for name in SPECIAL:
        path = tree / name
        path.parent.mkdir(exist_ok=True)
        match kind:
            case "pipe":
                os.mkfifo(path)
            case "device":
                path.symlink_to("/dev/zero")
            case "folder":
                path.mkdir()
            case "sparse":
                path.touch()
                os.truncate(path, 6 << 30)
            case "loop":
                path.symlink_to(path.name)
            case "unreadable":
                path.write_text("{}")
                path.chmod(0)
    survives(tree, "check", ".", "--gpu", "3090")
    survives(tree, "check", *SPECIAL, "--gpu", "3090", "--fix")


def test_folders_that_lead_into_themselves(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"a/train.py": SCRIPT.format(opened="ds.json"), "a/b/run.sh": "torchrun train.py\n"})
    for index in range(30):
        (tree / "a" / f"up{index}").symlink_to("..")
        (tree / "a" / "b" / f"up{index}").symlink_to("../..")
    survives(tree)


def test_a_deep_tree(tmp_path: Path) -> None:
    folder = tree = tmp_path / "tree"
    tree.mkdir()
    for _ in range(300):
        folder = folder / "a"
        folder.mkdir()
    (folder / "train.py").write_text(SCRIPT.format(opened="ds.json"))
    survives(tree)


def test_a_wide_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {f"d{i % 50}/f{i}.{'yaml' if i % 2 else 'json'}": '{"a": 1}' for i in range(3000)})
    survives(tree)


NAMES = ("a\n::error::b", "::error file=a::b", "##[error]a", "\x1b[31ma", "a\rb", "@everyone", "<img src=x onerror=alert(1)>",
         "[a](http:{}b)", "`a`", "-rf", "--fix", "\u202ea", "a\u2028b", "%0A::error::a", "a:b,c", "$(touch owned)", "`touch owned`", "\udcff")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_names_that_somebody_obeys(form: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for index, name in enumerate(NAMES):
        own = {
            "zero_optimization": {"stage": 2, name.encode("utf-8", "replace").decode(): index},
            f"{name!a}": "\n::error::a",
        }
        (tree / f"{name}{index}.json").write_text(json.dumps(own))
        (tree / f"{name}{index}.sh").write_text(
            f"torchrun train.py --deepspeed '{index}' --@all --a::b\n", "utf-8", "replace"
        )
        (tree / f"{name}{index}.py").write_text(SCRIPT.format(opened="@all <img> ::error::a"))
    outcome = survives(tree, "check", ".", "--gpu", "3090", "--gpus", "2", "--output-format", form)
    said = outcome.out if form != "github" else ""
    assert not re.search(r"^[ \t]*::(?!: )|##\[", said + outcome.err, re.MULTILINE)
    assert "\x1b" not in outcome.out + outcome.err and "\r" not in outcome.out + outcome.err
    if form == "github":
        commands = [line for line in outcome.out.splitlines() if "::" in line[:3]]
        assert commands and all(re.match(r"::(error|warning|notice) (title|file)=", line) for line in commands)
    if form in ("markdown", "github-review"):
        texts = [outcome.out] if form == "markdown" else [each["body"] for each in json.loads(outcome.out)["comments"]]
        shown = re.sub(r"```.*?```|``?[^`\n]*``?|\\.", "", "\n".join(texts), flags=re.DOTALL)
        assert not re.search(r"(?<!\w)@(all|everyone)\b", shown) and "<img" not in shown
    assert not (tree / "owned").exists()


def _cells(count: int, source: str) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}] * count})  # fmt: skip


PAGES: dict[str, dict[str, str | bytes]] = {
    "many_cells": {"a.ipynb": _cells(20_000, "import transformers\nTrainer().train()\n!torchrun train.py")},
    "deep_cells": {"a.ipynb": '{"cells": ' + "[" * 100_000},
    "cells_of_all_kinds": {"a.ipynb": json.dumps({"cells": [1, None, [], {}, {"cell_type": []}, {"cell_type": "code", "source": {"a": 1}}, {"cell_type": "code", "source": ["import transformers\n", 1, None]}]})},
    "cells_that_write_files": {"a.ipynb": _cells(300, "%%writefile ../../owned.py\nimport transformers\nTrainer().train()\n")},
    "magics": {"a.ipynb": _cells(500, "%%bash\n" + "!" * 1000 + "\n%" * 1000 + "\n!cd / && torchrun train.py\nTrainer(transformers)")},
    "a_long_cell": {"a.ipynb": _cells(1, "import transformers\n" + "a = 1\n" * 100_000 + "Trainer().train()")},
    "many_fences": {"README.md": "```bash\ntorchrun train.py\n```\n" * 20_000},
    "open_fences": {"README.md": "`" * 100_000 + "bash\n" + "```bash\ntorchrun train.py\n~~~" * 5000},
    "fences_in_lists": {"README.md": "".join(" " * (i % 60) + "- ```bash\n" for i in range(20_000)) + "torchrun train.py\n"},
    "quotes_in_quotes": {"README.md": "> " * 50_000 + "```bash\n" + "> " * 50_000 + "torchrun train.py\n"},
    "html": {"README.md": "<details>" * 50_000 + "\n```bash\ntorchrun train.py\n```\n" + "<!--" * 50_000},
    "prompts": {"README.md": "```console\n" + "$ torchrun train.py \\\n> --a b\n" * 5000 + "```\n"},
    "placeholders": {"README.md": "```bash\ntorchrun train.py " + "<" * 20_000 + "a" + ">" * 20_000 + " {a} [b] " * 5000 + "\n```\n"},
    "a_docstring_of_launches": {"train.py": '"""\n' + "torchrun train.py --a b\n" * 20_000 + '"""\n' + SCRIPT.format(opened="a")},
    "many_docstrings": {"train.py": '"""torchrun train.py"""\n' * 5000 + SCRIPT.format(opened="a")},
    "a_log": {"train.log": "CUDA out of memory. Tried to allocate " + "9" * 100_000 + " GiB\n" * 5000},
    "modules_that_import_each_other": {f"m{i}.py": f"from m{(i + 1) % 60} import *\nfrom transformers import Trainer\nimport m{(i + 7) % 60}\nTrainer().train()\n" for i in range(60)},
    "ignores": {".gitignore": "*" * 5000 + "\n" + "**/" * 3000 + "a\n" + "[" * 5000 + "\n" + "!*a*a*a*a*a*a*a*a*b\n" * 500, "a" * 150 + ".py": SCRIPT.format(opened="a")},
    "comments_of_lintfit": {"train.py": "# lintfit: ignore" + " " * 100_000 + "\n" + "# lintfit: ignore[" * 5000 + "\n" + SCRIPT.format(opened="a")},
    "assignments_before_a_command": {"README.md": "```\n" + 'A="a" ' * 5000 + "torchru\n```\n" + "torchrun train.py\n" + 'B="b" ' * 5000 + "x\n"},
    "blanks_behind_a_command": {"README.md": "torchrun train.py" + " " * 900_000 + "x\n```\n" + "\t " * 400_000 + "torchrun train.py\n```\n"},
    "a_prompt_of_one_name": {"README.md": "```console\nme@" + "a" * 900_000 + "\n```\n```bash\ntorchrun train.py\n```\n"},
    "requirements_with_markers": {"requirements.txt": "torch>=1; " + "(python_version<'3' and " * 50 + "\n" + "torch>=1\n" * 50_000},
    "commands_of_a_notebook": {"a.ipynb": _cells(30, "%%bash\n" + "!python " * 30_000 + "\n!torchrun train.py\nTrainer(transformers)")},
    "addresses_of_repositories": {"requirements.txt": "git+" * 100_000, "environment.yml": "git+:" * 80_000 + "\n" + "\n" * 100_000},
    "installs_and_clones": {"install.sh": "pip install git+https://a.b/c/transformers\ngit clone https://a.b/c/axolotl\n" * 5000},
    "requirements_on_a_command": {"install.sh": "pip install" + " torch>=1" * 50_000, "README.md": "torch==1.0\n" * 50_000},
    "a_word_of_training": {"train.py": "# " + "train" * 200_000 + "\n" + SCRIPT.format(opened="a")},
    "expressions_of_a_workflow": {".github/workflows/a.yml": "on: push\njobs:\n  a:\n    steps:\n      - run: python train.py " + "${{" * 60_000 + "\n"},
    "empty_lines_of_a_test": {"test_a.py": SCRIPT.format(opened="a") + "\n" * 900_000 + "x = 1\n"},
    "a_long_name": {"run.sh": "python train.py --model_name_or_path a" + "-mlx-a" * 100_000 + "\n#SBATCH --gres=gpu:" + "z'" * 200_000 + "\n"},
    "requirements_of_a_page": {"pyproject.toml": "[project]\nname = 'a'\ndependencies = [" + "'torch>=" + "9." * 5000 + "', " * 3000 + "]\n"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_pages_without_end(name: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"train.py": SCRIPT.format(opened="ds.json"), **PAGES[name]})
    survives(tree)
    assert not (tmp_path / "owned.py").exists()
    if "train.log" in PAGES[name]:
        survives(tree, "explain-oom", "train.log")


GIT = ("core.fsmonitor=touch {owned}", "core.hooksPath=hooks", "core.pager=touch {owned}", "diff.external=touch {owned}",
       "diff.x.textconv=touch {owned};cat", "diff.x.command=touch {owned}", "filter.x.clean=touch {owned};cat", "filter.x.smudge=touch {owned};cat",
       "filter.x.process=touch {owned}", "core.editor=touch {owned}", "core.sshCommand=touch {owned}", "gpg.program=touch {owned}",
       "log.showSignature=true", "core.attributesFile=.gitattributes", "core.alternateRefsCommand=touch {owned}", "uploadpack.packObjectsHook=touch {owned}")  # fmt: skip


@pytest.mark.parametrize(
    "flags",
    [
        ["--staged"],
        ["--changed-since", "HEAD"],
        ["--changed-since", "--output=owned"],
        ["--changed-since", "HEAD", "--fix"],
    ],
)
def test_a_repository_that_runs_programs(flags: list[str], tmp_path: Path) -> None:
    tree, owned = tmp_path / "tree", tmp_path / "owned"
    write(tree, {"train.py": SCRIPT.format(opened="ds.json"), "ds.json": "{}", ".gitattributes": "* diff=x filter=x\n"})
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    write(
        tree,
        {
            "ds.json": '{"zero_optimization": {"stage": 2}}',
            **{
                f"hooks/{name}": f"#!/bin/sh\ntouch {owned}\n"
                for name in ("post-index-change", "post-checkout", "fsmonitor-watchman")
            },
        },
    )
    for hook in (tree / "hooks").iterdir():
        hook.chmod(0o755)
    subprocess.run([*git, "add", "."], check=True, capture_output=True)
    for line in GIT:
        key, _, value = line.format(owned=owned).partition("=")
        subprocess.run([*git, "config", key, value], check=True)
    survives(tree, "check", ".", "--gpu", "3090", *flags)
    assert not owned.exists() and not (tree / "owned").exists()


SECRETS = {
    "ds.json": '{"zero_optimization": {"stage": 2, "a_secret": 1}, "a_secret": 1, "optimizer": {"type": "a_secret"}}',
    "acc.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\na_secret: 1\nmixed_precision: a_secret\n",
    "train.py": SCRIPT.format(opened="a_secret").replace("gpt2", "a_secret/model"),
    "words.args": "--a_secret 1\n--output_dir a_secret\n",
    "recipe.yml": "base_model: a_secret\nadapter: a_secret\nsequence_len: a_secret\na_secret: 1\ndatasets: [{path: a_secret}]\n",
    "hosts": "a_secret slots=a_secret\n",
    "env.sh": "export RUN=a_secret\n",
}
LAUNCHES = """deepspeed --hostfile {0}/hosts train.py --deepspeed {0}/ds.json @{0}/words.args
accelerate launch --config_file {0}/acc.yaml train.py
torchrun {0}/train.py
axolotl train {0}/recipe.yml
source {0}/env.sh
python train.py --run_name $RUN --foo $RUN
"""


@pytest.mark.parametrize("by", ["{outside}", "../outside", "link"])
@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_nothing_is_told_of_what_a_launch_names_outside(by: str, form: str, tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    write(outside, dict(SECRETS))
    write(tree, {"train.py": SCRIPT.format(opened="ds.json"), "run.sh": LAUNCHES.format(by.format(outside=outside))})
    (tree / "link").symlink_to(outside)
    outcome = survives(tree, "check", ".", "--gpu", "3090", "--gpus", "2", "--verbose", "--output-format", form)
    assert "secret" not in (outcome.out + outcome.err).lower()
    if by == "../outside" and form == "text":
        assert "lies outside of what is checked" in outcome.out


def test_what_the_command_line_names_outside_is_checked(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    write(outside, {"ds.json": SECRETS["ds.json"]})
    write(
        tree, {"train.py": SCRIPT.format(opened="a"), "run.sh": "deepspeed train.py --deepspeed ../outside/ds.json\n"}
    )
    outcome = survives(tree, "check", ".", "../outside/ds.json", "--gpu", "3090", "--output-format", "concise")
    assert "a_secret" in outcome.out


GIT_FILES = ("packed-refs", "HEAD", "config", "shallow", "commondir", "info/attributes", "index")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*GIT_FILES, "include", "pipe"])
@pytest.mark.parametrize("flags", [["--staged"], ["--changed-since", "HEAD"]])
def test_git_shows_nothing_of_other_files(name: str, flags: list[str], tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    write(outside, {"lines": "a_secret:x:0:0\na_secret\n", "conf": "[core]\n\tcompression = a_secret\n"})
    write(tree, {"train.py": SCRIPT.format(opened="ds.json"), "ds.json": "{}"})
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    path = tree / ".git" / ("config" if name == "include" else "HEAD" if name == "pipe" else name)
    if name == "include":
        path.write_text(path.read_text() + f"[include]\n\tpath = {outside}/conf\n")
    else:
        path.unlink(missing_ok=True)
        os.mkfifo(path) if name == "pipe" else path.symlink_to(outside / "lines")
    outcome = survives(tree, "check", ".", "--gpu", "3090", *flags)
    assert "secret" not in outcome.out + outcome.err


def test_a_diff_steers_nothing(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    text = '{\n\t::error::a\n"fp16": {"enabled": "true"},\n ::error::b\n\x1b[31m"zero_optimization": {"stage": 2, "overlap_com": true}}\n'
    own = '{"fp16": {"enabled": "true"}, "zero_optimization": {"stage": 2, "overlap_com": true}}'
    write(tree, {f"{name}{index}.json": own for index, name in enumerate(NAMES) if "\udcff" not in name})
    write(tree, {"ds.json": "// " + text.replace("\n", "\n// ").rstrip("/ ") + own})
    outcome = survives(tree, "check", ".", "--gpu", "3090", "--diff", "--unsafe-fixes")
    assert "+++ " in outcome.out and not re.search(r"^[ \t]*::(?!: )|##\[", outcome.out, re.MULTILINE)
    assert "\x1b" not in outcome.out and "\r" not in outcome.out and "\u202e" not in outcome.out


def test_many_folders(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"train.py": SCRIPT.format(opened="ds.json")})
    for index in range(20_000):
        (tree / f"d{index % 100}" / f"e{index}").mkdir(parents=True)
    survives(tree)


def test_folders_by_hundreds_in_one_another(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"ds.json": '{"zero_optimization": {"stage": 2}}'})
    try:
        here = tree
        for _ in range(1_200):
            here = here / "d"
            here.mkdir()
        assert "1 file read" in survives(tree, "check", ".").out
    finally:
        subprocess.run(["rm", "-rf", str(tree)], check=True)  # shutil.rmtree of Python 3.11 calls itself for each


def test_thousands_of_patterns_of_what_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "".join(f"**/a*b*{number}*d/x*y*{number}?z\n" for number in range(2_000))})
    write(tmp_path, {f"d{number % 100}/abcd{number}.json": "{}" for number in range(3_000)})
    survives(tmp_path, "check", ".")


def test_a_justfile_of_thousands_of_recipes(tmp_path: Path) -> None:
    write(tmp_path, {"justfile": "a:\n  torchrun train.py\n" * 4_000})
    outcome = survives(tmp_path, "check", ".")
    assert "more than" in outcome.out + outcome.err


def test_a_suggestion_within_a_hundred_thousand_lines(tmp_path: Path) -> None:
    config = '{"zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e9},\n' + "\n" * 100_000
    write(tmp_path, {"ds.json": config + '"zero_allow_untested_optimizer": true}\n'})
    survives(tmp_path, "check", ".", "--output-format", "github-review")


def test_data_of_a_script_is_shown_no_further_than_the_value_that_counts(tmp_path: Path) -> None:
    named = SCRIPT.replace("fp16=True", "fp16=True, deepspeed=config['name']")
    write(tmp_path, {"data.json": '{"name": "gone.json", "password": "a secret value"}'})
    write(tmp_path, {"run.sh": "torchrun train.py\n", "train.py": named.format(opened="data.json")})
    outcome = survives(tmp_path, "check", ".", "--gpu", "3090", "--gpus", "2", "--verbose")
    assert "data.json:1:10" in outcome.out
    assert "secret" not in outcome.out + outcome.err
