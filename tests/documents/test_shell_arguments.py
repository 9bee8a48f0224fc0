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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('if [ -z "$N" ]; then\n  N=8\nfi\na $N\n', "8"),
        ('if [[ -n "${GIVEN}" ]]; then\n  N=$GIVEN\nelse\n  N=8\nfi\na $N\n', "8"),
        ('N=4\nif [ -z "$N" ]; then\n  N=8\nfi\na $N\n', "4"),
        ('N=4\nif [ -n "$OTHER" ]; then\n  N=8\nfi\na $N\n', None),
        ('N=4\nif [ -n "$SLURM_JOB_ID" ]; then\n  N=8$SLURM_JOB_ID\nfi\na $N\n', None),
    ],
)
def test_a_variable_that_a_test_gives_a_default_counts_as_unset(text: str, value: str | None) -> None:
    assert last(text) == ["a", value]


HOSTS = "scontrol show hostnames $SLURM_JOB_NODELIST"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"NODES=( $({HOSTS}) )\na ${{#NODES[@]}}\n", "4"),
        (f"NODES=($({HOSTS}))\na $(( ${{#NODES[@]}} - 1 ))\n", "3"),
        (f"N=$({HOSTS} | wc -l)\na $N\n", "4"),
        (f"FIRST=$({HOSTS} | head -n 1)\na $FIRST\n", None),
        (f"NODES=( $({HOSTS}) )\na ${{NODES[0]}}\n", None),
    ],
)
def test_the_nodes_of_a_batch_job_are_counted_and_not_named(text: str, value: str | None) -> None:
    assert last(f"#SBATCH --nodes=4\n{text}") == ["a", value]
    assert last(text) == ["a", None]


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ("[ $MASTER_ADDR ]", "1"),
        ('[ -n "${WORLD_SIZE}" ]', "1"),
        ("[[ -z $RANK ]]", "2"),
        ('[ "$NNODES" = "" ]', "2"),
        ("[ $MODEL ]", None),
        ("[ $RANK = 0 ]", None),
    ],
)
def test_what_only_a_cluster_sets_is_empty(test: str, value: str | None) -> None:
    assert last(f"N=1\nif {test}; then N=2; fi\na $N\n") == ["a", value]


def test_a_function_that_goes_through_its_own_arguments_is_another_matter() -> None:
    text = "f() {\n  M=base\n  while [ $# -gt 0 ]; do M=$1; shift; done\n  a $M\n}\nf x\n"
    assert [word.value for word in read(text).commands[-1].words] == ["a", None]


def test_arguments_that_a_loop_shifts_are_not_known() -> None:
    text = 'f() { while [ "$1" != -- ]; do shift; done; shift; a --x "$@"; }\nf 1 2 -- 3\n'
    assert [word.value for word in read(text).commands[-1].words] == ["a", "--x", None]


def test_a_here_document_that_is_read_into_a_variable() -> None:
    text = "read -r -d '' OPTIONS <<EOF\ntrain.py \\\n   --lr 1e-5 \\\n   --name 'x'\nEOF\ndeepspeed $OPTIONS\n"
    assert last(text) == ["deepspeed", "train.py", "--lr", "1e-5", "--name", "'x'"]


def test_a_here_document_with_substitutions_is_not_known() -> None:
    assert last("read -r -d '' OPTIONS <<EOF\n$(date)\nEOF\na $OPTIONS\n") == ["a", None]


def test_arithmetic_knows_what_the_batch_job_asks_for() -> None:
    job = "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node 2\nPER_NODE=8\na $((SLURM_NNODES * PER_NODE)) $SLURM_NNODES\n"
    assert last(job) == ["a", "32", None]
    assert last("a $((SLURM_NNODES * 8))\n") == ["a", None]


def test_expr_counts() -> None:
    assert last("n=4\na $(expr 32 / $n / 2) `expr 16 / ${n}`\n") == ["a", "4", "4"]
    assert last("a $(expr 2 \\* 3) $(expr 2 '*' 4)\n") == ["a", "6", "8"]
    assert last("a $(expr length word) $(expr 16 / $n)\n") == ["a", None, None]


