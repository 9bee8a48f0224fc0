"""Commands in the fenced blocks of a page, in docstrings and in leading comments, at their places in the real file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.markdown import blocks, shown_files, starts_something, under_one_heading
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_edits import set_flag
from lintfit.documents.shell_reader import read_shell


def page(text: str, name: str = "README.md") -> ShellDocument:
    return read_shell(FileText(Path(name), text))


def commands(document: ShellDocument) -> list[list[str]]:
    return [[word.text for word in command.words] for command in document.commands]


@pytest.mark.parametrize(
    "language", ["bash", "sh", "shell", "console", "", "python", "commandline", "{.bash}", "Bash title='x'"]
)
def test_a_block_of_commands(language: str) -> None:
    text = f"# A\n\n```{language}\ntorchrun --nproc_per_node 2 \\\n  train.py --lr 1e-5\n```\n"
    document = page(text)
    assert commands(document) == [["torchrun", "--nproc_per_node", "2", "train.py", "--lr", "1e-5"]]
    assert document.position(document.commands[0].span.start).line == 4


def test_what_is_no_block_of_commands_is_none() -> None:
    assert (
        commands(page("python train.py --lr 1\n\n```json\npython train.py\n```\n\n`python train.py --do_train`\n"))
        == []
    )


def test_prose_in_a_block_without_a_language_is_no_command() -> None:
    text = "```\nTrain it so:\nexport A=1\npython train.py --a $A\nLoss 0.1 in 3 steps; see python train.py\n```\n"
    assert commands(page(text)) == [["python", "train.py", "--a", "1"]]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Single GPU:  CUDA_VISIBLE_DEVICES=1 python train.py --lr 1", True),
        ("多卡：python train.py --lr 1", True),
        ("On one machine with 8 GPUs: python train.py --lr 1", True),
        ("This is told at length before the colon that comes here: python train.py --lr 1", False),
        ("see a/b: python train.py --lr 1", False),
        ("It is said that python train.py --lr 1", False),
    ],
)
def test_a_label_may_stand_in_front_of_a_command(line: str, found: bool) -> None:
    document = page(f"```\n{line}\n```\n")
    assert commands(document) == ([["python", "train.py", "--lr", "1"]] if found else [])


def test_lines_may_end_as_windows_ends_them() -> None:
    text = "# A\n\nlr\n\n```bash\nlr=1\n```\n```bash\npython train.py \\\n  --lr $lr\n```\n".replace("\n", "\r\n")
    assert [[word.value for word in each.words] for each in page(text).commands] == [
        ["python", "train.py", "--lr", "1"]
    ]


def test_a_line_that_only_sets_a_variable_counts_in_a_block_without_a_language() -> None:
    text = "```\nmodel=phi\nlr='1e-5'  # small\nx == 3\nf(a=1,\nb=2,\nc=3)\n"
    text += "python train.py --m $model --lr $lr --b $b\n```\n"
    assert [[word.value for word in each.words] for each in page(text).commands] == [
        ["python", "train.py", "--m", "phi", "--lr", "1e-5", "--b", None]
    ]


def test_prompts_and_what_is_printed() -> None:
    text = "```console\n$ cd x\n$ python train.py \\\n>   --lr 1\n{'loss': 1.0}\npython is printed here train.py\n```\n"
    document = page(text)
    assert commands(document) == [["cd", "x"], ["python", "train.py", "--lr", "1"]]
    assert document.commands[1].folder == "x"


def test_a_variable_at_the_start_of_a_line_is_no_prompt() -> None:
    text = "```bash\npython train.py --data \\\n    ${DATA} \\\n  --lr 1\n```\n"
    assert commands(page(text)) == [["python", "train.py", "--data", "${DATA}", "--lr", "1"]]


def test_blocks_in_lists_and_quotations() -> None:
    text = "1. First\n\n   ```sh\n   torchrun train.py --a 1\n   ```\n\n"
    text += "> ~~~bash\n> torchrun train.py \\\n>   --a 2\n> ~~~\n"
    assert commands(page(text)) == [["torchrun", "train.py", "--a", "1"], ["torchrun", "train.py", "--a", "2"]]


def test_each_block_is_a_shell_of_its_own_but_for_what_the_page_sets_once() -> None:
    text = "```bash\nM=a\nN=1\ncd x\ntorchrun train.py --m $M\n```\n```\nN=2\n```\n```\n# then\nexport O='b c'\n```\n"
    document = page(text + '```bash\ntorchrun train.py --m $M --n $N --o "$O" --p $P\n```\n```sh\nP=1\n```\n')
    first, second = (command for command in document.commands if command.words[0].text == "torchrun")
    assert (first.words[3].value, first.folder) == ("a", "x")
    assert ([second.words[index].value for index in (3, 5, 7, 9)], second.folder) == (["a", None, "b c", None], ".")
    assert document.position(second.span.start).line == 15


@pytest.mark.parametrize("end", ["\\ ", "\\  # how many", "\\\t"])
def test_blanks_behind_a_backslash_are_read_as_they_are_meant(end: str) -> None:
    text = f"```bash\ntorchrun train.py {end}\n  --lr 1\n```\n"
    assert commands(page(text)) == [["torchrun", "train.py", "--lr", "1"]]


@pytest.mark.parametrize(
    "word",
    [
        "<your model>",
        "path/to/model",
        "/path/to/llama",
        "PATH_TO_MODEL",
        "your_model",
        "{model}",
        "xxx",
        "configs/xxx.json",
        "...",
        "[seed]",
        "[--bf16]",
        "[--seed",
    ],
)
def test_what_is_to_be_filled_in_is_not_known(word: str) -> None:
    words = page(f"```\ntorchrun train.py --model {word} --lr 1\n```\n").commands[0].words
    assert [each.value for each in words[:3]] == ["torchrun", "train.py", "--model"]
    assert words[3].value is None and words[-1].value == "1"


@pytest.mark.parametrize(
    "word", ["Qwen/Qwen2.5-7B", "[q_proj,v_proj]", "[1]", "pathology", "'{\"min_lr_rate\": 0.1}'", "yours", "xx"]
)
def test_other_words_are_what_they_are(word: str) -> None:
    assert page(f"```\ntorchrun train.py --model {word}\n```\n").commands[0].words[-1].value == word.strip("'")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("path/to/llama-7b", "path/to/llama-7b"),
        ("/your/path/Qwen2.5-7B-Instruct/", "/your/path/Qwen2.5-7B-Instruct/"),
        ("<path-to-Qwen2-VL-2B-Instruct>", "path-to-Qwen2-VL-2B-Instruct"),
        ("<your llama 7b>", "your llama 7b"),
        ("path/to/data_7b.json", None),
        ("<llama-7b|llama-13b>", None),
        ("path/to/xxx-7b", None),
    ],
)
def test_a_model_of_a_size_is_named_wherever_it_is_to_lie(word: str, value: str | None) -> None:
    words = page(f"```bash\ntorchrun train.py --lr 1 --model {word}\n```\n").commands[0].words
    assert words[-1].value == value


def test_an_edit_stays_in_its_block() -> None:
    text = "# A\n\n> ```bash\n> torchrun train.py --lr 1\n> ```\n\nMore.\n"
    document = page(text)
    edits = set_flag(document, document.commands[0], "--bf16", "True")
    assert apply(text, edits) == text.replace("--lr 1", "--lr 1 --bf16 True")


def test_files_that_a_page_shows() -> None:
    text = 'The file `ds/zero2.json`:\n\n```json\n{"a": 1}\n```\n\n```yaml\n# acc.yaml\nb: 2\n```\n\n```json\n{}\n```\n'
    assert [(name, text[block.start : block.end]) for name, block in shown_files(text)] == [
        ("ds/zero2.json", '{"a": 1}\n'),
        ("acc.yaml", "# acc.yaml\nb: 2\n"),
    ]


def test_scripts_that_a_page_shows() -> None:
    shown = "# train.py\nfrom trl import SFTTrainer\n"
    text = f"```python\n{shown}```\n\n```python\n# see train.py\nimport a\n```\n\n```python\n# b.py\nx = 1\n```\n"
    assert [(name, text[block.start : block.end]) for name, block in shown_files(text)] == [("train.py", shown)]


def test_a_block_that_is_not_closed() -> None:
    assert [block.language for block in blocks("```bash\npython train.py\n")] == ["bash"]


def test_a_cheap_look() -> None:
    assert not starts_something("```bash\npip install python-dotenv\n```\n")
    assert not starts_something("```bash\npython serve.py\n```\n")
    assert starts_something("```bash\npython main.py --lr 1\n```\n")


def test_docstrings_and_leading_comments() -> None:
    text = '#!/usr/bin/python\n# Usage: python train.py \\\n#    --lr 1\n"""Or:\n\n>>> trl sft --model m\n"""\n'
    text += 'x = "python train.py"\n'
    assert commands(page(text, "train.py")) == [["python", "train.py", "--lr", "1"], ["trl", "sft", "--model", "m"]]


def test_an_indented_block_is_one_of_commands() -> None:
    text = (
        "# A\n\nTrain it:\n\n    python -u train.py --lr 1\n    python train.py --lr 2\n\nand\n"
        "    python train.py --no 1\n\n"
        "```json\n\n    python train.py --no 2\n```\n\n\ttorchrun train.py --lr 3\n"
    )
    document = page(text)
    found = [["python", "-u", "train.py", "--lr", "1"], ["python", "train.py", "--lr", "2"]]
    assert commands(document) == [*found, ["torchrun", "train.py", "--lr", "3"]]
    assert [document.position(each.span.start).line for each in document.commands] == [5, 6, 16]


@pytest.mark.parametrize(
    ("between", "together"),
    [
        ("", True),
        ("Then:\n", True),
        ("```bash\n# a comment\n```\n", True),
        ("### Another\n", False),
        ("Another\n-------\n", False),
    ],
)
def test_headings_part_a_page(between: str, together: bool) -> None:
    text = f"# A\n\n```bash\nfirst\n```\n\n{between}\n```bash\nsecond\n```\n"
    first, second = text.index("first"), text.index("second")
    assert under_one_heading(text, first, second) is under_one_heading(text, second, first) is together
