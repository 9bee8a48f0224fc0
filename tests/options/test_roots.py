"""What is written stays below the root, and what lies outside is neither fixed nor quoted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lintfit.options.model import Options
from lintfit.options.roots import output_roots, root_of, roots_of
from lintfit.report import REPORTERS
from tests.support import ROOT, lintfit, process

FIXABLE = '{\n  "zero_optimization": {"stage": 2},\n  "fp16": {"enabled": "true"}\n}\n'
FIXED = FIXABLE.replace('"true"', "true")
SECRET = "confidential: 1\n{zero_optimization "
SCRIPT = """\
import json

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

opened = json.load(open({opened!r}))
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
args = TrainingArguments(output_dir="out", bf16=True{arguments})
Trainer(model=model, args=args, train_dataset=opened["data"]).train()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "ds.json").write_text(FIXABLE)
    (tmp_path / "outside" / "secret.json").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


def reports(project: Path) -> list[str]:
    """What a run with fixes says, in every format."""
    flags = [flag for name in REPORTERS for flag in ("--output-format", f"{name}:{name}.out")]
    outcome = lintfit("check", ".", "--fix", "--unsafe-fixes", *flags, cwd=project)
    texts = [path.read_text() for path in project.glob("*.out")]
    assert len(texts) == len(REPORTERS) and "train.py" in "".join(texts)
    return [outcome.out, outcome.err, *texts]


# -- Which folder it is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "root"),
    [
        ((), "project"),
        ((".git",), ""),
        ((".git", "project/.hg"), "project"),
        (("project/a/.git",), "project/a"),
        (("project/a/.git", "project/lintfit.toml"), "project/a"),
        ((".svn", "project/a/b/lintfit.toml"), "project/a/b"),
        ((".git", "project/a/pyproject.toml"), "project/a"),
        ((".git", "project/a/b/other.toml"), ""),
    ],
)
def test_the_nearest_config_or_version_control(
    project: Path, tmp_path: Path, marks: tuple[str, ...], root: str
) -> None:
    (project / "a" / "b").mkdir(parents=True)
    for mark in marks:
        (tmp_path / mark).write_text("[tool.lintfit]\n" if "pyproject" in mark else "")
    for path in (Path("a/b/train.py"), project / "a" / "b"):
        assert root_of(path, Options()) == tmp_path / root


def test_a_config_is_no_mark_where_none_is_read(project: Path) -> None:
    (project / "a").mkdir()
    (project / "a" / "lintfit.toml").touch()
    assert root_of(Path("a"), Options(isolated=True)) == project
    assert root_of(Path("a"), Options()) == project / "a"


