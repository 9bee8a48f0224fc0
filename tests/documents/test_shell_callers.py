"""What other files of a tree hand to a shell script that takes its model as an argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import Kind
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.workspace import Workspace

TAKES = 'MODEL=$1\nLENGTH="$2"\npython train.py --model $MODEL --length $LENGTH ${@:3}\n'


def words(folder: Path, files: dict[str, str], script: str = "run/one.sh") -> list[str | None]:
    """The words of the script's last command, of a tree with these files."""
    document = read(folder, files, script)
    return [word.value for word in document.commands[-1].words]


def read(folder: Path, files: dict[str, str], script: str = "run/one.sh") -> ShellDocument:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    document = Workspace(folder).read(Path(script), Kind.SHELL)
    assert isinstance(document, ShellDocument)
    return document


@pytest.mark.parametrize(
    ("caller", "text"),
    [
        ("all.sh", "bash run/one.sh gemma-2b 512 --packing\n"),
        ("run/all.sh", "M=gemma-2b\nbash one.sh $M 512 --packing\n"),
        ("run/all.sh", 'M=gemma-2b\nnohup bash ./one.sh "$M" "512" --packing > log &\n'),
        ("jobs/all.sh", "cd ..\nsbatch --nodes=1 run/one.sh gemma-2b 512 --packing\n"),
        ("README.md", "Train it:\n```bash\nsh run/one.sh gemma-2b 512 --packing\n```\n"),
        ("README.md", "- Train it: `$ run/one.sh gemma-2b 512 --packing`, then wait.\n"),
        ("docs/README.md", "```\n$ bash run/one.sh gemma-2b \\\n  512 --packing\nloss 3.2\n```\n"),
        ("Makefile", "train:\n\t./run/one.sh gemma-2b 512 --packing\n"),
    ],
)
def test_arguments_are_those_of_the_line_that_starts_it(tmp_path: Path, caller: str, text: str) -> None:
    found = words(tmp_path, {"run/one.sh": TAKES, caller: text})
    assert found == ["python", "train.py", "--model", "gemma-2b", "--length", "512", "--packing"]


def test_it_says_which_line_that_is(tmp_path: Path) -> None:
    document = read(tmp_path, {"run/one.sh": TAKES, "all.sh": "echo start\nbash run/one.sh gemma-2b 512\n"})
    assert document.given is not None and document.given.where == "all.sh:2"


def test_only_what_all_lines_agree_on_is_known(tmp_path: Path) -> None:
    calls = "bash run/one.sh gemma-2b 512\nbash run/one.sh gemma-7b 512\nbash run/one.sh <model> 512\n"
    files = {"run/one.sh": TAKES, "README.md": f"```bash\n{calls}```\n"}
    assert words(tmp_path, files)[:6] == ["python", "train.py", "--model", None, "--length", "512"]
    files["README.md"] = "```bash\nbash run/one.sh gemma-2b 512\nbash run/one.sh <model> 512\n```\n"
    assert words(tmp_path, files)[3] == "gemma-2b"


@pytest.mark.parametrize(
    "text",
    [
        "bash run/one.sh gemma-2b 512\nbash run/one.sh gemma-2b 512 --packing\n",  # how many there are
        "bash run/one.sh gemma-2b\n",  # the script needs two
        "bash other/one.sh gemma-2b 512\n",  # another file of that name
        "echo run/one.sh gemma-2b 512\n",
        "python start.py run/one.sh gemma-2b 512\n",
        "bash one.sh gemma-2b 512\n",  # there is none in that folder
    ],
)
def test_nothing_is_known_where_no_line_surely_starts_it(tmp_path: Path, text: str) -> None:
    assert words(tmp_path, {"run/one.sh": TAKES, "other/one.sh": TAKES, "all.sh": text})[3] is None


@pytest.mark.parametrize("word", ["MODEL_PATH", "[model_id]", "[ID]"])
def test_a_page_names_what_is_to_be_filled_in(tmp_path: Path, word: str) -> None:
    files = {"run/one.sh": TAKES, "README.md": f"```bash\nbash run/one.sh {word} 512\n```\n"}
    assert words(tmp_path, files)[3:6] == [None, "--length", "512"]


def test_a_script_that_goes_through_its_arguments_is_left_alone(tmp_path: Path) -> None:
    loop = "MODEL=base\nwhile [ $# -gt 0 ]; do case $1 in -m) MODEL=$2; shift ;; esac; shift; done\n"
    files = {
        "run/one.sh": f"{loop}python train.py --model $MODEL --length $N\n",
        "all.sh": "bash run/one.sh -m other\n",
    }
    assert words(tmp_path, files)[3] == "base"


def test_variables_that_the_caller_exports_are_the_scripts(tmp_path: Path) -> None:
    takes = "python train.py --model $MODEL --length ${LENGTH:-512}\n"
    files = {"run/one.sh": takes, "all.sh": "export MODEL=gemma-2b\nLENGTH=64 bash run/one.sh\n"}
    assert words(tmp_path, files) == ["python", "train.py", "--model", "gemma-2b", "--length", "64"]
    files["all.sh"] = "MODEL=gemma-2b\nbash run/one.sh\n"  # it keeps that for itself
    assert words(tmp_path, files)[3] is None


def test_what_a_caller_is_started_with_goes_on(tmp_path: Path) -> None:
    files = {"run/one.sh": TAKES, "run/mid.sh": "bash run/one.sh $1 512\n", "all.sh": "bash run/mid.sh gemma-2b\n"}
    assert words(tmp_path, files)[3] == "gemma-2b"
    files["all.sh"] = "echo nothing\n"
    assert words(tmp_path, files)[3] is None


def test_scripts_that_start_each_other_end(tmp_path: Path) -> None:
    other = "python train.py --model $1\nbash run/one.sh $1 512\n"
    files = {"run/one.sh": f"{TAKES}bash run/two.sh $1\n", "run/two.sh": other}
    assert None in words(tmp_path, files)


def test_a_changed_caller_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "one.sh").write_text(TAKES, "utf-8")
    (tmp_path / "all.sh").write_text("bash one.sh gemma-2b 512\n", "utf-8")
    workspace = Workspace(tmp_path)
    workspace.read(Path("one.sh"), Kind.SHELL)
    changed = workspace.with_overlay({Path("all.sh"): "bash one.sh gemma-7b 512\n"})
    document = changed.read(Path("one.sh"), Kind.SHELL)
    assert isinstance(document, ShellDocument)
    assert document.commands[-1].words[3].value == "gemma-7b"


@pytest.mark.parametrize(
    ("other", "circular"), [("bash run/one.sh $1 512\n", False), ("bash run/one.sh $1 512\nbash all.sh\n", True)]
)
def test_scripts_that_may_start_each_other_are_known(other: str, circular: bool, tmp_path: Path) -> None:
    files = {"run/one.sh": TAKES, "all.sh": "python train.py $1\nbash other.sh gemma-2b\n", "other.sh": other}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    workspace = Workspace(tmp_path)
    workspace.read(Path("run/one.sh"), Kind.SHELL)
    assert workspace.circular is circular
