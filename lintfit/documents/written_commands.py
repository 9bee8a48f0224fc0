"""Commands among other text: which lines of a docstring, a comment or a page are commands, and how far they reach.

What is no command is blanked out, so that every offset is one of the real file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lintfit.documents.patterns import lazy_pattern

_NOT_BREAK = lazy_pattern(r"[^\r\n]+")
_PROGRAM = (
    r"(?:accelerate(?:[ \t]+launch|-launch)|torchrun|deepspeed|python[\d.]*|swift|megatron|llamafactory-cli"
    r"|lmf|axolotl|tune[ \t]+run|trl|litgpt|xtuner|(?:uv|poetry|pipenv|fabric|modal)[ \t]+run|srun|mpirun|nohup|env"
    r"|composer|ray[ \t]+job[ \t]+submit)"
)
_LAUNCHER = rf"(?:\S*/)?{_PROGRAM}"
STARTED = rf"(?<![\w.=-]){_PROGRAM}[ \t]+\S"
"""The same somewhere in a text, for a quick look."""
STARTS = rf"(?:[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'])*[ \t]+)*{_LAUNCHER}[ \t]+\S"
"""How a command begins that may start a training."""
WORDS = (
    *("torchrun", "accelerate", "deepspeed ", ".py", "-m ", "swift ", "megatron ", "llamafactory", "lmf ", "axolotl"),
    *("tune run", "trl ", "litgpt", "xtuner", "composer"),
)
"""One of these is in every such command."""
PROMPT = r"(?:\([\w.-]+\)[ \t]*+)?(?:[\w.-]++@[\w.-]++:?[^\s$#%]*+)?[ \t]*+(?:[$%][ \t]+|![ \t]*)|>>>[ \t]+"
"""What stands in front of it: a shell's prompt, IPython's ``!``."""

ASSIGNED = r"[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|(?:\$\{\w+\}|[^\s\"'`,;()\[\]{}=<>|&])+)[ \t]*(?:#.*)?\r?\n?$"
"""A line that sets a variable for the commands below it: ``model=phi``."""
_LABEL = r"(?:[Uu]sage|[Rr]un|[Ee]xample)s?[ \t]*:[ \t]*|[^\W_][^:：`'\"=$\\/\r\n]{0,30}+(?::[ \t]+|：[ \t]*)"
"""What may stand in front of it in a line of prose: ``Usage:``, ``On 2 GPUs:``, ``单卡：``."""
_COMMAND = lazy_pattern(
    rf"^[ \t]*+(?:{_LABEL})?(?:{PROMPT})?`?"
    rf"(?P<command>{STARTS}.*|export[ \t]+[A-Za-z_]\w*=.*|cd[ \t]+\S+[ \t]*$|{ASSIGNED})"
)
_PROMPT = lazy_pattern(rf"^[ \t]*+(?:{PROMPT})(?=[^\s=])")
_LOOSE_END = lazy_pattern(r"\\([ \t]+(?:#[^\r\n]*)?)(?=\r?\n?$)")


def blank(text: str) -> str:
    """As many blanks as the text has characters; its line breaks stay."""
    return _NOT_BREAK.sub(lambda line: " " * len(line[0]), text)


def passed_over(length: int) -> str:
    """So many characters that are one comment, which is parsed at once."""
    return "#".ljust(length - 1) + "\n" if length > 1 else "\n" * length


def joined(line: str) -> str:
    """A line with its backslash at the very end, where blanks or a comment stand behind it: those who read the page
    cannot see them, and what is meant is plain (the rule cut-off-command reports them)."""
    return _LOOSE_END.sub(lambda match: " " * len(match[1]) + "\\", line)


def goes_on(line: str) -> bool:
    return line.rstrip("\r\n").endswith("\\")


def commands_in(lines: Iterable[str]) -> Iterator[str]:
    """Lines of prose with blanks for all that is no command; a docstring's doubled backslash is one."""
    continued = False
    for written in lines:
        line = joined(re.sub(r"\\\\(?=[ \t]*\r?\n?$)", r" \\", written))
        found = _COMMAND.match(line)
        if found is None and not continued:
            yield blank(line)
            continue
        start = found.start("command") if found is not None and not continued else 0
        continued = goes_on(line)
        yield blank(line[:start]) + line[start:]


def of_prompts(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a session with blanks for the prompts and for what was printed."""
    continued = False
    for written in lines:
        line = joined(written)
        found = _PROMPT.match(line)
        if found is None and not continued:
            yield blank(line)
            continue
        start = found.end() if found is not None and not continued else 0
        if continued and (more := re.match(r"[ \t]*>[ \t]", line)) is not None:
            start = more.end()
        continued = goes_on(line)
        yield blank(line[:start]) + line[start:]


def has_prompts(lines: Iterable[str]) -> bool:
    """Whether commands stand behind prompts."""
    return any(_PROMPT.match(line) for line in lines)
