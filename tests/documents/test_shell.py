"""Shell scripts: what the words of a command come to, where they are written, and edits of flags."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lintfit.documents.edits import apply
from lintfit.documents.model import SYNTAX_ERROR, FileText
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_edits import find_flag, remove_flag, set_flag
from lintfit.documents.shell_reader import read_shell


def read(text: str, path: str = "run.sh") -> ShellDocument:
    return read_shell(FileText(Path(path), text))


def values(command: Command) -> list[str | None]:
    return [word.value for word in command.words]


def only(text: str) -> list[str | None]:
    (command,) = read(text).commands
    return values(command)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deepspeed --num_gpus=4 train.py --lr 1e-5\n", ["deepspeed", "--num_gpus=4", "train.py", "--lr", "1e-5"]),
        ("a 'b c' \"d e\" f\\ g h\"i\"'j'\n", ["a", "b c", "d e", "f g", "hij"]),
        ("a \\\n  --b 1 \\\n  --c\n", ["a", "--b", "1", "--c"]),
        ("X=1\na $X ${X} \"$X\" '$X' x$X/y\n", ["a", "1", "1", "1", "$X", "x1/y"]),
        ('X="--a 1 --b"\nc $X "$X"\n', ["c", "--a", "1", "--b", "--a 1 --b"]),
        ("a ${X:-5} ${Y-6}\n", ["a", "5", "6"]),
        ("X=1\na ${X:-5} ${X:+y} ${Y:+z}\n", ["a", "1", "y"]),
        (": ${X:=5}\na $X\n", None),
        ('A=()\na "${A[@]}" --x "$E" ""\n', ["a", "--x", None, ""]),
        ("A=(x 'y z')\nA+=(w)\na \"${A[@]}\" ${A[1]} ${#A[@]} $A\n", ["a", "x", "y z", "w", "y", "z", "3", "x"]),
        ("X=1\nX+=2\na $X\n", ["a", "12"]),
        ("G=8; M=2\na $((64 / (G*M))) $(( 7 % 4 - -1 ))\n", ["a", "4", "4"]),
        ("a $(date) `date` $1 $UNSET ${X%.*}\n", ["a", None, None, None, None, None]),
        ("a > log 2>&1 --b < in\n", ["a", "--b"]),
        ('a --x "" y\n', ["a", "--x", "", "y"]),
        ("srun nohup a b &\n", ["srun", "nohup", "a", "b"]),
        ("C='t --x 1'\neval \"$C\" --y\n", ["eval", "t", "--x", "1", "--y"]),
        ("C='t --x 1'\n$C --y\n", ["t", "--x", "1", "--y"]),
        ("C='t --x 1 2>&1 | tee log'\neval $C\n", ["eval", "t", "--x", "1"]),
        (
            'X="b c"\nC="t --x \\"$X\\" --y 1"\nC+=" --z \'$X\'"\neval "$C"\n',
            ["eval", "t", "--x", "b c", "--y", "1", "--z", "b c"],
        ),
        ('C="t --x \\"\\" \\"$U\\" --y"\neval $C\n', ["eval", "t", "--x", "", None, "--y"]),
        ('eval "t --j \'{\\"a\\": 1}\' --k"\n', ["eval", "t", "--j", '{"a": 1}', "--k"]),
        ("bash -c \"t --x 'a b'\"\n", ["bash", "-c", "t", "--x", "a b"]),
        ('C="t --x it\'s"\neval "$C"\n', ["eval", "t", "--x", "it's"]),
        ('C="t --x \\"b\\""\n$C\n', ["t", "--x", '"b"']),
        ("X=0,1,2\nA=(${X//,/ })\na ${#A[@]} ${X/0,/} ${X//[0-9]/}\n", ["a", "3", "1,2", None]),
        ("X=$1\nX=${X:-d}\na $X ${X:+y}\n", ["a", "d", "y"]),
        ("X=$1\na ${X-d}\n", ["a", None]),
        ("bash -c 'a --b 1'\n", ["bash", "-c", "a", "--b", "1"]),
        ("M=a/b\nt ${M/'/'/_} \"x-${M//'/'/-}\" ${M/\\//+}\n", ["t", "a_b", "x-a-b", "a+b"]),
        ("N=2\nC='t --n $N --m ${N}'\neval \"$C\"\n", ["eval", "t", "--n", "2", "--m", "2"]),
        (
            "export G=8\nH=1\nP='--n $J'\nbash -c \"t $P --g \\$G --h \\$H\"\n",
            ["bash", "-c", "t", "--n", None, "--g", "8", "--h", None],
        ),
        (
            'bash -c "\nexport M=x/y\nt --m \\$M \\\n --n 1\n"\n',
            ["bash", "-c", ";", "export", "M=x/y", ";", "t", "--m", "x/y", "--n", "1", ";"],
        ),
        ("a 1 \\\n", ["a", "1"]),
        ("a b\\\nc\\\n  d\n", ["a", "bc", "d"]),
        ("a --b 1 \\\n  `# ein Wort` \\\n  --c 2\n", ["a", "--b", "1", "--c", "2"]),
        ("a --b 1 # --c 2\n", ["a", "--b", "1"]),
        ("é=1\na --ü $é ö\n", None),
        ("X='ä ö'\na --ü $X\n", ["a", "--ü", "ä", "ö"]),
        ("a --b 1 \\\r\n  --c 2\r\n", ["a", "--b", "1", "--c", "2"]),
        ("export A=1 B=$HOME/x\na $A $B\n", ["a", "1", None]),
        ("for i in 3; do\n  a $i\ndone\n", ["a", "3"]),
        ("for i in 3 4; do\n  a $i\ndone\n", ["a", None]),
    ],
)
def test_words(text: str, expected: list[str | None] | None) -> None:
    document = read(text)
    if expected is None:
        assert document.commands
        return
    (command,) = [command for command in document.commands if command.words[0].text != ":"]
    assert values(command) == expected


def test_a_quoted_slash_that_is_replaced_is_bash() -> None:
    document = read("M=a/b\nO=\"./${M/'/'/_}-x\"\nt $O\n")
    assert (document.problems, values(document.commands[-1])) == ((), ["t", "./a_b-x"])


def test_a_default_that_is_assigned_lasts() -> None:
    assert values(read(": ${X:=5}\na $X\n").commands[-1]) == ["a", "5"]


def test_the_scripts_own_folder_is_known() -> None:
    text = 'D=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\na $D/x.py $(dirname "$0")/y.py $(dirname $0)/../z\n'
    (command,) = read(text, "jobs/run.sh").commands
    assert values(command) == ["a", "jobs/x.py", "jobs/y.py", "jobs/../z"]


@pytest.mark.parametrize("joined", ["; pwd", ";pwd", " >/dev/null 2>&1 && pwd", " && pwd -P"])
def test_the_scripts_own_folder_is_known_however_it_is_printed(joined: str) -> None:
    (command,) = read(f'D=$(cd "$(dirname $0)"{joined})\na ${{D}}/x.py\n', "jobs/run.sh").commands
    assert values(command) == ["a", "jobs/x.py"]


def test_the_working_folder_is_known_unless_the_script_sets_its_own() -> None:
    first, second = read("a $PWD/x.py ${PWD}/y.py\nPWD=z\na $PWD/x.py\n").commands
    assert (values(first), values(second)) == (["a", "./x.py", "./y.py"], ["a", "z/x.py"])


@pytest.mark.parametrize(
    ("text", "folder", "lost"),
    [
        ('D="$(cd "$(dirname "${BASH_SOURCE[0]}")/sft" && pwd)"\ncd "$D"\n', "sft", False),
        ("cd $SLURM_SUBMIT_DIR\n", ".", True),
        ('cd "${SLURM_SUBMIT_DIR:-$(pwd)}/sft"\n', "sft", True),
        ('if [ -n "$SLURM_SUBMIT_DIR" ]; then D="$SLURM_SUBMIT_DIR/sft"; else D=/a; fi\ncd $D\n', "sft", True),
        ("cd $PBS_O_WORKDIR/sft\n", "sft", True),
        ("cd $SOMEWHERE/sft\n", ".", True),
    ],
)
def test_where_a_job_was_submitted_from(text: str, folder: str, lost: bool) -> None:
    command = read(f"{text}torchrun train.py\n").commands[-1]
    assert (command.folder, command.lost) == (folder, lost)


@pytest.mark.parametrize(
    ("path", "folder"), [("jobs/run.sh", "sft"), ("../jobs/run.sh", "../sft"), ("/work/jobs/run.sh", "/work/sft")]
)
def test_a_folder_beside_the_scripts_own(path: str, folder: str) -> None:
    (command,) = read('cd "$(dirname "${BASH_SOURCE[0]}")/../sft/"\ntorchrun train.py\n', path).commands[1:]
    assert command.folder == folder


def test_a_folder_of_another_machine_is_kept_by_name() -> None:
    (command,) = read("cd /workspace/sft\ntorchrun train.py\n", "/work/jobs/run.sh").commands[1:]
    assert (command.folder, command.lost) == ("/workspace/sft", True)


@pytest.mark.parametrize("copied", ["$SLURM_NNODES", "${SLURM_NNODES}"])
def test_a_copy_of_a_count_of_the_job_is_computed_with(copied: str) -> None:
    (command,) = read(f"#SBATCH --nodes=4\nN={copied}\ntorchrun $((8 * $N))\n").commands
    assert values(command) == ["torchrun", "32"]


def test_what_stands_in_front_of_a_command() -> None:
    document = read("X=1\nY=2\nCUDA_VISIBLE_DEVICES=0,1 Z=$X a $Y\nexport W=3\nb\n")
    first, second = document.commands
    assert [(item.name, item.value) for item in first.assignments] == [("CUDA_VISIBLE_DEVICES", "0,1"), ("Z", "1")]
    assert values(first) == ["a", "2"]
    assert document.slice(first.assignments[0].value_span) == "0,1"
    assert {name: item.value for name, item in second.environment.items()} == {"W": "3"}
    assert not first.environment


def test_branches_are_doubtful_and_forgotten() -> None:
    document = read(
        'X=1\nif [ -n "$Q" ]; then\n  X=2\n  a $X\nelse\n  b $X\nfi\nc $X\n[ -f y ] && X=3\nd $X\n(X=4; e $X)\nf || g\n'
    )
    found = {command.words[0].value: (command.conditional, *values(command)[1:]) for command in document.commands}
    assert found["a"] == (True, "2")
    assert found["b"] == (True, "1")
    assert found["c"] == (False, None)
    assert found["e"] == (False, "4")
    assert found["f"] == (False,) and found["g"] == (True,)


def test_functions_run_where_they_are_called() -> None:
    document = read('f() {\n  a "$1" $2 "${@:3}" $#\n}\nf "x y" --z\nX=1\ng() { b $X; }\n')
    assert [(command.function, values(command)) for command in document.commands] == [
        ("f", ["a", "x y", "--z", "2"]),
        ("g", ["b", "1"]),
    ]
    assert document.commands[1].conditional
    assert len(read("f() { f; f; a; }\nf\n").commands) < 200


def test_heredocs_hold_no_commands() -> None:
    document = read("cat <<EOF > run2.sh\ntorchrun x\nEOF\na\n")
    assert [command.words[0].value for command in document.commands] == ["cat", "a"]


def test_directives() -> None:
    document = read(
        "#!/bin/bash\n#SBATCH --gres=gpu:a100:8 -N 2 # c\n#SBATCH -n16\n#SBATCH --exclusive\n# SBATCH --no\na\n"
    )
    found = [(item.key, item.value, document.slice(item.value_span)) for item in document.directives]
    assert found == [
        ("--gres", "gpu:a100:8", "gpu:a100:8"),
        ("-N", "2", "2"),
        ("-n", "16", "16"),
        ("--exclusive", "", ""),
    ]


def test_words_of_a_variable_are_edited_in_its_assignment() -> None:
    text = 'LR=1e-5\nARGS="\n  --lr ${LR} \\\n  --bs 4 --x $NOPE\n"\ndeepspeed t.py $ARGS\n'
    document = read(text)
    (command,) = document.commands
    assert [document.slice(word.span) for word in command.words] == [
        "deepspeed", "t.py", "--lr", "1e-5", "--bs", "4", "--x", "$NOPE",
    ]  # fmt: skip
    assert apply(text, set_flag(document, command, "--bs", "8")) == text.replace("--bs 4", "--bs 8")
    assert apply(text, set_flag(document, command, "--lr", "2")) == text.replace("LR=1e-5", "LR=2")
    assert apply(text, set_flag(document, command, "--x", "2")) == text.replace("$NOPE", "2")
    assert apply(text, remove_flag(document, command, "--bs")) == text.replace(" \\\n  --bs 4", "")
    assert apply(text, remove_flag(document, command, "--lr")) == text.replace("--lr ${LR} \\\n  ", "")


def test_a_variable_that_others_use_is_left_alone() -> None:
    text = "N=4\na --x $N --y $N\nb --z $N\n"
    document = read(text)
    assert apply(text, set_flag(document, document.commands[0], "--x", "8")) == text.replace("--x $N", "--x 8")
    assert apply(text, set_flag(document, document.commands[1], "--z", "8")) == text.replace("--z $N", "--z 8")
    text = 'N=4\nA="--x $N"\na $A\nb $A\n'
    document = read(text)
    assert apply(text, set_flag(document, document.commands[0], "--x", "8")) == text.replace("N=4", "N=8")


SET = [
    ("a --x 1\n", "--x", "2", "a --x 2\n"),
    ("a --x=1\n", "--x", "2", "a --x=2\n"),
    ("a \"--x=1\"\n", "--x", "2", "a \"--x=2\"\n"),
    ("a --x '1'\n", "--x", "b c", "a --x 'b c'\n"),
    ("a --x 1 --x 3\n", "--x", "2", "a --x 1 --x 2\n"),
    ("a --x --y\n", "--x", "True", "a --x True --y\n"),
    ("a --x\n", "--x", None, "a --x\n"),
    ("a --x False -y\n", "--x", None, "a --x -y\n"),
    ("a --x t.py\n", "--x", None, "a --x t.py\n"),
    ("a --lr -1\n", "--lr", "2", "a --lr 2\n"),
    ("a b\n", "--x", "1", "a b --x 1\n"),
    ("a b", "--x", None, "a b --x"),
    ("a b > log 2>&1 &\n", "--x", "1", "a b --x 1 > log 2>&1 &\n"),
    ("a b | tee log\n", "--x", "1", "a b --x 1 | tee log\n"),
    ("a b # c\n", "--x", "1", "a b --x 1 # c\n"),
    ("a \\\n    --b 1 \\\n    --c 2\n", "--x", "1", "a \\\n    --b 1 \\\n    --c 2 \\\n    --x 1\n"),
    ("a \\\r\n\t--b 1\r\n", "--x", "1", "a \\\r\n\t--b 1 \\\r\n\t--x 1\r\n"),
    ("a \\\n  --b 1 \\\n  > log\n", "--x", "1", "a \\\n  --b 1 \\\n  --x 1 \\\n  > log\n"),
    ("a \\\n  --b 1 \\\n\n", "--x", "1", "a \\\n  --b 1 \\\n  --x 1 \\\n\n"),
    ("a --x \"$1\"\n", "--x", "2", "a --x \"2\"\n"),
    ("a --x ${X:-4}\n", "--x", "2", "a --x ${X:-2}\n"),
    ("if true; then\n  a b; fi\n", "--x", "1", "if true; then\n  a b --x 1; fi\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "flag", "value", "expected"), SET)
def test_flags_are_set_in_the_commands_own_style(text: str, flag: str, value: str | None, expected: str) -> None:
    document = read(text)
    command = next(command for command in document.commands if command.words[0].value == "a")
    assert apply(text, set_flag(document, command, flag, value)) == expected


def test_a_flag_can_be_added_behind_the_launcher() -> None:
    text = "torchrun \\\n  t.py \\\n  --x 1\n"
    document = read(text)
    (command,) = document.commands
    edits = set_flag(document, command, "--nproc_per_node", "8", after=command.words[0])
    assert apply(text, edits) == "torchrun \\\n  --nproc_per_node 8 \\\n  t.py \\\n  --x 1\n"


def test_flags_are_removed() -> None:
    text = "a \\\n  --b 1 \\\n  --c --d=4 \\\n  --e 5 6\n"
    document = read(text)
    (command,) = document.commands
    assert apply(text, remove_flag(document, command, "--b")) == "a \\\n  --c --d=4 \\\n  --e 5 6\n"
    assert apply(text, remove_flag(document, command, "--c")) == "a \\\n  --b 1 --d=4 \\\n  --e 5 6\n"
    assert apply(text, remove_flag(document, command, "--d")) == "a \\\n  --b 1 \\\n  --c \\\n  --e 5 6\n"
    assert apply(text, remove_flag(document, command, "--e", values=2)) == "a \\\n  --b 1 \\\n  --c --d=4\n"
    assert remove_flag(document, command, "--z") == ()
    text = "B=4\na --b $B --c\n"
    document = read(text)
    assert apply(text, remove_flag(document, document.commands[0], "--b")) == "B=4\na --c\n"


def test_a_value_that_needs_quotes_is_refused_inside_a_string() -> None:
    document = read('A="--x 1"\na $A\n')
    with pytest.raises(ValueError, match="quotes"):
        set_flag(document, document.commands[0], "--x", "b c")


def test_syntax_errors_are_one_problem_and_the_rest_is_read() -> None:
    document = read("torchrun a.py\nif [ 1; then (\n")
    (problem,) = document.problems
    assert problem.code == "syntax-error" and "\n" not in problem.detail
    assert values(document.commands[0]) == ["torchrun", "a.py"]
    assert not read("a --b \\\n").problems


def test_bad_input_is_survived() -> None:
    for text in ("", "\n", "((((((" * 2000, "$(" * 3000, '"' * 9001, "a " * 50_000, "\0", "X=$X$X\n" * 100 + "a $X\n"):
        document = read(text)
        for command in document.commands:
            for word in command.words:
                assert 0 <= word.span.start <= word.span.end <= len(text)


PIECES = st.sampled_from(
    [
        "a",
        "b c",
        "'d e'",
        '"f $X"',
        "$X",
        "${X}",
        "$Y",
        "x\\ y",
        '"',
        " ",
        "  ",
        "--k=",
        "--k",
        "${Z:-w v}",
        '"$Y"',
        "é",
        " \\\n ",
        "$E",
    ]
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@settings(max_examples=200)
@given(st.lists(PIECES, min_size=1, max_size=8).map("".join))
def test_words_are_what_bash_makes_of_them(tail: str) -> None:
    text = f"X=1\nY='p  q'\nE=\nshow {tail}\n"
    show = 'show() { for word in "$@"; do printf "%s\\0" "$word"; done; }\n'
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, "--norc", "-f", "-c", show + text], capture_output=True, env={"PATH": "/nowhere"})
    document = read(text)
    commands = document.commands
    if done.returncode or done.stderr or document.problems or len(commands) != 1:
        return
    if any(word.unknown for word in commands[0].words):
        return  # a name that is not set: bash says nothing, but the environment might
    assert values(commands[0])[1:] == done.stdout.decode().split("\0")[:-1]


def test_find_flag_takes_the_last() -> None:
    (command,) = read("a --x 1 --x=2\n").commands
    found = find_flag(command, "--x")
    assert found is not None and found[0] == 3 and found[1] is command.words[3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cd x && a\n", "x"),
        ("cd x\ncd ../y\na\n", "y"),
        ("(cd x; b)\na\n", "."),
        ("cd $1\na\n", "."),
        ("cd /x\na\n", "/x"),
        ("pushd x\npopd\na\n", "."),
    ],
)
def test_the_folder_of_a_command(text: str, expected: str) -> None:
    assert read(text).commands[-1].folder == expected


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ('[ "$M" = "lora" ]', "1"),
        ("[[ $M == lora ]]", "1"),
        ('[ "$M" != lora ]', "3"),
        ('[ -z "$M" ]', "3"),
        ('[ ! -n "$M" ]', "3"),
        ("[ $N -gt 1 ]", "1"),
        ("[ $N -gt x ]", None),
        ("[[ $M == l* ]]", None),
        ('[ "$U" = lora ]', None),
        ("[ -f file ]", None),
        ('[ "$M" = lora ] && true', "1"),
        ('[ "$M" = lora ] && [ -f file ]', None),
        ('[ "$M" = lora ] || [ -f file ]', "1"),
        ("[[ $M != lora && -f file ]]", "3"),
        ('[ "$U" = lora -o "$M" = lora ]', "1"),
        ('! test "$M" = lora', "3"),
        ("[[ ! $E ]]", "1"),
        ("[[ -n $E ]]", "3"),
    ],
)
def test_a_branch_that_is_decided(condition: str, value: str | None) -> None:
    text = f"M=lora\nN=2\nE=\nX=0\nif {condition}; then\nX=1\nelif [ $N = 9 ]; then X=2\nelse X=3\nfi\na $X\n"
    assert values(read(text).commands[-1]) == ["a", value]


def test_what_a_decided_branch_holds() -> None:
    taken, other = read("M=1\nif [ $M = 1 ]; then a; else b; fi\n").commands
    assert (taken.conditional, other.conditional) == (False, True)
    assert (taken.idle, other.idle) == (False, True)


def test_in_a_branch_that_does_not_run_what_was_tested_is_something_else() -> None:
    text = "N=1\nM=2\nif [[ $N -eq 1 ]]; then a $N; else b $N $M; fi\nc $N\n"
    assert [values(command) for command in read(text).commands] == [["a", "1"], ["b", None, "2"], ["c", "1"]]


def test_a_branch_in_a_loop_is_not_decided() -> None:
    command = read("X=0\nfor i in 1 2; do if [ $X = 0 ]; then Y=1; fi; X=1; done\na $Y\n").commands[-1]
    assert values(command) == ["a", None]


@pytest.mark.parametrize(
    "text",
    [
        "if [ -f conf ]; then X=1; else echo none; exit 1; fi",
        "X=1\nif [ -f conf ]; then X=2; exit 2; fi",
        "if [ -f conf ]; then exit 1; elif [ -d conf ]; then exit 3; else X=1; fi",
    ],
)
def test_a_branch_that_ends_in_an_error_is_not_the_run_that_is_meant(text: str) -> None:
    command = read(f"{text}\na $X\n").commands[-1]
    assert values(command) == ["a", "1"]


@pytest.mark.parametrize("text", ["X=1\nif [ -f conf ]; then X=2; exit 0; fi", "if [ -f conf ]; then X=1; fi"])
def test_a_branch_that_ends_well_or_not_at_all_leaves_a_choice(text: str) -> None:
    assert values(read(f"{text}\na $X\n").commands[-1]) == ["a", None]


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ('[ "$X" == "" ]', "3"),
        ('[ -z "$X" ]', "3"),
        ("[[ ! -n $X ]]", "3"),
        ('[ "$X" = a ]', None),
        ("[ -n $U ]", None),
    ],
)
def test_an_argument_that_is_not_given_is_empty(test: str, value: str | None) -> None:
    text = f"X=$2\nif {test}; then X=3; fi\na $X\n"
    assert values(read(text).commands[-1]) == ["a", value]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('A=(a --x 1)\nif [ -n "$Q" ]; then\n  A+=(--y 2)\nfi\n"${A[@]}"\n', ["a", "--x", "1", None, None]),
        ('A="a --x 1"\nif [ -n "$Q" ]; then\n  A="$A --y=2"\nfi\neval "$A"\n', ["eval", "a", "--x", "1", None]),
        ('A=(a)\n[ -n "$Q" ] && A+=(--y)\n"${A[@]}"\n', ["a", None, None]),
        ('A=(a b)\nif [ -n "$Q" ]; then\n  A=(c b)\nfi\n"${A[@]}"\n', [None]),
        ('A=a\nif [ -n "$Q" ]; then\n  A=$A-b\nfi\n$A\n', [None]),
        ("if [ $Q ]; then\n  A=a\nelif [ $P ]; then\n  A=a\nelse\n  A=a\nfi\n$A\n", ["a"]),
        ("if [ $Q ]; then\n  A=a\nelse\n  A=b\nfi\n$A\n", [None]),
        ("A=b\nif [ $Q ]; then\n  A=a\nfi\n$A\n", [None]),
    ],
)
def test_what_a_branch_adds_is_doubtful_and_what_stood_there_is_known(text: str, expected: list[str | None]) -> None:
    assert values(read(text).commands[-1]) == expected


def test_a_flag_that_a_branch_adds_keeps_its_name() -> None:
    document = read('A=(a)\nif [ -n "$Q" ]; then\n  A+=(--y 2 --z=3)\nelse\n  A+=(--w)\nfi\n"${A[@]}"\n')
    assert [word.text for word in document.commands[-1].words] == [
        "a",
        *("--y", "${A}", "--z=${A}"),
        *("--w", "${A}"),
    ]


def test_what_all_branches_set_alike_is_written_in_no_one_place() -> None:
    document = read("if [ $Q ]; then\n  A=a\nelse\n  A=a\nfi\nb $A\n")
    word = document.commands[-1].words[1]
    assert word.value == "a" and not word.moved


def test_a_variable_that_is_only_printed_besides_is_changed_where_it_is_set() -> None:
    text = 'N="${1:-64}"\necho "batch $N"\npython t.py --x "$N"\n'
    document = read_shell(FileText(Path("run.sh"), text))
    command = document.commands[-1]
    assert apply(text, set_flag(document, command, "--x", "8")) == text.replace("64", "8")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [('--ds "${BASE}/c/a.json"', '--ds "${BASE}/c/b.json"'), ("--ds=$BASE/a.json", "--ds=$BASE/b.json")],
)
def test_of_a_path_behind_a_variable_the_name_is_changed_alone(flag: str, expected: str) -> None:
    text = f"BASE=./here\npython t.py {flag}\nls $BASE\n"
    document = read_shell(FileText(Path("run.sh"), text))
    command = document.commands[-2]
    value = (command.words[-1].text.removeprefix("--ds=")).replace("a.json", "b.json")
    assert apply(text, set_flag(document, command, "--ds", value)) == text.replace(flag, expected)


@pytest.mark.parametrize("file", ["$OUT/$NAME.log", "$OUT/$NAME-$X-run.log", "${OUT}/${NAME}.log", '"$OUT/$NAME.log"'])
def test_a_redirect_s_file_is_no_word_of_the_command(file: str) -> None:
    document = read_shell(FileText(Path("run.sh"), f"python t.py --x 1 > {file} --lr 1 2>&1 &\n"))
    assert [word.text for word in document.commands[0].words] == ["python", "t.py", "--x", "1", "--lr", "1"]


_MERGE = "<<<<<<< HEAD\n{ours}=======\ntorchrun b.py\n>>>>>>> theirs\ntorchrun c.py\n"


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("torchrun a.py\n" + _MERGE.format(ours="torchrun b.py --lr 1\n"), ["a.py"]),
        ("torchrun a.py\ntorchrun b.py \\\n" + _MERGE.format(ours="--lr 1\n"), ["a.py"]),
        ("cat <<'END'\n" + _MERGE.format(ours="") + "END\ntorchrun d.py\n", ["d.py"]),
    ],
)
def test_bash_runs_what_stands_above_a_merge_that_is_not_resolved(text: str, run: list[str]) -> None:
    document = read_shell(FileText(Path("run.sh"), text))
    assert [c.words[1].value for c in document.commands if c.words[0].value == "torchrun"] == run
    assert document.text == text
    assert any(problem.code == SYNTAX_ERROR for problem in document.problems) is ("d.py" not in run)
