"""Names and values of hostile files in every format and stream: no command, no escape, no mention, no link."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lintfit.errors import defused, one_line
from lintfit.report import REPORTERS
from lintfit.report.markdown import code, text
from tests.support import Outcome, lintfit

WORDS = (
    "a\n::error file=x::pwned",
    "x\r::error::pwned",
    "::error::pwned",
    "w " * 60 + "::error::pwned " * 20,
    "##[error]pwned",
    "b ##[add-mask]pwned",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eevil\u2028::error::x\u2029y\x85::error::z",
    "x\x0b::error::p\x0c::error::q\x1c::error::r",
    "\u3000::error::pwned",
    "@octocat https://evil.example/x www.evil.example #1 GH-1 <img src=x> [a](http://e) ![b](//e)|`c` octo/repo#3",
)
TRAIN = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained({!r})
Trainer(model=model, args=TrainingArguments("out", deepspeed="ds.json")).train()
"""
_BREAKS = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_OWN = re.compile(r"::(error|warning|notice) title=lintfit ")


def commands(shown: str, *, github: bool = False) -> list[str]:
    """The lines that GitHub's runner would obey, but for those of the format that is meant for it."""
    lines = [line.strip() for line in _BREAKS.split(shown)]
    others = [line for line in lines if not (github and _OWN.match(line))]
    return [line for line in others if re.match(r"::(?!: )", line) or "##[" in line]


def checked(folder: Path, word: str) -> tuple[Outcome, dict[str, str]]:
    """A check of files that hold the word as key, value, name, flag and rule; what it prints, and every report."""
    named = re.sub(r"[\x00/]", "_", word)[:60]
    data = {word: 1, "zero_optimization": {"stage": 2, word: 3}, "optimizer": {"type": word}}
    (folder / "ds.json").write_text(json.dumps(data, ensure_ascii=False))
    (folder / f"{named}.json").write_text('{"zero_optimization": {"stag": 2}, "zero_x": 1, "train_batch_size": 1')
    (folder / "train.py").write_text(TRAIN.format(word))
    line = " ".join(word.replace("'", "").split())
    (folder / "run.sh").write_text(f"deepspeed train.py --bf16 '--{line}=3'\n# lintfit: ignore[{line}]\n")
    formats = [f"{name}:{name}.out" for name in REPORTERS if name != "text"]
    flags = [part for each in formats for part in ("--output-format", each)]
    outcome = lintfit(
        *("check", ".", f"./{named}.json", named, "--gpu", "3090", "--gpus", "2", "--verbose"),
        *("--output-format", "text", *flags),
        cwd=folder,
    )
    return outcome, {name: (folder / f"{name}.out").read_text("utf-8") for name in REPORTERS if name != "text"}


@pytest.mark.parametrize("word", WORDS, ids=range(len(WORDS)))
def test_no_output_steers_or_commands(word: str, tmp_path: Path) -> None:
    outcome, reports = checked(tmp_path, word)
    for name, shown in {"text": outcome.out, "errors": outcome.err, **reports}.items():
        assert commands(shown, github=name == "github") == [], name
        assert _STEERING.search(shown) is None, name
    assert all(line.startswith("lintfit: ") for line in outcome.err.splitlines())


@pytest.mark.parametrize("word", WORDS, ids=range(len(WORDS)))
def test_markdown_mentions_nobody_and_leads_nowhere(word: str, tmp_path: Path) -> None:
    _, reports = checked(tmp_path, word)
    review = json.loads(reports["github-review"])
    for shown in (reports["markdown"], review["body"], *(comment["body"] for comment in review["comments"])):
        outside = re.sub(r"(?s)(`{3,}).*?\n\1", "", shown)
        outside = re.sub(r"(?s)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
        for reaching in (r"@octocat", r"://", r"www\.\w", r"(?<!\\)<img", r"(?<!\\)\]\(", r"(?<!&)#\d", r"GH-\d"):
            assert re.search(reaching, outside) is None


def test_what_markdown_shows_stays() -> None:
    assert text("a_b 10% of 5 GiB, issue 12") == "a_b 10% of 5 GiB, issue 12"
    assert text("@a") == "@&#8203;a"
    assert code("@a") == "`@a`"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a::b", "a::b"),
        ("::error::x", "\\::error::x"),
        ("a\n \t::error::x", "a\n \t\\::error::x"),
        ("\x1b[1m::error::x", "\x1b[1m\\::error::x"),
        ("a ##[group]b", "a ##\\[group]b"),
        ("  ::: train.py", "  ::: train.py"),
        ("## [a]", "## [a]"),
    ],
)
def test_defused(said: str, shown: str) -> None:
    assert defused(said) == shown
    assert defused(shown) == shown


def test_a_line_of_an_error() -> None:
    assert one_line("##[error]a\n::b") == "##\\[error]a\\n::b"
