"""What a script comes to when it is run as it stands: its own arguments, here-documents and Slurm's counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_reader import read_shell

CASES = "case $1 in -m) MODEL=$2; shift ;; *) exit 1 ;; esac"


def read(text: str) -> ShellDocument:
    return read_shell(FileText(Path("run.sh"), text))


def last(text: str) -> list[str | None]:
    return [word.value for word in read(text).commands[-1].words]


@pytest.mark.parametrize(
    "head",
    ['while [[ "$1" != "" ]]', "while [ $# -gt 0 ]", "while getopts m: name", "while true", "until [ $# -eq 0 ]"],
)
def test_a_loop_over_the_arguments_does_nothing_without_any(head: str) -> None:
    text = f"MODEL=base\n{head}; do\n  {CASES}\n  shift\ndone\na $MODEL\n"
    assert last(text) == ["a", "base"]


@pytest.mark.parametrize("head", ["while read line", 'while [ "$N" -gt 0 ]'])
def test_any_other_loop_leaves_what_it_sets_unknown(head: str) -> None:
    assert last(f"N=2\nMODEL=base\n{head}; do\n  MODEL=other\ndone\na $MODEL\n") == ["a", None]


def test_a_function_that_goes_through_its_own_arguments_is_another_matter() -> None:
    text = "f() {\n  M=base\n  while [ $# -gt 0 ]; do M=$1; shift; done\n  a $M\n}\nf x\n"
    assert [word.value for word in read(text).commands[-1].words] == ["a", None]


def test_a_here_document_that_is_read_into_a_variable() -> None:
    text = "read -r -d '' OPTIONS <<EOF\ntrain.py \\\n   --lr 1e-5 \\\n   --name 'x'\nEOF\ndeepspeed $OPTIONS\n"
    assert last(text) == ["deepspeed", "train.py", "--lr", "1e-5", "--name", "'x'"]


def test_a_here_document_with_substitutions_is_not_known() -> None:
    assert last("read -r -d '' OPTIONS <<EOF\n$(date)\nEOF\na $OPTIONS\n") == ["a", None]


def test_arithmetic_knows_what_the_batch_job_asks_for() -> None:
    job = "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node 2\nPER_NODE=8\na $((SLURM_NNODES * PER_NODE)) $SLURM_NNODES\n"
    assert last(job) == ["a", "32", None]
    assert last("a $((SLURM_NNODES * 8))\n") == ["a", None]
