"""Parts of an earlier check: taken again where they hold still, so that a report is the one of a check made anew."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lintfit.cli import cache
from lintfit.commands.kept import store
from lintfit.documents.shell_reader import read_shell
from lintfit.report import REPORTERS
from lintfit.run import key_reads
from lintfit.run.build import build
from tests.cli.test_cache import FILES, checked, entries, project
from tests.support import ROOT

PROJECTS = ROOT / "tests" / "projects"
CASES = (
    *("accelerate-yaml-zero3", "deepspeed-json-read-by-script", "flags-in-arrays", "fsdp-by-yaml", "launch-makefile"),
    *("launch-sources-files", "launch-writes-configs", "llamafactory-recipe", "missing-config", "notebook-launches"),
    *("paths-from-the-root", "raw-deepspeed", "script-branches-and-helpers", "script-json-config", "trainer-dpo"),
    *("sections-read-by-code", "trl-command", "versions-by-lock", "yaml-needs-smaller-buckets"),
)
"""Of all dialects; what is slow or alike is left out."""
WORDS = (("true", "false"), ("False", "True"), ("bf16", "fp16"), ("stage", "stages"), ("Trainer", "Trainr"), ("e", ""))


PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=args).train()
"""


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path) -> Iterator[None]:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "LINTFIT_NO_CACHE": ""}
    with patch.dict(os.environ, environment), patch.object(cache, "FRESH", -1.0):
        yield


@pytest.fixture
def built() -> Iterator[list[str]]:
    """The paths of the runs that are read from their files."""
    found: list[str] = []

    def noted(origin: Any, *others: Any) -> Any:
        found.append(origin.path.as_posix())
        return build(origin, *others)

    with patch.object(store, "build", noted), patch("lintfit.commands.check.suppress", lambda *_: nullcontext()):
        yield found


def two_projects(folder: Path) -> Path:
    folder.mkdir()
    for name in ("one", "two"):
        project(folder / name)
    return folder


def append(file: Path, text: str = "\n# more\n") -> None:
    file.write_text(file.read_text() + text)


def test_an_edit_has_read_again_what_hangs_on_it(built: list[str], tmp_path: Path) -> None:
    folder = two_projects(tmp_path / "tree")
    flags = ("--gpu", "4090", "--gpus", "8")
    checked(".", *flags, cwd=folder)
    assert built == ["one/run.sh", "two/run.sh"]
    for edited, again in (("train.py", ["two/run.sh"]), ("helper.py", []), ("run.sh", ["two/run.sh"])):
        built.clear()
        append(folder / "two" / edited)
        found = checked(".", *flags, cwd=folder)
        assert built == again  # nothing asks for what the helper defines
        assert found == checked(".", *flags, "--no-cache", cwd=folder)
    built.clear()
    append(folder / "two" / "ds.json", " ")
    found = checked(".", *flags, cwd=folder)
    assert "one/run.sh" not in built
    assert found == checked(".", *flags, "--no-cache", cwd=folder)


def test_what_is_said_of_a_config_needs_no_launch_read_again(built: list[str], tmp_path: Path) -> None:
    """Whether code reads a key that no library knows hangs on all code; who reads the file, not."""
    folder = two_projects(tmp_path / "tree")
    (folder / "one" / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "no_such_key": 1}')
    flags = ("--gpu", "4090", "--gpus", "8")
    assert "no_such_key" in checked(".", *flags, cwd=folder).out
    built.clear()
    append(folder / "two" / "helper.py", "\nx = config['no_such_key']\n")
    found = checked(".", *flags, cwd=folder)
    assert built == []
    assert "no_such_key" not in found.out
    assert found == checked(".", *flags, "--no-cache", cwd=folder)


def test_which_code_opens_configs_is_asked_of_changed_files_alone(tmp_path: Path) -> None:
    folder = two_projects(tmp_path / "tree")
    (folder / "one" / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "no_such_key": 1}')
    names, opens = "LENGTH = data['no_such_key']\n", "import json\n\ndata = json.load(open(FILE))\n"
    for name in ("one", "two"):
        (folder / name / "helper.py").write_text(names)
    first = checked(".", "--output-format", "json", cwd=folder)
    asked: list[str] = []
    opens_configs = key_reads._opens

    def noted(text: str) -> str:
        asked.append(text)
        return opens_configs(text)

    with patch.object(key_reads, "_opens", noted):
        for text in (opens + names, names):
            (folder / "two" / "helper.py").write_text(text)
            found = checked(".", "--output-format", "json", cwd=folder)
            assert asked.pop() == text and not asked
            assert (found != first) == (text != names)
            assert found == checked(".", "--output-format", "json", "--no-cache", cwd=folder)
            asked.clear()


