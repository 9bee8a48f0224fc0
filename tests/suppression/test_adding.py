"""``--add-ignores``: comments for what is left, and nothing else changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lintfit.options.config import load_config
from tests.support import SHARED, Outcome, lintfit

CORPUS = SHARED / "corpus" / "accelerate"

YAML = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_processes: 2
num_processes: 8   # eight
"""
TRIPLE = '{{\n  {}"train_micro_batch_size_per_gpu": 2,\n  "zero_optimization": {{"stage": 2}},\n  "stage": 1\n}}\n'


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_config.cache_clear()
    monkeypatch.chdir(tmp_path)


def check(*arguments: str, stdin: bytes | None = None) -> Outcome:
    return lintfit("check", *arguments, "--output-format", "concise", cwd=Path.cwd(), stdin=stdin)


def write(name: str, text: str) -> Path:
    file = Path(name)
    file.write_bytes(text.encode())
    return file


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_comment_above_the_line_and_nothing_else(newline: str) -> None:
    before = YAML.replace("\n", newline)
    file = write("a.yaml", before)
    outcome = check("a.yaml", "--add-ignores=as the wiki says")
    assert outcome.status == 0, outcome
    comment = f"# lintfit: ignore[duplicate-key] as the wiki says{newline}"
    at = before.index("num_processes: 8")
    assert file.read_bytes().decode() == before[:at] + comment + before[at:]
    assert "new comments in 1 file silence 1 finding" in outcome.out
    assert "Not shown: 1 warning ignored by a comment (duplicate-key)." in outcome.out
    assert check("a.yaml").status == 0
    assert check("a.yaml", "--no-ignores").status == 1


def test_a_second_time_changes_nothing() -> None:
    file = write("a.yaml", YAML)
    check("a.yaml", "--add-ignores")
    once = file.read_text()
    assert once != YAML
    assert check("a.yaml", "--add-ignores").status == 0
    assert file.read_text() == once


def test_the_path_behind_the_flag_is_no_reason() -> None:
    file = write("a.yaml", YAML)
    assert check("--add-ignores", "a.yaml").status == 0
    assert "ignore[duplicate-key]\n" in file.read_text()


def test_a_comment_that_is_there_gets_the_rule_too() -> None:
    file = write("a.yaml", YAML.replace("num_processes: 8", "# lintfit: ignore[unused-ignore] why\nnum_processes: 8"))
    assert check("a.yaml", "--add-ignores").status == 0
    assert "# lintfit: ignore[unused-ignore, duplicate-key] why\nnum_processes: 8" in file.read_text()


def test_strict_json_is_left_alone_and_told_of() -> None:
    text = TRIPLE.format("")
    file = write("ds.json", text)
    outcome = check("ds.json", "--add-ignores")
    assert outcome.status == 1
    assert file.read_text() == text
    assert (
        "ds.json: strict JSON has no comments: 1 finding left; to silence that write into lintfit.toml: "
        '[per-file-ignores] "/ds.json" = ["unknown-top-level-key"]'
    ) in outcome.out
    write("lintfit.toml", '[per-file-ignores]\n"/ds.json" = ["unknown-top-level-key"]\n')
    assert check("ds.json").status == 0


def test_json_with_comments_gets_one_of_its_kind() -> None:
    file = write("ds.json", TRIPLE.format("# pairs\n  "))
    check("ds.json", "--ignore", "invalid-json", "--add-ignores")
    assert '  # lintfit: ignore[unknown-top-level-key]\n  "stage": 1\n' in file.read_text()
    file.write_text(TRIPLE.format("// pairs\n  "))
    check("ds.json", "--ignore", "invalid-json", "--add-ignores")
    assert '  // lintfit: ignore[unknown-top-level-key]\n  "stage": 1\n' in file.read_text()


def test_a_finding_about_comments_is_silenced_by_one() -> None:
    file = write("ds.json", '{\n  "stage": 3,\n  "zero_optimization": {"stage": 2} // two\n}\n')
    assert "invalid-json" in check("ds.json").out
    assert check("ds.json", "--add-ignores").status == 0
    assert check("ds.json").status == 0
    assert file.read_text() == (
        '{\n  // lintfit: ignore[unknown-top-level-key]\n  "stage": 3,\n'
        '  // lintfit: file-ignore[invalid-json]\n  "zero_optimization": {"stage": 2} // two\n}\n'
    )


