"""``--staged`` and ``--changed-since``: which runs a change touches, whatever file of theirs it changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.repository import CLEAN, Repository
from tests.support import Outcome, lintfit

TRAIN = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf"), args=args).train()
"""
HELPED = TRAIN.replace("\n\n", "\nfrom shapes import MODEL\n\n", 1).replace('"meta-llama/Llama-2-7b-hf"', "MODEL")
ZERO3 = '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}\n'
ZERO2 = ZERO3.replace("3", "2")
FLAGS = "--output_dir out --bf16"
FILES = {
    "one_sh": f"deepspeed one.py --deepspeed ds.json {FLAGS}\n",
    "one_py": HELPED,
    "shapes_py": 'MODEL = "meta-llama/Llama-2-7b-hf"\n',
    "ds_json": ZERO3,
    "two_sh": f"torchrun --nproc_per_node 2 two.py {FLAGS}\n",
    "two_py": TRAIN,
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.commit(**FILES)
    return made


def checked(repository: Repository, *flags: str, folder: str = ".", **env: str) -> Outcome:
    return lintfit(
        "check",
        *flags,
        *("--gpu", "RTX 3090", "--gpus", "2", "--output-format", "json", "--exit-zero"),
        cwd=repository.folder / folder,
        env={**CLEAN, **env},
    )


def runs(outcome: Outcome) -> list[str]:
    assert not outcome.err
    return [run["id"] for run in outcome.json["runs"]]


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ({"ds_json": ZERO2}, ["one.sh:1"]),
        ({"shapes_py": 'MODEL = "gpt2"\n'}, ["one.sh:1"]),
        ({"two_sh": f"torchrun --nproc_per_node 1 two.py {FLAGS}\n"}, ["two.sh:1"]),
        ({"two_py": f"# here\n{TRAIN}"}, ["two.sh:1"]),
        ({"requirements_txt": "transformers==4.48.1\n"}, ["one.sh:1", "two.sh:1"]),
        ({"lintfit_toml": "seq-len = 512\n"}, ["one.sh:1", "two.sh:1"]),
        ({"notes_md": "a word\n"}, []),
        ({"other__ds_json": ZERO2}, ["other/ds.json"]),
    ],
)
@pytest.mark.parametrize("how", ["staged", "committed", "not added"])
def test_runs_that_a_change_touches(
    how: str, changed: dict[str, str], touched: list[str], repository: Repository
) -> None:
    if how == "committed":
        repository.commit(**changed)
    else:
        repository.write(**changed)
    if how == "staged":
        repository.git("add", "--all")
    asked = ["--staged"] if how == "staged" else ["--changed-since", "HEAD~1" if how == "committed" else "main"]
    assert runs(checked(repository, *asked)) == touched


def test_findings_of_other_runs_are_not_reported(repository: Repository) -> None:
    repository.commit(two_sh=f"torchrun two.py {FLAGS} --deepspeed nowhere.json\n")
    repository.write(ds_json=ZERO3.replace("train_micro", "train_mico"))
    repository.git("add", "--all")
    found = checked(repository, "--staged").json["findings"]
    assert "unknown-top-level-key" in [each["rule"] for each in found]
    assert {each["path"] for each in found} <= {"ds.json", "one.sh", "one.py"}


def test_a_deleted_config_that_a_launch_names(repository: Repository) -> None:
    repository.git("rm", "--quiet", "ds.json")
    outcome = checked(repository, "--staged")
    assert runs(outcome) == ["one.sh:1"]
    assert [each["rule"] for each in outcome.json["findings"]] == ["missing-file"]


def test_a_renamed_config_is_gone_from_where_it_is_named(repository: Repository) -> None:
    repository.git("mv", "ds.json", "zero3.json")
    outcome = checked(repository, "--staged")
    assert "one.sh:1" in runs(outcome)
    assert "missing-file" in [each["rule"] for each in outcome.json["findings"]]