def test_a_launch_whose_script_writes_its_configs_is_kept(built: list[str], tmp_path: Path) -> None:
    """Two launches of one script, and two files that it writes: what is said of each stays with it."""
    folder = two_projects(tmp_path / "tree")
    written = [
        f'cat > {name} <<EOF\n{{"zero_optimization": {{"stage": 3}}, {key}}}\nEOF\n'
        for name, key in (
            ("a.json", '"fp16": {"enabled": true}, "bf16": {"enabled": true}'),
            ("b.json", '"wall_clock_breakdown": false'),
        )
    ]
    launches = [f"deepspeed --num_gpus 8 train.py --deepspeed {name}\n" for name in ("a.json", "b.json", "a.json")]
    (folder / "one" / "run.sh").write_text("".join((*written, *launches)))
    (folder / "one" / "train.py").write_text(PARSED)
    first = checked(".", "--output-format", "json", cwd=folder)
    rules = ("precision-block-conflict", "deepspeed-without-precision")
    assert all(rule in first.out for rule in rules)
    for edited in ("two/train.py", "one/run.sh", "two/train.py"):
        built.clear()
        append(folder / edited)
        found = checked(".", "--output-format", "json", cwd=folder)
        assert ("one/run.sh" in built) == (edited == "one/run.sh")
        assert found == checked(".", "--output-format", "json", "--no-cache", cwd=folder)


def test_what_is_said_of_an_optimizer_hangs_on_who_hands_over_another(tmp_path: Path) -> None:
    """Two scripts with one JSON, of which one changes; the other's answer is kept."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "run.sh").write_text("".join(f"deepspeed --num_gpus 8 {each}.py\n" for each in ("one", "two")))
    plain = (
        "import deepspeed, torch\nmodel = torch.nn.Linear(2, 2)\ndeepspeed.initialize(model=model, config='ds.json')\n"
    )
    handing = plain.replace("model=model,", "model=model, optimizer=torch.optim.Adam(model.parameters()),")
    (tree / "two.py").write_text(plain)
    for kind in ("Lamb", "AdamW"):
        (tree / "ds.json").write_text(f'{{"optimizer": {{"type": "{kind}"}}, "zero_optimization": {{"stage": 2}}}}')
        for text in (plain, handing, f"{handing}# more\n", plain):
            (tree / "one.py").write_text(text)
            found = checked(".", "--select", "zero-unsupported-optimizer", cwd=tree)
            assert ("Lamb with ZeRO" in found.out) == (kind == "Lamb" and text == plain)
            assert found == checked(".", "--select", "zero-unsupported-optimizer", "--no-cache", cwd=tree)


@pytest.mark.parametrize("name", ["new.py", "one/helper/__init__.py", "requirements.txt", "lintfit.toml"])
def test_a_new_file_has_everything_read_again(name: str, built: list[str], tmp_path: Path) -> None:
    folder = two_projects(tmp_path / "tree")
    checked(".", cwd=folder)
    built.clear()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(FILES.get(name, ("LENGTH = 2\n",))[0])
    assert checked(".", cwd=folder) == checked(".", "--no-cache", cwd=folder)
    assert {"one/run.sh", "two/run.sh"} <= {*built}


@pytest.mark.parametrize(
    "forge",
    [
        lambda parts: b"",
        lambda parts: parts[:100],
        lambda parts: json.dumps({**json.loads(parts), "paths": []}).encode(),
        lambda parts: json.dumps({**json.loads(parts), "parts": {"run": 1}}).encode(),
        lambda parts: parts.replace(b"lintfit.findings.model:Finding", b"lintfit.cli.main:lintfit"),
        lambda parts: re.sub(rb'"id":"[^"]*"', b'"id":[]', parts),
    ],
)
@pytest.mark.parametrize("signed", [True, False])
def test_broken_parts_are_none(forge: Callable[[bytes], bytes], signed: bool, tmp_path: Path) -> None:
    """Also where somebody has written the digest of what is broken into the entry."""
    from lintfit.documents import seen

    folder = two_projects(tmp_path / "tree")
    checked(".", cwd=folder)
    (entry,) = entries(tmp_path)
    parts = entry.with_suffix(".parts")
    broken = forge(parts.read_bytes())
    parts.write_bytes(broken)
    if signed:
        entry.write_text(json.dumps({**json.loads(entry.read_bytes()), "parts": seen.digest(broken)}))
    append(folder / "two" / "train.py")
    assert checked(".", cwd=folder) == checked(".", "--no-cache", cwd=folder)


def test_what_changes_again_while_it_is_checked_is_not_kept(tmp_path: Path) -> None:
    folder = two_projects(tmp_path / "tree")
    checked(".", cwd=folder)
    append(folder / "two" / "train.py")
    changed = cache.changed

    def late(*arguments: Any) -> Any:
        found = changed(*arguments)
        append(folder / "two" / "train.py", "\n# later\n")
        return found

    (entry,) = entries(tmp_path)
    before = entry.read_bytes()
    with patch.object(cache, "changed", late):
        checked(".", cwd=folder)
    assert entry.read_bytes() == before
    assert checked(".", cwd=folder) == checked(".", "--no-cache", cwd=folder)


def test_a_script_is_read_again_when_another_begins_to_start_it(built: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "train.py").write_text(FILES["train.py"][0].replace('"Qwen/Qwen2.5-7B"', "sys.argv[1]"))
    (folder / "run.sh").write_text("trl sft --model_name_or_path $1 --output_dir out --dataset_name a/b\n")
    (folder / "other.sh").write_text("echo nothing\n")
    (folder / "notes.py").write_text("1\n")
    flags = (".", "--gpu", "4090", "--output-format", "json")
    checked(*flags, cwd=folder)
    built.clear()
    append(folder / "notes.py")
    assert checked(*flags, cwd=folder) == checked(*flags, "--no-cache", cwd=folder)
    (folder / "other.sh").write_text("echo nothing more\n")
    assert checked(*flags, cwd=folder) == checked(*flags, "--no-cache", cwd=folder)
    assert "run.sh" not in built
    for model in ("google/gemma-2b", "Qwen/Qwen2.5-7B"):
        (folder / "other.sh").write_text(f"bash run.sh {model}\n")
        found = checked(*flags, cwd=folder)
        assert model in found.out
        assert found == checked(*flags, "--no-cache", cwd=folder)
    (folder / "other.sh").write_text("echo nothing\n")
    found = checked(*flags, cwd=folder)
    assert "Qwen2.5-7B" not in found.out
    assert found == checked(*flags, "--no-cache", cwd=folder)


@pytest.mark.parametrize("circular", [False, True])
def test_scripts_that_take_words_are_parsed_late_unless_they_may_start_each_other(
    circular: bool, built: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "run.sh").write_text(f"trl sft --model_name_or_path $1 --dataset_name a/b{' # all.sh' * circular}\n")
    (folder / "all.sh").write_text("trl sft --model_name_or_path $1 --dataset_name a/b\nbash run.sh gpt2\n")
    (folder / "notes.py").write_text("1\n")
    flags = (".", "--gpu", "4090", "--output-format", "json")
    checked(*flags, cwd=folder)
    built.clear()
    parsed: list[str] = []

    def noted(file: Any, *others: Any) -> Any:
        parsed.append(file.path.as_posix())
        return read_shell(file, *others)

    append(folder / "notes.py")
    with patch("lintfit.documents.shell_reader.read_shell", noted):
        found = checked(*flags, cwd=folder)
    assert not built
    assert bool(parsed) is circular
    assert found == checked(*flags, "--no-cache", cwd=folder)


def mutated(text: str, kind: int, where: random.Random) -> str:
    """A text with a small change."""
    lines = text.splitlines(keepends=True) or ["\n"]
    one, other = where.randrange(len(lines)), where.randrange(len(lines))
    numbers = [*re.finditer(r"\d+", text)]
    match kind:
        case 0:
            return f"{text}\n# more\n"
        case 1:
            del lines[one]
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case 3 if numbers:
            number = where.choice(numbers)
            return text[: number.start()] + where.choice(["1", "2", "8", "4096"]) + text[number.end() :]
        case 4:
            lines.insert(one, "# lintfit: ignore[does-not-fit, memory-unknown]\n")
        case _:
            found = [(old, new) for old, new in WORDS if old in text]
            return text.replace(*where.choice(found), 1) if found else text
    return "".join(lines)


def acted(folder: Path, act: int, where: random.Random) -> None:
    """Change one file of a folder, take it away, move it, or copy it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        return
    file = where.choice(files)
    if act < 6:
        file.write_text(mutated(file.read_text("utf-8", "replace"), act, where))
    elif act == 6:
        file.unlink()
    elif act == 7:
        file.replace(where.choice(files).parent / file.name)
    else:
        shutil.copy(file, file.with_name(f"copy_{file.name}"))