@pytest.mark.parametrize("test", ['"$STAGE" == ""', '-z "$STAGE"', "-z $2", '! -n "$STAGE"', '"${2}" = ""'])
def test_a_test_for_an_argument_that_nobody_hands_in(test: str) -> None:
    assert last(f"STAGE=$2\nif [ {test} ]; then\n  STAGE=2\nfi\na $STAGE\n") == ["a", "2"]


def test_an_argument_is_not_compared_with_a_word() -> None:
    assert last('MODE=$1\nB=1\nif [ "$MODE" = "large" ]; then\n  B=8\nfi\na $B\n') == ["a", None]


SUBSTITUTED = "$(scontrol show hostname $LIST | head -n1)"


@pytest.mark.parametrize(
    "text",
    [
        f"N=2\nbash -c 'a --at {SUBSTITUTED} --n $N'\n",
        f'N=2\nbash -c "a --at {SUBSTITUTED} --n $N"\n',
        'N=2\nbash -c "a --at \\$(scontrol show hostname \\$LIST | head -n1) --n $N"\n',
        f"N=2\nARGS='--at {SUBSTITUTED}'\nbash -c \"a $ARGS --n $N\"\n",
    ],
)
def test_a_substitution_in_a_string_that_is_run_is_one_word(text: str) -> None:
    words = read(text).commands[-1].words[2:]
    assert [word.value for word in words] == ["a", "--at", None, "--n", "2"]
    assert words[2].text == SUBSTITUTED


SOURCED = {
    "common.sh": "CARDS=2\nexport KEPT=1\n",
    "scripts/flags.sh": 'B=1\nif [ "$1" = "large" ]; then\n  B=4\nfi\n. common.sh\n',
    "loop.sh": "source loop.sh\nX=1\nsource other.sh\n",
    "other.sh": "source loop.sh\n",
}


class TestSourced:
    def read(self, text: str, path: str = "scripts/run.sh") -> ShellDocument:
        def opened(path: Path) -> FileText | None:
            text = SOURCED.get(path.as_posix())
            return FileText(path, text) if text is not None else None

        return read_shell(FileText(Path(path), text), opened)

    def last(self, text: str) -> list[str | None]:
        return [word.value for word in self.read(text).commands[-1].words]

    @pytest.mark.parametrize("command", ["source common.sh", ". ../common.sh", "source $(dirname $0)/flags.sh"])
    def test_variables_are_known(self, command: str) -> None:
        assert self.last(f"{command}\na $CARDS\n") == ["a", "2"]

    def test_with_arguments_of_its_own(self) -> None:
        assert self.last("source flags.sh large\na $B\n") == ["a", "4"]

    def test_what_it_exports_is_in_the_environment_with_the_command_as_its_place(self) -> None:
        document = self.read("source common.sh\ntorchrun train.py\n")
        kept = document.commands[-1].environment["KEPT"]
        assert kept.value == "1"
        assert document.text[slice(kept.span.start, kept.span.end)] == "source common.sh"

    def test_a_word_from_it_has_no_place_but_its_own(self) -> None:
        document = self.read("source common.sh\na $CARDS\n")
        word = document.commands[-1].words[1]
        assert (word.span, document.slice(word.span)) == (word.at, "$CARDS")

    def test_a_branch_that_may_not_run_leaves_it_unknown(self) -> None:
        assert self.last('if [ "$X" = y ]; then\n  source common.sh\nfi\na $CARDS\n') == ["a", None]

    def test_files_that_source_each_other_end(self) -> None:
        assert self.last("source loop.sh\na $X\n") == ["a", "1"]

    def test_a_file_that_is_not_there(self) -> None:
        assert self.last("source missing.sh\na $CARDS\n") == ["a", None]


@pytest.mark.parametrize(
    "text",
    [
        "DATA=<prefix of the data>_text\nN=2\na --data $DATA --n $N\n",
        "N=2\na --data <data.json> --n $N\n",
        'D="<PATH TO DATA>"\nN=2\nARGS="--data $D --n $N"\nbash -c "a $ARGS"\n',
    ],
)
def test_what_is_to_be_filled_in_is_not_known(text: str) -> None:
    document = read(text)
    assert [word.value for word in document.commands[-1].words][-4:] == ["--data", None, "--n", "2"]
    assert document.problems == ()


def test_a_redirect_is_none() -> None:
    assert last("a --n 2 <in.txt >out.txt\n") == ["a", "--n", "2"]
