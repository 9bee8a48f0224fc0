"""Which other launches of a tree read a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.options.model import Options
from lintfit.run import sharing as rooms
from lintfit.run.sharing import Others, sharing

TRAINER = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args).train()
"""
BY_CODE = TRAINER.replace("HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()", "[]").replace(
    "(args,) = []", 'args = TrainingArguments("out", deepspeed="ds.json")'
)
LAUNCH = "torchrun --nproc_per_node 2 train.py --output_dir out --deepspeed ds.json\n"
OTHER = LAUNCH.replace("ds.json", "other.json")
ZERO2 = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n'
HERE = {"train.py": TRAINER, "ds.json": ZERO2, "run.sh": LAUNCH}


@pytest.fixture(autouse=True)
def _in_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def others(root: Path, files: Mapping[str, str]) -> Others:
    """The runs beside that of ``run.sh`` which have a file."""
    for name, text in {**HERE, **files}.items():
        there = root / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text)
    workspace = Workspace(root)
    loaded, _ = load_runs([Path("run.sh")], Options(), workspace)
    return sharing(workspace, Options()).others(Path("ds.json"), loaded.runs[0])


@pytest.mark.parametrize(
    "files",
    [
        {"other.sh": LAUNCH},
        {"jobs/other.sh": LAUNCH},
        {"jobs/other.sh": "cd ..\n" + LAUNCH},
        {"jobs/other.sh": 'cd "$(dirname "$0")/.."\n' + LAUNCH},
        {"jobs/other.sh": "cd $PROJECT\n" + LAUNCH, "jobs/train.py": TRAINER},
        {"jobs/other.sh": LAUNCH.replace("ds.json", "../ds.json"), "jobs/train.py": TRAINER, "jobs/ds.json": ZERO2},
    ],
)
def test_a_launch_that_may_have_the_file_is_read(tmp_path: Path, files: Mapping[str, str]) -> None:
    found = others(tmp_path, files)
    assert [run.origin.path.name for run in found.runs] == ["other.sh"] or "$PROJECT" in files["jobs/other.sh"]


def test_files_of_the_same_name_in_another_folder_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example of a collection has its ``train.py`` and its ``ds.json``: none is read to plan for another."""
    files = {f"{name}/{file}": text for name in "abc" for file, text in HERE.items()}
    read: list[Path] = []
    monkeypatch.setattr(rooms, "build", lambda origin, *_: read.append(origin.path))
    assert others(tmp_path, files) == Others()
    assert not read


@pytest.mark.parametrize(
    ("page", "command", "read"),
    [
        ("docs/page.md", LAUNCH, False),
        ("docs/page.md", f"cd $HERE\n{LAUNCH}", False),
        ("docs/page.md", LAUNCH.replace("train.py", "one/train.py").replace("ds.json", "one/ds.json"), True),
        ("docs/page.md", LAUNCH.replace("train.py", "two/train.py").replace("ds.json", "two/ds.json"), False),
        ("page.md", LAUNCH, True),
    ],
)
def test_a_page_elsewhere_speaks_of_one_of_several_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, command: str, read: bool
) -> None:
    for name, text in {**HERE, page: f"```bash\n{command}```\n"}.items():
        for folder in ("one", "two") if name in HERE else ("",):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(text)
    workspace = Workspace(tmp_path)
    loaded, _ = load_runs([Path("one/run.sh")], Options(), workspace)
    opened: list[Path] = []
    monkeypatch.setattr(rooms, "build", lambda origin, *_: opened.append(origin.path))
    sharing(workspace, Options()).others(Path("one/ds.json"), loaded.runs[0])
    assert (Path(page) in opened) is read


@pytest.mark.parametrize(
    ("module", "line", "brings"),
    [
        ("scripts/start.py", "from parts import build", False),
        ("scripts/start.py", "from lib.parts import build", True),
        ("lib/start.py", "from parts import build", True),
        ("lib/deep/start.py", "from ..parts import build", True),
    ],
)
def test_a_module_is_brought_along_by_what_can_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, line: str, brings: bool
) -> None:
    files = {**HERE, "lib/parts.py": "def build(): ...\n", "scripts/parts.py": "def build(): ...\n"}
    files |= {module: f"{line}\n", "other.sh": f"torchrun --nproc_per_node 2 {module}\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    workspace = Workspace(tmp_path)
    loaded, _ = load_runs([Path("run.sh")], Options(), workspace)
    opened: list[Path] = []
    monkeypatch.setattr(rooms, "build", lambda origin, *_: opened.append(origin.path))
    sharing(workspace, Options()).others(Path("lib/parts.py"), loaded.runs[0])
    assert (Path("other.sh") in opened) is brings


def test_where_too_many_may_have_a_file_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "MAX_READ", 1)
    assert others(tmp_path, {"b.sh": f"# not by ds.json\n{OTHER * 2}", "other.json": ZERO2}).more


def test_a_config_that_a_script_names_is_shared_by_all_that_start_the_script(tmp_path: Path) -> None:
    launch = "torchrun --nproc_per_node 2 train.py\n"
    found = others(tmp_path, {"train.py": BY_CODE, "run.sh": launch, "other.sh": launch})
    assert [run.origin.path.name for run in found.runs] == ["other.sh"]


def test_who_writes_a_file_of_this_name_elsewhere_does_not_write_this_one(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "make.py").write_text('open("ds.json", "w").write("{}")\n')
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "ds.json").write_text(ZERO2)
    tree = sharing(Workspace(tmp_path), Options())
    assert tree.writer(Path("configs/ds.json")) is None
    (tmp_path / "make.py").write_text('open("configs/ds.json", "w").write("{}")\n')
    assert sharing(Workspace(tmp_path), Options()).writer(Path("configs/ds.json")) == Path("make.py")


PARSER = TRAINER.replace("HfArgumentParser", "TrlParser").replace(
    "(args,) = TrlParser(TrainingArguments).parse_args_into_dataclasses()",
    "(args,) = TrlParser((TrainingArguments,)).parse_args_and_config()",
)


@pytest.mark.parametrize(
    ("call", "shared"),
    [("bash other.sh args.yaml", True), ("bash other.sh config args.yaml", True), ("bash other.sh more.yaml", False)],
)
def test_a_recipe_that_another_launch_is_called_with(tmp_path: Path, call: str, shared: bool) -> None:
    """Its launch has ``$1``, and names no file; one that lacks what it is called with may be given this one."""
    (tmp_path / "train.py").write_text(PARSER.replace("import Auto", "import TrlParser, Auto"))
    (tmp_path / "args.yaml").write_text("output_dir: out\nper_device_train_batch_size: 4\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py --config args.yaml\n")
    (tmp_path / "other.sh").write_text("torchrun --nproc_per_node 4 train.py --config $1\n")
    (tmp_path / "README.md").write_text(f"```bash\n{call}\n```\n")
    workspace = Workspace(tmp_path)
    loaded, _ = load_runs([Path("run.sh")], Options(), workspace)
    found = sharing(workspace, Options()).others(Path("args.yaml"), loaded.runs[0])
    assert ([run.origin.path.name for run in found.runs] == ["other.sh"]) is shared
