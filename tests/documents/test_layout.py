"""What is added to a launch line, a JSON or a YAML file stays within the width that the file shows."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lintfit.documents.data_edits import set_value
from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_edits import add_before, set_flag
from lintfit.documents.shell_reader import read_shell
from lintfit.documents.yaml_reader import read_yaml

LINE = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True"
FLAG = ("--gradient_checkpointing", "True")


def read(text: str, path: str = "run.sh") -> ShellDocument:
    return read_shell(FileText(Path(path), text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torchrun train.py\n", "torchrun train.py --gradient_checkpointing True\n"),
        (f"{LINE}\n", f"{LINE} \\\n    --gradient_checkpointing True\n"),
        (f"{{\n  {LINE} > log\n}}\n", f"{{\n  {LINE} \\\n      --gradient_checkpointing True > log\n}}\n"),
        (f"{LINE}  # all\n", f"{LINE} \\\n    --gradient_checkpointing True  # all\n"),
        (f"{LINE} {'x' * 60}\n", f"{LINE} {'x' * 60} --gradient_checkpointing True\n"),
        (f"cd x && {LINE}\n", f"cd x && {LINE} --gradient_checkpointing True\n"),
        (f"tar \\\n  --x y\n{LINE}\n", f"tar \\\n  --x y\n{LINE} \\\n  --gradient_checkpointing True\n"),
        (f"{LINE} \\\n  --lr 1 \t\n", f"{LINE} \\\n  --lr 1 \\\n  --gradient_checkpointing True\n"),
        (f"{LINE} \\\n  --lr 1  # x\n", f"{LINE} \\\n  --lr 1 \\\n  --gradient_checkpointing True  # x\n"),
        (f"{LINE} \\\n  --lr 1\n", f"{LINE} \\\n  --lr 1 \\\n  --gradient_checkpointing True\n"),
    ],
)  # fmt: skip
def test_a_command_goes_on_in_the_next_line_where_it_has_no_room(before: str, after: str) -> None:
    document = read(before)
    assert apply(before, set_flag(document, document.commands[-1], *FLAG)) == after


@pytest.mark.parametrize("blanks", [(1, 9, 6), (1, 1, 1)])
def test_values_below_one_another_stay_there(blanks: tuple[int, int, int]) -> None:
    lines = [f"  {flag}{' ' * count}{value}" for (flag, value), count in zip(STATED, blanks, strict=True)]
    text = " \\\n".join(["python train.py", *lines]) + "\n"
    document = read(text)
    added = apply(text, set_flag(document, document.commands[0], "--seed", "7"))
    gap = " " * (len(STATED[0][0]) - len("--seed") + 1) if blanks[1] > 1 else " "
    assert added == f"{text[:-1]} \\\n  --seed{gap}7\n"


STATED = (("--learning_rate_of_all", "5e-5"), ("--output_dir_x", "out"), ("--num_train_epoch", "3"))


@pytest.mark.parametrize("rest", ['"$@"', "$@", '"${@:2}"', "$*"])
def test_arguments_that_are_passed_on_have_the_last_say(rest: str) -> None:
    text = f"python train.py \\\n  --bf16 True \\\n  {rest}\n"
    document = read(text)
    added = apply(text, set_flag(document, document.commands[0], *FLAG))
    assert added == text.replace(f"  {rest}", f"  --gradient_checkpointing True \\\n  {rest}")
    one = f"python train.py --bf16 True {rest}\n"
    document = read(one)
    added = apply(one, set_flag(document, document.commands[0], *FLAG))
    assert added == one.replace(f" {rest}", f" --gradient_checkpointing True {rest}")


def test_a_step_of_a_workflow_stays_on_its_line() -> None:
    text = f"jobs:\n  a:\n    steps:\n      - run: >\n          {LINE}\n"
    document = read(text, ".github/workflows/train.yml")
    assert (
        apply(text, set_flag(document, document.commands[0], *FLAG)) == text[:-1] + " --gradient_checkpointing True\n"
    )


def test_a_recipe_of_make_goes_on_as_a_recipe() -> None:
    text = f"train:\n\t{LINE}\n"
    document = read(text, "Makefile")
    result = apply(text, set_flag(document, document.commands[0], *FLAG))
    assert result == f"train:\n\t{LINE} \\\n\t    --gradient_checkpointing True\n"


def test_an_option_in_front_of_a_script_has_its_line_where_the_others_have() -> None:
    text = "torchrun \\\n    --standalone \\\n    train.py \\\n    --lr 1\n"
    document = read(text)
    edit = add_before(document, document.commands[0].words[2], "--nproc_per_node 8")
    assert apply(text, [edit]) == text.replace("    train.py", "    --nproc_per_node 8 \\\n    train.py")
    one = read("torchrun train.py\n")
    edit = add_before(one, one.commands[0].words[1], "--nproc_per_node 8")
    assert apply(one.text, [edit]) == "torchrun --nproc_per_node 8 train.py\n"


words = st.lists(st.sampled_from(["--lr=1e-5", "--name 'a b'", "--bf16 True", "$X", '"$Y"', "--x"]), max_size=9)


@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash")
@given(words, st.sampled_from(["", " > /dev/null", " # done", " | cat"]), st.booleans())
def test_bash_sees_the_words_that_were_there_and_the_new_flag(flags: list[str], end: str, indented: bool) -> None:
    line = f"{'  ' if indented else ''}show python train.py {' '.join(flags)}{end}\n"
    document = read(line)
    edits = set_flag(document, document.commands[0], "--gradient_checkpointing_kwargs_of_a_long_name", "8")
    lead = "X=1; Y='2 3'; show() { printf '%s\\n' \"$@\" >&2; }\n"
    before, after = (_words(lead + text) for text in (line, apply(line, edits)))
    flag = "--gradient_checkpointing_kwargs_of_a_long_name"
    assert after in ([*before, flag, "8"], [*before, f"{flag}=8"]), "as the command's other flags are written"
    # The continuation of a line that is all but full has no better place than behind it.
    rows = [row.removesuffix(" \\") for row in apply(line, edits).splitlines()]
    assert max(map(len, rows)) <= 88 or len(line) > 88


def _words(script: str) -> list[str]:
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_an_object_on_one_line_is_parted_where_it_has_no_room() -> None:
    text = (
        '{\n    "bf16": {"enabled": true},\n'
        '    "zero_optimization": {"stage": 2, "overlap_comm": true, "contiguous_gradients": true}\n}\n'
    )
    document = read_json(FileText(Path("ds.json"), text))
    result = apply(text, set_value(document, ("zero_optimization", "offload_optimizer"), {"device": "cpu"}))
    assert result.splitlines()[2:] == [
        '    "zero_optimization": {',
        '        "stage": 2,',
        '        "overlap_comm": true,',
        '        "contiguous_gradients": true,',
        '        "offload_optimizer": {"device": "cpu"}',
        "    }",
        "}",
    ]
    short = apply(text, set_value(document, ("bf16", "auto_cast"), True))
    assert '{"enabled": true, "auto_cast": true},\n' in short


def test_a_file_on_one_line_stays_on_one_line() -> None:
    text = json.dumps({"zero_optimization": {"stage": 2, "overlap_comm": True, "contiguous_gradients": True}})
    document = read_json(FileText(Path("ds.json"), text))
    assert "\n" not in apply(text, set_value(document, ("zero_optimization", "reduce_bucket_size"), 5e8))


def test_a_list_that_is_too_long_for_a_line_has_one_item_a_line() -> None:
    text = '{\n  "a": 1\n}\n'
    document = read_json(FileText(Path("a.json"), text))
    names = [f"model.layers.{number}.self_attn.q_proj" for number in range(4)]
    result = apply(text, set_value(document, ("lora_target_modules",), names))
    assert json.loads(result)["lora_target_modules"] == names
    assert max(map(len, result.splitlines())) < 50
    assert '"x": ["a", "b"]' in apply(text, set_value(document, ("x",), ["a", "b"]))


@pytest.mark.parametrize("opening", ["zero: {stage: 2, ", "- [stage, "])
def test_a_flow_collection_goes_on_in_the_next_line(opening: str) -> None:
    mapping = "{" in opening
    long = ", ".join(f"{name}{': 1' if mapping else ''}" for name in ("contiguous_gradients", "overlap_communication"))
    text = f"{opening}{long}{'}' if mapping else ']'}  # as it was\n"
    document = read_yaml(FileText(Path("a.yaml"), text))
    path = ("zero", "offload_optimizer_device") if mapping else (0, 3)
    result = apply(text, set_value(document, path, "offload_optimizer_cpu"))
    assert max(map(len, result.splitlines())) <= 88
    assert result.count("\n") == 2
    before, after = yaml.safe_load(text), yaml.safe_load(result)
    if mapping:
        assert after["zero"] == {**before["zero"], "offload_optimizer_device": "offload_optimizer_cpu"}
    else:
        assert after[0] == [*before[0], "offload_optimizer_cpu"]
