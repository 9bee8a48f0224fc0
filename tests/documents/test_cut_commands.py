"""Commands that end before their last flags are read whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.cut_commands import mended
from lintfit.documents.model import FileText
from lintfit.documents.shell_reader import read_shell

START = "torchrun train.py"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{START} --a 1 \\ \n  --b 2\n", "blank"),
        (f"{START} --a 1 \\ # why\n  --b 2\n", "blank"),
        (f"{START} --a 1\\ # why\r\n  --b 2\r\n", "blank"),
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