def test_the_table_of_a_pyproject() -> None:
    write("pyproject.toml", "[tool.lintfit]\ngpus = 2\n")
    Path("conf").mkdir()
    write("conf/ds.json", TRIPLE.format(""))
    outcome = check("conf/ds.json", "--add-ignores")
    wanted = 'write into pyproject.toml: [tool.lintfit.per-file-ignores] "conf/ds.json" = ["unknown-top-level-key"]'
    assert wanted in outcome.out


def test_a_diff_writes_nothing_and_fixes_nothing() -> None:
    file = write("a.yaml", YAML)
    outcome = check("a.yaml", "--add-ignores", "--diff")
    assert file.read_text() == YAML
    assert outcome.out.count("\n+") == 2  # the header's and one comment
    assert "+# lintfit: ignore[duplicate-key]\n" in outcome.out
    assert "would silence 1 finding" in outcome.err


def test_standard_input_comes_back_with_comments() -> None:
    outcome = check("-", "--stdin-filename", "a.yaml", "--add-ignores", stdin=YAML.encode())
    assert "# lintfit: ignore[duplicate-key]\nnum_processes: 8" in outcome.out


def test_only_what_fails_is_silenced() -> None:
    file = write("a.yaml", YAML.replace("8", "4"))
    outcome = check("a.yaml", "--add-ignores", "--fail-on", "error")
    assert "warning duplicate-key" in outcome.out
    assert "ignore" not in file.read_text()
    check("a.yaml", "--add-ignores")
    assert "ignore[duplicate-key]" in file.read_text()


SCRIPT = """\
#!/usr/bin/env python
import deepspeed
from transformers import AutoModelForCausalLM

def main():
    model = AutoModelForCausalLM.from_pretrained(
        "Qwen/Qwen2.5-7B",
        gradient_checkpointing=True,
    )
    engine, *_ = deepspeed.initialize(model=model, config="ds.json")
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
"""


def test_a_script_gets_it_above_the_statement() -> None:
    write("ds.json", '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}')
    file = write("train.py", SCRIPT)
    assert "removed-argument" in check("train.py", "--select", "removed-argument").out
    assert check("train.py", "--select", "removed-argument", "--add-ignores=tracked").status == 0
    model = "    model = AutoModel"
    assert file.read_text() == SCRIPT.replace(model, f"    # lintfit: ignore[removed-argument] tracked\n{model}")
    Path("train.py").write_text(SCRIPT)
    assert check("train.py", "--select", "removed-argument", "--add-ignores=two\nlines").status == 2


def test_a_launch_gets_it_above_the_command() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0,1\naccelerate launch \\\n    --num_processes 4 \\\n    train.py\n"
    file = write("run.sh", text)
    rule = "processes-exceed-visible-gpus"
    assert rule in check("run.sh", "--select", rule).out
    assert check("run.sh", "--select", rule, "--add-ignores").status == 0
    assert file.read_text() == text.replace("accelerate", f"# lintfit: ignore[{rule}]\naccelerate")


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not at hand")
def test_real_files_only_gain_lines_and_have_nothing_left(tmp_path: Path) -> None:
    for file in sorted(CORPUS.glob("*.yaml")):
        shutil.copy(file, tmp_path)
    before = {file.name: file.read_bytes().splitlines(keepends=True) for file in tmp_path.iterdir()}
    assert check(".", "--isolated").status == 1
    assert check(".", "--isolated", "--add-ignores").status == 0
    changed = 0
    for name, lines in before.items():
        after = (tmp_path / name).read_bytes().splitlines(keepends=True)
        added = [line for line in after if b"lintfit: ignore[" in line]
        assert [line for line in after if line not in added] == lines
        changed += bool(added)
    assert changed >= 2
    again = check(".", "--isolated")
    assert again.status == 0
    assert "unused-ignore" not in again.out