def test_what_lies_elsewhere(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (project / "link").symlink_to(outside)
    assert root_of(Path("../outside/ds.json"), Options()) == project
    assert root_of(Path("link/ds.json"), Options()) == project
    assert root_of(Path("link"), Options()) == project
    assert root_of(outside, Options()) == outside
    assert roots_of([], Options()) == (project,)
    assert output_roots([outside], Options()) == (project, outside)


# -- Fixes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../outside/ds.json", "link.json", "folder/ds.json", "absolute"])
@pytest.mark.parametrize("named", [True, False])
def test_no_fix_leaves_the_root(project: Path, tmp_path: Path, name: str, named: bool) -> None:
    outside = tmp_path / "outside" / "ds.json"
    if name == "link.json":
        (project / name).symlink_to(outside)
    (project / "folder").symlink_to(outside.parent)
    name = str(outside) if name == "absolute" else name
    (project / "run.sh").write_text(f"torchrun train.py --deepspeed {name}\n")
    (project / "train.py").write_text(SCRIPT.format(opened="data.json", arguments=f", deepspeed={name!r}"))
    outcome = lintfit("check", name if named else ".", "--fix", "--unsafe-fixes", cwd=project)
    if not named:  # what lies outside is not read because the tree says so, by a link or by its name
        assert "stringly-typed-value" not in outcome.out and outside.read_text() == FIXABLE
        return
    assert "stringly-typed-value" in outcome.out
    said = f"{name}: lies outside of {project}, below which lintfit writes: 1 fix not offered"
    assert said in " ".join(outcome.out.split())
    assert outside.read_text() == FIXABLE
    found = lintfit("check", name if named else ".", "--output-format", "json", cwd=project).json["findings"]
    assert [finding["fix"] for finding in found if finding["rule"] == "stringly-typed-value"] == [None]


def test_a_folder_that_is_named_is_fixed(project: Path, tmp_path: Path) -> None:
    lintfit("check", tmp_path / "outside", "--fix", cwd=project)
    assert (tmp_path / "outside" / "ds.json").read_text() == FIXED


def test_a_repository_is_fixed_as_a_whole(project: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (project / "link.json").symlink_to("../outside/ds.json")
    assert lintfit("check", "link.json", "--fix", cwd=project).status == 0
    assert (tmp_path / "outside" / "ds.json").read_text() == FIXED
    assert (project / "link.json").is_symlink()


def test_standard_input_is_handed_back_wherever_it_is_said_to_lie(project: Path) -> None:
    outcome = lintfit("check", "--fix", "--stdin-filename", "../outside/ds.json", cwd=project, stdin=FIXABLE.encode())
    assert outcome.out == FIXED


def test_no_comment_is_added_outside(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "ds.json"
    outside.write_text("// a comment\n" + FIXABLE)
    outcome = lintfit("check", "../outside/ds.json", "--add-ignores", cwd=project)
    assert "lies outside of" in outcome.out and outside.read_text() == "// a comment\n" + FIXABLE


def test_a_plan_that_leaves_the_root_is_carried_out_by_hand(project: Path, tmp_path: Path) -> None:
    (project / "train.py").write_text(
        SCRIPT.format(opened="data.json", arguments=', deepspeed="../outside/ds.json", gradient_checkpointing=True')
        .replace("0.5B", "7B")
        .replace("bf16=True", "bf16=True, per_device_train_batch_size=1, max_length=512")
    )
    (project / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    hardware = ("--gpu", "A100-80GB", "--seq-len", "512")
    outside = tmp_path / "outside" / "ds.json"
    outside.write_text(FIXABLE.replace('"fp16": {"enabled": "true"}', '"bf16": {"enabled": true}'))
    before = outside.read_text()
    listed = lintfit("fit", "run.sh", *hardware, cwd=project).out
    assert "lies outside of" in listed, listed
    lintfit("check", "run.sh", "--fix", "--unsafe-fixes", *hardware, cwd=project)
    lintfit("fit", "run.sh", "--apply", "1", *hardware, cwd=project)
    assert outside.read_text() == before


# -- Reports and the baseline ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["../new.json", "absolute", "link.json", "folder/new.json", "../outside/ds.json"])
@pytest.mark.parametrize("flag", ["--output-format", "--write-baseline"])
def test_no_report_leaves_the_root(project: Path, tmp_path: Path, place: str, flag: str) -> None:
    (project / "ds.json").write_text(FIXABLE)
    (project / "link.json").symlink_to(tmp_path / "outside" / "ds.json")
    (project / "folder").symlink_to(tmp_path / "outside")
    place = str(tmp_path / "new.json") if place == "absolute" else place
    value = f"json:{place}" if flag == "--output-format" else place
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    outcome = lintfit("check", ".", "--fix", flag, value, cwd=project)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == (
        f"lintfit: {flag} {value}: outside of {project}, below which lintfit writes; name a file there\n"
    )
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


def test_reports_below_the_root(project: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (project / "ds.json").write_text(FIXABLE)
    outcome = lintfit("check", ".", "--output-format", "json:../out.json", "--write-baseline", "b.json", cwd=project)
    assert outcome.status == 0
    assert (tmp_path / "out.json").exists() and (project / "b.json").exists()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no streams in the file system")
def test_a_stream_is_no_file(project: Path) -> None:
    (project / "ds.json").write_text(FIXED)
    for stream in ("/dev/stdout", "/dev/fd/1"):
        outcome = process("check", ".", "--output-format", f"json:{stream}", cwd=project)
        assert outcome.json["findings"] == []


# -- What a script opens --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../outside/secret.json", "absolute", "link.json", "own.json"])
def test_what_a_script_opens_is_neither_fixed_nor_quoted(project: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "outside" / "secret.json"
    (project / "link.json").symlink_to(secret)
    (project / "own.json").write_text(SECRET.replace("zero_optimization", "text"))
    name = str(secret) if name == "absolute" else name
    (project / "train.py").write_text(SCRIPT.format(opened=name, arguments=""))
    for text in reports(project):
        assert "confidential" not in text and "invalid-json" not in text
    assert secret.read_text() == SECRET


def test_what_a_script_opens_is_no_config_of_its_run(project: Path) -> None:
    (project / "own.txt").write_text(FIXABLE)
    (project / "train.py").write_text(SCRIPT.format(opened="own.txt", arguments=""))
    outcome = lintfit("check", "train.py", "--output-format", "json", cwd=project)
    assert {finding["path"] for finding in outcome.json["findings"]} == {"train.py"}
    assert outcome.json["runs"][0]["documents"] == ["train.py"]


def test_a_config_that_a_script_opens_too_is_not_fixed(project: Path) -> None:
    """The script may ask for any of its keys, whatever DeepSpeed makes of them."""
    (project / "ds.json").write_text(FIXABLE)
    (project / "train.py").write_text(SCRIPT.format(opened="ds.json", arguments=""))
    outcome = lintfit("check", ".", "--fix", "--unsafe-fixes", cwd=project)
    assert "stringly-typed-value" in outcome.out
    assert (project / "ds.json").read_text() == FIXABLE


@pytest.mark.parametrize("by", ["flag", "argument"])
def test_a_config_by_name_that_is_none_is_not_quoted(project: Path, tmp_path: Path, by: str) -> None:
    (project / "ds.json").symlink_to(tmp_path / "outside" / "secret.json")
    flag = " --deepspeed ds.json" if by == "flag" else ""
    script = SCRIPT.format(opened="data.json", arguments="" if by == "flag" else ', deepspeed="ds.json"')
    if by == "flag":
        script = script.replace(
            'args = TrainingArguments(output_dir="out", bf16=True)',
            "args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()",
        ).replace("import AutoModelForCausalLM", "import AutoModelForCausalLM, HfArgumentParser")
    (project / "train.py").write_text(script)
    (project / "run.sh").write_text(f"torchrun train.py{flag}\n")
    for text in reports(project):
        assert "confidential" not in text and "invalid-json" not in text


# -- Two at once ----------------------------------------------------------------------------------------------------


def test_two_that_fix_at_once_leave_what_one_leaves(project: Path, tmp_path: Path) -> None:
    files = {
        "train.py": SCRIPT.format(opened="data.json", arguments=', deepspeed="ds.json"').replace("0.5B", "7B"),
        "run.sh": "torchrun --nproc_per_node 2 train.py\n",
        "ds.json": '{\n  "zero_optimization": {"stage": 2},\n  "bf16": {"enabled": true}\n}\n',
    }
    command = ["check", ".", "--fix", "--gpu", "A100-40GB", "--seq-len", "1024", "--exit-zero"]

    def write(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)

    def read(folder: Path) -> dict[str, str]:
        return {path.name: path.read_text() for path in folder.iterdir()}

    write(tmp_path / "alone")
    lintfit(*command, cwd=tmp_path / "alone")
    alone = read(tmp_path / "alone")
    assert all(alone[name] != files[name] for name in ("train.py", "ds.json")), "a plan in two files"
    write(project)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "lintfit", *command], cwd=project, env=environment, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [process.communicate()[0].decode() for process in both]
    assert sorted(process.returncode for process in both) in ([0, 0], [0, 2])  # 2: tired of waiting
    assert read(project) == alone
    assert sum("Fixed" in text for text in said) == 1