def test_what_is_staged_counts_not_what_lies_there(repository: Repository) -> None:
    repository.write(ds_json=ZERO2)
    repository.git("add", "--all")
    repository.write(ds_json=ZERO3, two_py=f"# not staged\n{TRAIN}")
    (run,) = checked(repository, "--staged").json["runs"]
    assert run["settings"]["zero_stage"]["value"] == 2
    (repository.folder / "ds.json").unlink()
    (run,) = checked(repository, "--staged").json["runs"]
    assert run["settings"]["zero_stage"]["value"] == 2


def test_a_file_that_is_staged_otherwise_is_not_written(repository: Repository) -> None:
    repository.write(two_sh=f"torchrun --nproc_per_node 2 two.py {FLAGS} --half_precision_backend apex\n")
    repository.git("add", "--all")
    before = f"torchrun --nproc_per_node 2 two.py {FLAGS} # mine\n"
    repository.write(two_sh=before)
    lintfit(
        *("check", "--staged", "--fix", "--unsafe-fixes", "--gpu", "3090", "--gpus", "2"),
        cwd=repository.folder,
        env=CLEAN,
    )
    assert (repository.folder / "two.sh").read_text() == before


def test_a_fix_of_what_is_staged_is_written(repository: Repository) -> None:
    misspelt = ZERO3.replace("train_micro", "train_mico")
    repository.commit(other__ds_json=misspelt)
    repository.write(ds_json=misspelt)
    repository.git("add", "--all")
    lintfit("check", "--staged", "--fix", "--unsafe-fixes", cwd=repository.folder, env=CLEAN)
    assert "train_micro" in (repository.folder / "ds.json").read_text()
    assert (repository.folder / "other" / "ds.json").read_text() == misspelt


def test_before_the_first_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.write(**FILES)
    repository.git("add", "two.sh", "two.py")
    assert runs(checked(repository, "--staged")) == ["two.sh:1"]


def test_nothing_is_staged(repository: Repository) -> None:
    outcome = lintfit("check", "--staged", cwd=repository.folder, env=CLEAN)
    assert outcome.status == 0
    assert "nothing is staged" in outcome.out
    assert "passed" not in outcome.out


def test_how_much_is_looked_at_is_said(repository: Repository) -> None:
    repository.write(ds_json=ZERO2)
    outcome = lintfit("check", "--changed-since", "HEAD", cwd=repository.folder, env=CLEAN)
    assert "1 file is changed since HEAD: what that touches is checked, 1 other run is left out" in outcome.out


@pytest.mark.parametrize("name", ['a "b"', "ä ö", "line\nbreak", "tab\t", "*", ":(top)x", "-x"])
def test_odd_names(name: str, repository: Repository) -> None:
    folder = repository.folder / name
    folder.mkdir()
    (folder / "ds.json").write_text(ZERO2)
    repository.git("add", "--all")
    assert len(runs(checked(repository, "--staged"))) == 1
    assert len(runs(checked(repository, "--changed-since", "HEAD"))) == 1


def test_a_name_that_is_no_text(repository: Repository) -> None:
    try:
        (repository.folder / os.fsdecode(b"\xff.json")).write_text(ZERO2)
    except OSError:
        pytest.skip("the file system takes no such name")
    repository.git("add", "--all")
    assert len(runs(checked(repository, "--staged"))) == 1


def test_a_folder_of_the_repository_and_one_from_outside(repository: Repository) -> None:
    repository.write(sub__ds_json=ZERO2, ds_json=ZERO2)
    repository.git("add", "--all")
    assert runs(checked(repository, "--staged", folder="sub")) == ["ds.json"]
    assert runs(checked(repository, "--staged", "repository/sub", folder="..")) == ["repository/sub/ds.json"]
    repository.git("reset", "--quiet")
    assert runs(checked(repository, "--changed-since", "HEAD", folder="sub")) == ["ds.json"]


def test_a_worktree(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    (tmp_path / "other" / "ds.json").write_text(ZERO2)
    other = Repository.__new__(Repository)
    other.folder = tmp_path / "other"
    assert runs(checked(other, "--changed-since", "main")) == ["one.sh:1"]
    assert runs(checked(repository, "--changed-since", "main")) == []


def test_a_submodule_that_moves_is_changed_as_a_whole(repository: Repository, tmp_path: Path) -> None:
    part = Repository(tmp_path / "part")
    part.commit(ds_json=ZERO3)
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.folder), "part")
    repository.commit(one_sh=FILES["one_sh"].replace("ds.json", "part/ds.json"))
    inside = Repository.__new__(Repository)
    inside.folder = repository.folder / "part"
    inside.commit(ds_json=ZERO2)
    assert runs(checked(repository, "--changed-since", "HEAD")) == ["one.sh:1"]
    repository.git("add", "part")
    assert runs(checked(repository, "--staged")) == ["one.sh:1"]


