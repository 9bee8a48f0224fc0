"""Files that a launch script writes itself: found, read at their places in the script, and edited there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.data_edits import set_value
from lintfit.documents.edits import apply
from lintfit.documents.here_documents import find_here, read_here
from lintfit.documents.model import FileText, Kind
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_reader import read_shell


def shell(text: str) -> ShellDocument:
    return read_shell(FileText(Path("run.sh"), text))


@pytest.mark.parametrize(
    "text",
    [
        'cat > ds.json <<EOF\n{"a": 1}\nEOF\n',
        "cat <<'EOF' > ./ds.json\n{\"a\": 1}\nEOF\n",
        'NAME=ds\ncat <<EOF >$NAME.json\n{"a": 1}\nEOF\n',
        'tee ds.json <<-"EOF" > /dev/null\n\t{"a": 1}\n\tEOF\n',
        "echo '{\"a\": 1}' > ds.json\n",
        'écho ü\ncat > ds.json << EOF\n{\n  "a": 1\n}\nEOF\n',
    ],
)
def test_a_file_that_is_written(text: str) -> None:
    document = shell(text)
    index = find_here(document, "ds.json", len(text))
    assert index is not None
    made = read_here(document, index, Kind.JSON)
    assert made.root is not None and made.root.plain() == {"a": 1}
    assert made.text == text
    node = made.root.get("a")
    assert node is not None and made.slice(node.span) == "1"
    edits = set_value(made, ("a",), 2)
    assert apply(text, edits) == text.replace('"a": 1', '"a": 2')


def test_the_last_one_before_the_launch_counts() -> None:
    text = 'cat > a <<E\n{"n": 1}\nE\ncat > a <<E\n{"n": 2}\nE\npython x.py\ncat > a <<E\n{"n": 3}\nE\n'
    document = shell(text)
    assert find_here(document, "a", text.index("python")) == 1
    assert find_here(document, "b", len(text)) is None


def test_what_the_shell_fills_in() -> None:
    text = 'S=3\nM=${M:-model}\ncat > a <<EOF\n{"stage": ${S}, "micro": $UNSET, "name": "$M"}\nEOF\n'
    made = read_here(shell(text), 0, Kind.JSON)
    assert made.root is not None
    stage, micro = made.root.get("stage"), made.root.get("micro")
    assert stage is not None and (stage.value, made.slice(stage.span)) == (3, "${S}")
    assert micro is not None and isinstance(micro.value, str)
    assert apply(text, set_value(made, ("stage",), 2)) == text.replace("${S}", "2")


def test_quotes_keep_the_shell_out() -> None:
    text = "S=3\ncat > a <<'EOF'\nstage: $S\nEOF\n"
    made = read_here(shell(text), 0, Kind.YAML)
    assert made.root is not None and made.root.plain() == {"stage": "$S"}


def test_yaml_keeps_its_place() -> None:
    text = "set -e\ncat > acc.yaml <<EOF\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 2\nEOF\nrun\n"
    made = read_here(shell(text), 0, Kind.YAML)
    assert apply(text, set_value(made, ("deepspeed_config", "zero_stage"), 3)) == text.replace(
        "zero_stage: 2", "zero_stage: 3"
    )


def test_a_pipe_is_no_file() -> None:
    assert shell("cat <<EOF | tee ds.json\n{}\nEOF\npython - <<EOF\nprint(1)\nEOF\n").files == ()
