"""Arguments that are added stay within the width of the file, laid out as its other lines are."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
from itertools import product
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.documents.edits import apply
from lintfit.documents.files import read_text
from lintfit.documents.python_edits import add_arguments, add_entry
from lintfit.documents.python_reader import read_python
from lintfit.documents.widths import python_width, shown_width
from tests.documents.test_python import call, nodes

LONG = 'attn_implementation="flash_attention_2"'


def added(folder: Path, text: str, *texts: str, width: int = 88) -> str:
    (folder / "pyproject.toml").write_text(f"[tool.black]\nline-length = {width}\n")
    path = folder / "train.py"
    path.write_bytes(text.encode())
    document = read_python(read_text(path))
    return apply(text, add_arguments(document, call(document), *(texts or (LONG,))))


CASES = {
    "room on the line": ("m = f(a, b)\n", f"m = f(a, b, {LONG})\n"),
    "all on the next line": (
        'm = load("Qwen/Qwen2-7B", torch_dtype=torch.float16)\n',
        f'm = load(\n    "Qwen/Qwen2-7B", torch_dtype=torch.float16, {LONG}\n)\n',
    ),
    "one a line where they are too many": (
        'm = load("Qwen/Qwen2.5-7B-Instruct", torch_dtype=torch.bfloat16, cache_dir=args)\n',
        'm = load(\n    "Qwen/Qwen2.5-7B-Instruct",\n    torch_dtype=torch.bfloat16,\n    cache_dir=args,\n'
        f"    {LONG},\n)\n",
    ),
    "one a line where a comma ends them": (
        "m = load(model_name_or_path, dtype=torch.bfloat16, cache_dir=cache,)\n",
        f"m = load(\n    model_name_or_path,\n    dtype=torch.bfloat16,\n    cache_dir=cache,\n    {LONG},\n)\n",
    ),
    "a line between the brackets": (
        "m = load(\n    model_name_or_path, dtype=torch.bfloat16, cache_dir=cache_dir\n)\n",
        f"m = load(\n    model_name_or_path,\n    dtype=torch.bfloat16,\n    cache_dir=cache_dir,\n    {LONG},\n)\n",
    ),
    "a bracket that hugs": (
        "m = load(\n    model_name_or_path, dtype=torch.bfloat16, cache_dir=cache_dir)\n",
        f"m = load(\n    model_name_or_path,\n    dtype=torch.bfloat16,\n    cache_dir=cache_dir,\n    {LONG})\n",
    ),
    "a comment that stays in its column": (
        "m = f(\n    a=1,   # one\n    b=2    # two\n)\n",
        f"m = f(\n    a=1,   # one\n    b=2,   # two\n    {LONG}\n)\n",
    ),
    "a comment without room": (
        "m = f(\n    a=1,\n    b=2  # two\n)\n",
        f"m = f(\n    a=1,\n    b=2,  # two\n    {LONG}\n)\n",
    ),
    "filled lines": (
        "m = load(model_name_or_path,\n         dtype=torch.bfloat16, cache_dir=cache, revision=revisions)\n",
        "m = load(model_name_or_path,\n         dtype=torch.bfloat16, cache_dir=cache, revision=revisions,\n"
        f"         {LONG})\n",
    ),
    "keywords stay last": (
        "if x:\n    m = load(model_name_or_path, dtype=dtype, cache=cache, **more)\n",
        "if x:\n    m = load(\n        model_name_or_path,\n        dtype=dtype,\n        cache=cache,\n"
        f"        {LONG},\n        **more,\n    )\n",
    ),
    "a line that is too long already": (
        f'm = load("{"x" * 90}", a)\n',
        f'm = load("{"x" * 90}", a, {LONG})\n',
    ),
    "a comment keeps them together": (
        "m = load(model_name_or_path, dtype=torch.bfloat16, cache=cache,  # a remark\n**more)\n",
        f"m = load(model_name_or_path, dtype=torch.bfloat16, cache=cache, {LONG},  # a remark\n**more)\n",
    ),
    "tabs and carriage returns": (
        'if x:\r\n\tm = load("Qwen/Qwen2-7B", torch_dtype=torch.float16)\r\n',
        f'if x:\r\n\tm = load(\r\n\t\t"Qwen/Qwen2-7B", torch_dtype=torch.float16, {LONG}\r\n\t)\r\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_call_is_laid_out_as_its_file(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    assert added(tmp_path, text) == expected


def test_the_call_around_is_parted_first(tmp_path: Path) -> None:
    text = 'fabric = Fabric(strategy=Strategy(stage=3), accelerator="cuda", devices=8, precision="bf16")\n'
    path = tmp_path / "train.py"
    path.write_text(text)
    (tmp_path / "ruff.toml").write_text("line-length = 92\n")
    document = read_python(read_text(path))
    inner = nodes(document, cst.Call)[1]
    assert isinstance(inner, cst.Call)
    result = apply(text, add_arguments(document, inner, "offload_optimizer=True"))
    assert result == (
        'fabric = Fabric(\n    strategy=Strategy(stage=3, offload_optimizer=True),\n    accelerator="cuda",\n'
        '    devices=8,\n    precision="bf16",\n)\n'
    )


def test_calls_within_calls_are_parted_from_without(tmp_path: Path) -> None:
    text = 'if x:\n    Trainer(model=m, args=Arguments("out", bf16=True, per_device_train_batch_size=micro)).train()\n'
    path = tmp_path / "train.py"
    path.write_text(text)
    (tmp_path / "ruff.toml").write_text("line-length = 100\n")
    document = read_python(read_text(path))
    inner = nodes(document, cst.Call)[2]
    assert isinstance(inner, cst.Call)
    result = apply(text, add_arguments(document, inner, "gradient_accumulation_steps=8"))
    assert result == (
        "if x:\n    Trainer(\n        model=m,\n        args=Arguments(\n"
        '            "out", bf16=True, per_device_train_batch_size=micro, gradient_accumulation_steps=8\n'
        "        ),\n    ).train()\n"
    )


def test_a_long_argument_is_broken_between_its_brackets(tmp_path: Path) -> None:
    config = 'peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")'
    text = "t = SFTTrainer(\n    model=model,\n    args=args,\n)\n"
    expected = (
        "t = SFTTrainer(\n    model=model,\n    args=args,\n    peft_config=LoraConfig(\n"
        '        r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"\n    ),\n)\n'
    )
    assert added(tmp_path, text, config) == expected
    assert f"    {config},\n" in added(tmp_path, text, config, width=120)


def test_an_entry_of_a_dict_is_laid_out_alike(tmp_path: Path) -> None:
    text = 'config = {"stage": 3, "overlap_comm": True, "contiguous_gradients": True}\n'
    path = tmp_path / "train.py"
    path.write_text(text)
    (tmp_path / "ruff.toml").write_text("line-length = 80\n")
    document = read_python(read_text(path))
    (found,) = nodes(document, cst.Dict)
    assert isinstance(found, cst.Dict)
    result = apply(text, add_entry(document, found, '"offload_optimizer"', '{"device": "cpu"}'))
    assert result.splitlines()[1:3] == ['    "stage": 3,', '    "overlap_comm": True,']
    assert ast.literal_eval(result.partition("= ")[2])["offload_optimizer"] == {"device": "cpu"}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n", 100),
        ("pyproject.toml", "[tool.black]\nline-length = 79\n", 79),
        ("pyproject.toml", "[tool.black]\n", 88),
        ("pyproject.toml", "[project]\nname = 'x'\n", 110),
        ("pyproject.toml", "[tool.ruff\n", 110),
        ("ruff.toml", "line-length = 140\n", 140),
        (".ruff.toml", "line-length = 'wide'\n", 88),
    ],
)
def test_the_width_is_what_the_formatter_says_else_what_the_file_shows(
    name: str, content: str, expected: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / "src").mkdir()
    assert python_width(tmp_path / "src" / "train.py", "x" * 110) == expected


def test_a_file_shows_no_more_than_a_screen() -> None:
    assert [shown_width("x" * length) for length in (0, 60, 88, 100, 500)] == [88, 88, 88, 100, 120]


ARGUMENTS = ("model", "args", "dtype=torch.bfloat16", 'path="Qwen/Qwen2.5-7B"', "use_cache=False", "**more")


@given(
    st.lists(st.sampled_from(ARGUMENTS), min_size=1, unique=True).map(lambda found: sorted(found, key=ARGUMENTS.index)),
    st.integers(1, 3),
    st.integers(60, 100),
)
def test_what_is_added_changes_nothing_else(arguments: list[str], count: int, width: int) -> None:
    text = f"trainer = build_the_trainer({', '.join(arguments)})\n"
    new = [f"argument_number_{number}={number * 1000}" for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        result = added(Path(folder), text, *new, width=width)
    before, after = (ast.parse(each).body[0].value for each in (text, result))  # type: ignore[attr-defined]
    assert [ast.unparse(argument) for argument in before.args] == [ast.unparse(argument) for argument in after.args]
    stated = {keyword.arg: ast.unparse(keyword.value) for keyword in before.keywords}
    stated |= dict(each.split("=") for each in new)
    assert {keyword.arg: ast.unparse(keyword.value) for keyword in after.keywords} == stated
    assert max(map(len, result.splitlines())) <= width or len(text) > width


@pytest.mark.skipif(shutil.which("ruff") is None, reason="compares with ruff's formatter")
def test_what_is_added_to_a_formatted_call_is_formatted(tmp_path: Path) -> None:
    ours, naive = [], []
    for size, count, width in product(range(1, len(ARGUMENTS) + 1), (1, 2, 3), (60, 88)):
        new = [f"argument_number_{number}={number * 1000}" for number in range(count)]
        call_of = "trainer = build_the_trainer({})\n".format
        given_, kept = ARGUMENTS[:size], [name for name in ARGUMENTS[:size] if name != "**more"]
        (tmp_path / "ruff.toml").write_text(f"line-length = {width}\n")
        text = _formatted(tmp_path, call_of(", ".join(given_)))
        ours.append(added(tmp_path, text, *new, width=width))
        rest = given_[len(kept) :]
        naive.append(_formatted(tmp_path, call_of(", ".join([*kept, *new, *rest]))))
    assert ours == naive


def _formatted(folder: Path, text: str) -> str:
    command = ["ruff", "format", "--quiet", "--stdin-filename", str(folder / "train.py"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
