"""Commands that end before their last flags are read whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.cut_commands import in_literals, mended
from lintfit.documents.model import FileText
from lintfit.documents.shell_reader import read_shell

START = "torchrun train.py"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{START} --a 1 \\ \n  --b 2\n", "blank"),
        (f"{START} --a 1 \\ # why\n  --b 2\n", "blank"),
        (f"{START} --a 1\\ # why\r\n  --b 2\r\n", "blank"),
        (f"{START} --a 1 \\   # --a 2 \\\n  --b 2\n", "blank"),
        (f"{START} --a 1 # --a 2 \\\n  --b 2\n", "comment"),
        ("accelerate launch --a 1 \\ \n train.py --b 2\n", "blank"),
        (f"{START} --a 1 \\\n  # why\n  --b 2\n", "comment"),
        (f"{START} --a 1 \\\n\n  --b 2\n", "empty"),
        (f"CUDA_VISIBLE_DEVICES=0 {START} \\\n  --a 1\n  --b 2 \\\n  --c\n", "line"),
        (f'{START} --a "#1"  # why\n  --b 2\n', "line"),
    ],
)
def test_a_cut_command_has_all_its_flags(text: str, kind: str) -> None:
    whole, cuts = mended(text)
    assert [cut.kind for cut in cuts] == [kind]
    assert len(whole) == len(text)
    document = read_shell(FileText(Path("run.sh"), text))
    assert len(document.commands) == 1
    assert document.commands[0].words[-1].text in ("2", "--c")


@pytest.mark.parametrize(
    "text",
    [
        f"{START} --a 1 \\\n  --b 2\n",
        f"{START} --a 1 \\ \n\necho done\n",
        f"{START} --a 1 \\\n  # the end\n\necho done\n",
        f"{START} --a 1\necho --b\n",
        f"case $1 in\n--a)\n{START} ;;\n--b) echo ;;\nesac\n",
        f"case $1 in\n--a)\n{START}\n--b|--c) echo ;;\nesac\n",
        f"# {START} --a 1\n  --b 2\n",
        "cat <<END\nhow to use it\n  --a  the first\nEND\n",
        f"train:\n\t{START} --a 1\n\t-rm -r out\n",
    ],
)
def test_what_is_whole_stays_as_it_is(text: str) -> None:
    assert mended(text) == (text, ())


@pytest.mark.parametrize(
    ("head", "cut"),
    [("command: |", True), ("command: |2-  # why", True), ("command: >", False), ("command:", False)],
)
def test_yaml_makes_one_line_of_a_scalar_that_is_no_literal_block(head: str, cut: bool) -> None:
    lines = [
        "services:",
        "  train:",
        f"    {head}",
        "      if a; then",
        f"        {START}",
        "        --a 1",
        "      fi",
    ]
    text = "\n".join([*lines, "    image: x", ""])
    assert bool(mended(text, in_literals)[1]) is cut


def test_a_folded_command_of_a_service_has_all_its_flags() -> None:
    text = f"services:\n  train:\n    command: >\n      {START}\n      --a 1\n"
    document = read_shell(FileText(Path("docker-compose.yml"), text))
    assert (document.cuts, [word.text for word in document.commands[0].words[-2:]]) == ((), ["--a", "1"])
