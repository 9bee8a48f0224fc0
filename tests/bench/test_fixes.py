"""Plans carried out on text, and launches held against the real parsers (bench/fixes.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.fixes import counted, kept, offered, place, recorded, taken, told
from bench.fixing import carry, commands
from bench.fixing.served import asked
from bench.fixing.trial import said_of
from lintfit.documents.files import read_text

LAUNCH = """#!/bin/bash
size=4
mkdir -p out
torchrun --nproc_per_node 2 train.py --per_device_train_batch_size $size \\
    --output_dir out --learning_rate 1e-5
"""
SCRIPT = """import no_such_package
from no_such_package.parts import Something
import transformers

class Own(Something):
    pass

parser = transformers.HfArgumentParser(transformers.TrainingArguments)
args, = parser.parse_args_into_dataclasses()
raise RuntimeError("not reached")
"""


def test_edits_are_carried_out_from_the_last_to_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("one two three\n", "utf-8")
    edits = [
        {"path": "a.sh", "start": 0, "end": 3, "text": "1"},
        {"path": "a.sh", "start": 8, "end": 13, "text": "3"},
        {"path": "new.json", "start": 0, "end": 0, "text": "{}\n"},
    ]
    changed = carry.carried_out(tmp_path, edits)
    assert changed == {"a.sh": ("one two three\n", "1 two 3\n"), "new.json": (None, "{}\n")}
    assert "--- /dev/null" in carry.unified(changed)
    carry.write(tmp_path, changed)
    assert (tmp_path / "new.json").exists()
    carry.take_back(tmp_path, changed)
    assert not (tmp_path / "new.json").exists()
    assert (tmp_path / "a.sh").read_text("utf-8") == "one two three\n"


@pytest.mark.parametrize("comment", ["# 等 \u2248".encode()[:-1], b"\xef\xbb\xbf# why"])
def test_places_are_those_of_the_text_as_lintfit_reads_it(comment: bytes, tmp_path: Path) -> None:
    """In a script that is no UTF-8, and behind a byte-order mark."""
    before = comment + b"\nbatch=8\n"
    (tmp_path / "a.sh").write_bytes(before)
    at = read_text(tmp_path / "a.sh").text.index("8\n")
    changed = carry.carried_out(tmp_path, [{"path": "a.sh", "start": at, "end": at + 1, "text": "2"}])
    carry.write(tmp_path, changed)
    assert (tmp_path / "a.sh").read_bytes() == before.replace(b"8\n", b"2\n")
    carry.take_back(tmp_path, changed)
    assert (tmp_path / "a.sh").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "before", "after", "lost"),
    [
        ("a.py", "x = 1  # why\n", "x = 2\n", ["# why"]),
        ("a.py", "x = 1  # why\n", "y = 0\nx = 2  # why\n", []),
        ("a.sh", "# twice\n# twice\n", "# twice\n", ["# twice"]),
        ("a.json", '{\n// here\n"a": 1}\n', '{"a": 1}\n', ["// here"]),
    ],
)
def test_comments_that_are_gone_are_named(name: str, before: str, after: str, lost: list[str]) -> None:
    assert carry.lost_comments({name: (before, after)}) == lost


def test_a_copy_has_no_history_and_no_large_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / ".git").mkdir(parents=True)
    (source / "train.py").write_text("pass\n", "utf-8")
    (source / "data.json").write_text("x" * (carry.LARGE + 1), "utf-8")
    carry.copied(source, tmp_path / "copy")
    assert [each.name for each in (tmp_path / "copy").iterdir()] == ["train.py"]


def test_what_a_shell_script_starts_is_written_down_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(LAUNCH, "utf-8")
    commands.shims(tmp_path / "bin", sys.executable, tmp_path / "log")
    (found,) = commands.started(tmp_path / "run.sh", tmp_path, tmp_path / "bin", tmp_path / "log")
    assert found["argv"][:6] == ["torchrun", "--nproc_per_node", "2", "train.py", "--per_device_train_batch_size", "4"]
    assert not (tmp_path / "out").exists()


def test_a_script_that_bash_refuses_does_not_parse(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("if true; then\n", "utf-8")
    assert said_of(sys.executable, tmp_path, "run.sh", 0, 1, tmp_path)["stage"] == "bash -n"


def test_the_batch_of_a_step_is_compared_where_both_sides_say_it() -> None:
    def said(micro: int | None, steps: int) -> dict[str, object]:
        return {"values": {"per_device_train_batch_size": micro, "gradient_accumulation_steps": steps}}

    assert kept(said(4, 1), said(1, 4)) is True
    assert kept(said(4, 1), said(1, 2)) is False
    assert kept(said(None, 1), said(1, 2)) is None


def test_a_parsed_launch_is_held_against_its_plan() -> None:
    steps = [{"setting": "micro_batch_size", "to": 2}, {"setting": "zero_stage", "to": 3}, {"setting": "loss", "to": 1}]
    said = {"values": {"per_device_train_batch_size": 2}}
    assert taken(steps, said) is True
    assert taken(steps, {**said, "zero_stage": 2}) is False
    assert taken(steps[2:], said) is None


def test_a_run_without_a_plan_is_told_and_counted() -> None:
    report = {"runs": [{"id": "a.sh:1", "plan": None, "verdict": "does-not-fit"}], "findings": []}
    plan, fix, verdict = offered(report, place(report, "a.sh:1"))
    assert (plan, fix, verdict) == (None, None, "does-not-fit")
    assert offered(report, place(report, "b.sh:1")) == (None, None, "no such run")
    found = {"repo": "o/n", "launch": "a.sh:1", "gpu": "t4", "gpus": 2, "verdict": verdict, "lost": []}
    found |= {"offered": False, "written": False}
    assert told(found) == "## o/n a.sh:1 · 2 x t4\n\ndoes-not-fit, no plan.\n"
    assert counted([found])["runs that do not fit"] == 1


def test_a_record_counts_recipes_apart_and_holds_no_text_of_a_repository() -> None:
    found = {"repo": "o/n", "launch": "a.sh:1", "gpu": "t4", "gpus": 2, "verdict": "does-not-fit", "lost": ["# why"]}
    found |= {"offered": True, "written": True, "diff": "-# why", "before": {"parsed": True}, "after": {"parsed": True}}
    recipe = {**found, "launch": "a.yaml", "before": {"parsed": False, "stage": "no parser"}, "after": None, "lost": []}
    made = recorded([found, recipe])
    assert (made["sums"]["shell scripts"]["parsed after"], made["sums"]["recipes"]["parsed after"]) == (1, 0)
    assert (made["sums"]["all"]["launches"], made["sums"]["all"]["comments lost"]) == (2, 1)
    assert made["rows"][1]["not parsed at"] == "no parser"
    assert "# why" not in str(made)


def test_a_recipe_has_no_parser(tmp_path: Path) -> None:
    assert said_of(sys.executable, tmp_path, "a.yaml", 0, 1, tmp_path) == {"parsed": False, "stage": "no parser"}


def test_what_a_script_leaves_to_who_starts_it_has_a_value() -> None:
    text = "A=1\ntrain $A $B ${C:-2} ${D}\n[ -z $E ] && exit 1\nrun $E $1 ${2}\n"
    assert commands.left_open(text) == {"B": "1", "D": "1"}
    assert commands.positions(text) == 2
    assert commands.positions("model=${1:-small}; run $2") == 0
    assert commands.positions("while [ $1 ]; do shift; done") == 0


def test_a_runner_is_looked_through_and_a_log_folder_is_there(tmp_path: Path) -> None:
    text = (
        "uv run accelerate launch train.py --a $1 > logs/a.log\nuv sync\nx=$(python -c 'torch.cuda.device_count()')\n"
    )
    (tmp_path / "run.sh").write_text(f"{text}torchrun --nproc_per_node $x train.py &\n", "utf-8")
    commands.shims(tmp_path / "bin", sys.executable, tmp_path / "log")
    first, second = commands.started(tmp_path / "run.sh", tmp_path, tmp_path / "bin", tmp_path / "log")
    assert first["argv"] == ["accelerate", "launch", "train.py", "--a", "1"]
    assert second["argv"][:3] == ["torchrun", "--nproc_per_node", "8"]


def test_a_probe_forks_for_each_question_and_ends_what_takes_too_long(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    folder = str(Path(commands.__file__).parent)
    body = "print('noise', file=sys.stderr), time.sleep(asked['wait']), print('said', asked['wait'], flush=True)"
    probe.write_text(
        f"import sys, time\nsys.path.insert(0, {folder!r})\nimport parse_probe\n"
        f"parse_probe.serve(lambda asked: ({body}), ('no_such_module',))\n",
        "utf-8",
    )
    lines, in_time = asked(sys.executable, probe, {"wait": 0}, 20)
    assert in_time
    assert {"noise", "said 0"} <= set(lines)
    assert asked(sys.executable, probe, {"wait": 30}, 0.3)[1] is False
    assert "said 0" in asked(sys.executable, probe, {"wait": 0}, 20)[0]


@pytest.mark.peers
@pytest.mark.slow
def test_the_scripts_own_parser_says_what_a_changed_launch_comes_to(tmp_path: Path) -> None:
    for name in ("torch", "transformers", "accelerate"):
        pytest.importorskip(name)
    (tmp_path / "run.sh").write_text(LAUNCH, "utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, "utf-8")
    said = said_of(sys.executable, tmp_path, "run.sh", 0, 2, tmp_path)
    assert said["parsed"], said
    assert said["values"]["per_device_train_batch_size"] == 4
    (tmp_path / "run.sh").write_text(LAUNCH.replace("--output_dir", "--no_such_flag 1 --output_dir"), "utf-8")
    refused = said_of(sys.executable, tmp_path, "run.sh", 0, 2, tmp_path)
    assert not refused["parsed"]
    assert refused["stage"] == "script"
