"""What a script asks for before it refuses to run is given by somebody, and not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import FileText
from lintfit.documents.shell_reader import read_shell

FUNCTIONS = 'usage() { echo "$0 --model ID"; exit 1; }\ndie() {\n  echo "$1" >&2\n  exit 2\n}\nsay() { echo hello; }\n'
LOOP = "while [ $# -gt 0 ]; do case $1 in --model) MODEL=$2; shift 2 ;; --epochs) EPOCHS=$2; shift 2 ;; esac; done\n"


def started(text: str) -> list[str | None]:
    """The words of the command ``a``."""
    found = [command for command in read_shell(FileText(Path("run.sh"), text)).commands if command.words[0].text == "a"]
    return [word.value for word in found[-1].words]


@pytest.mark.parametrize(
    "asks",
    [
        'if [ -z "$MODEL" ]; then echo "--model is required"; exit 1; fi',
        'if [ -z "$MODEL" ]; then echo "--model is required" >&2; exit 0; fi',
        "if [[ ! $MODEL ]]; then usage; fi",
        'if ! [ -n "$MODEL" ]; then say; exit; fi',
        'if [ -z "$MODEL" ] || [ -z "$DATA" ]; then usage; fi',
        'if [[ -z "$MODEL" && "$EPOCHS" == 3 ]]; then usage; fi',
        'if [ "x$MODEL" = x ]; then exit 2; else say; fi',
        "if [ ${#MODEL} -eq 0 ]; then exit 2; fi",
        '[ -z "$MODEL" ] && { echo no; exit 1; }',
        '[ -z "$MODEL" ] && echo no && exit 1',
        '[[ -n "$MODEL" ]] || usage',
        'test -z "$MODEL" && die "no model"',
        ': "${MODEL:?is required}"',
        'case "$MODEL" in llama|qwen) say ;; *) usage ;; esac',
        'check() { if [ -z "$MODEL" ]; then exit 1; fi; }\ncheck',
    ],
)
def test_what_a_script_asks_for_is_not_known(asks: str) -> None:
    assert started(f"{FUNCTIONS}MODEL=\nEPOCHS=3\n{LOOP}{asks}\na --model $MODEL") == ["a", "--model", None]


@pytest.mark.parametrize(
    "asks",
    [
        "",
        'if [ -z "$MODEL" ]; then echo "no model"; fi',
        'if [ -z "$MODEL" ]; then say; fi',
        '[ -z "$MODEL" ] && say',
        'if [ -n "$MODEL" ]; then usage; fi',
        '[ -z "$MODEL" ] || usage',
        'if [ -z "$MODEL" ] && [ -f data ]; then echo; fi',
        'case "$MODEL" in "") say ;; *) usage ;; esac',
    ],
)
def test_what_a_script_goes_on_with_stays_known(asks: str) -> None:
    assert started(f'{FUNCTIONS}MODEL=\nEPOCHS=3\n{LOOP}{asks}\na --model "$MODEL"') == ["a", "--model", ""]


@pytest.mark.parametrize(
    "asks",
    ["[ $# -lt 1 ] && usage", 'if [ "$#" -eq 0 ]; then echo; exit 1; fi', "if (( $# < 1 )); then usage; fi"],
)
def test_a_script_that_asks_for_arguments_is_given_what_is_empty_without(asks: str) -> None:
    text = f'{FUNCTIONS}MODEL=\nEPOCHS=3\n{asks}\n{LOOP}a --model "$MODEL" --epochs $EPOCHS'
    assert started(text) == ["a", "--model", None, "--epochs", "3"]
    assert started(text.replace(asks, "")) == ["a", "--model", "", "--epochs", "3"]


def test_the_run_that_is_meant_goes_on() -> None:
    text = 'MODEL=\nif [ -z "$MODEL" ]; then X=1; exit 1; else X=2; fi\na $X'
    assert started(text) == ["a", "2"]