def test_a_link_that_leads_elsewhere_now(repository: Repository) -> None:
    repository.write(a_json=ZERO2, b_json=ZERO3)
    link = repository.folder / "ds.json"
    link.unlink()
    link.symlink_to("a.json")
    repository.commit()
    link.unlink()
    link.symlink_to("b.json")
    assert runs(checked(repository, "--changed-since", "HEAD")) == ["one.sh:1"]


def test_the_index_of_a_hook(repository: Repository) -> None:
    repository.write(ds_json=ZERO2, two_py=f"# here\n{TRAIN}")
    shutil.copy(repository.folder / ".git" / "index", repository.folder / ".git" / "other-index")
    repository.git("add", "--all")
    shutil.move(repository.folder / ".git" / "index", repository.folder / ".git" / "kept")
    shutil.move(repository.folder / ".git" / "other-index", repository.folder / ".git" / "index")
    assert runs(checked(repository, "--staged")) == []
    assert len(runs(checked(repository, "--staged", GIT_INDEX_FILE=".git/kept"))) == 2


@pytest.mark.parametrize(
    "revision", ["nowhere", "--output=made", "-x", "main..main", "", "main\nother", "main:ds.json"]
)
def test_an_unknown_revision(revision: str, repository: Repository) -> None:
    outcome = lintfit("check", f"--changed-since={revision}", cwd=repository.folder, env=CLEAN)
    assert outcome.status == 2
    assert len(outcome.err.splitlines()) == 1
    assert not (repository.folder / "made").exists()


def test_commits_that_have_nothing_in_common(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit(ds_json=ZERO2)
    outcome = lintfit("check", "--changed-since", "main", cwd=repository.folder, env=CLEAN)
    assert outcome.status == 2
    assert "have in common" in outcome.err


def test_no_repository_and_no_git(tmp_path: Path, repository: Repository) -> None:
    outside = lintfit("check", "--staged", cwd=tmp_path, env={**CLEAN, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert (outside.status, len(outside.err.splitlines())) == (2, 1)
    assert "not a git repository" in outside.err
    without = lintfit("check", "--staged", cwd=repository.folder, env={"PATH": str(tmp_path)})
    assert (without.status, without.err.splitlines()) == (
        2,
        ["lintfit: git cannot be run: there is none on the PATH"],
    )


@pytest.mark.parametrize(
    "flags",
    [
        ["--staged", "--changed-since", "HEAD"],
        ["--staged", "--stdin-filename", "ds.json"],
        ["--changed-since", "HEAD", "--write-baseline", "known.json"],
    ],
)
def test_questions_that_exclude_each_other(flags: list[str], repository: Repository) -> None:
    outcome = lintfit("check", *flags, cwd=repository.folder, env=CLEAN)
    assert outcome.status == 2
    assert len(outcome.err.splitlines()) == 1


def test_comments_for_runs_that_are_left_out_are_of_use(repository: Repository) -> None:
    """A script that two launches share: what one of them needs is not told from the other alone."""
    both = f"# lintfit: ignore[gradient-checkpointing-off]\n{TRAIN}"
    repository.commit(
        two_py=both,
        a_sh=f"torchrun --nproc_per_node 2 two.py {FLAGS}\n",
        b_sh=f"torchrun --nproc_per_node 2 two.py {FLAGS} --gradient_checkpointing\n",
    )
    repository.write(b_sh=f"torchrun --nproc_per_node 1 two.py {FLAGS} --gradient_checkpointing\n")
    outcome = checked(repository, "--changed-since", "HEAD")
    assert runs(outcome) == ["b.sh:1"]
    assert "unused-ignore" not in [each["rule"] for each in outcome.json["findings"]]