ACTS = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=3)
FLAGS = st.sampled_from(((), ("--gpu", "3090", "--gpus", "8"), ("--gpu", "A100-80GB"), ("--verbose",)))


@settings(max_examples=10, deadline=None, suppress_health_check=[*HealthCheck])
@given(
    st.lists(st.sampled_from(CASES), min_size=1, max_size=3, unique=True),
    ACTS,
    FLAGS,
    st.sampled_from(sorted(REPORTERS)),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_no_part_is_stale(
    cases: list[str], acts: list[int], flags: tuple[str, ...], form: str, mixed: bool, where: random.Random
) -> None:
    """Projects beside each other and in one folder, in every format: cached reports are those of ``--no-cache``."""
    top = Path(tempfile.mkdtemp())
    folder = top / "tree"
    command = (".", *flags, "--output-format", form)
    try:
        for case in cases:
            shutil.copytree(PROJECTS / case / "input", folder if mixed else folder / case, dirs_exist_ok=True)
        with patch.dict(os.environ, {"XDG_CACHE_HOME": str(top / "cache")}):
            for act in (None, *acts):
                if act is not None:
                    acted(folder, act, where)
                assert checked(*command, cwd=folder) == checked(*command, "--no-cache", cwd=folder)
    finally:
        shutil.rmtree(top)
