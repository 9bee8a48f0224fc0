"""Pages of Markdown: the commands in their fenced and indented blocks.

Each block is read as a shell of its own. All that is no command is blanked out, so that every offset is one of the
file. A block of JSON or YAML under a file's name is that file, where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lintfit.documents.model import Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import without_angles
from lintfit.documents.written_commands import (
    ASSIGNED,
    STARTED,
    WORDS,
    commands_in,
    has_prompts,
    joined,
    of_prompts,
    passed_over,
)
from lintfit.frozen import frozen, word_set

SUFFIXES = (".md", ".markdown", ".mdx")

_SHELLS = word_set("bash sh shell zsh ksh console shell-session shellsession terminal commandline command-line cmd")
"""Names of languages (GitHub's Linguist, Pygments, and what people write) of blocks that hold commands."""
_NO_COMMANDS = word_set("json jsonc json5 yaml yml toml ini xml html css diff patch csv mermaid bibtex latex")
"""Names of blocks that hold no commands. Those of any other language, or of none, may hold them among other text."""
_OPENING = lazy_pattern(
    r"^(?P<prefix>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*)\r?$", re.MULTILINE
)
_START = lazy_pattern(STARTED)
_SCRIPT = lazy_pattern(r"\.py\b|[ \t]-m[ \t]")
_TRAINING = lazy_pattern(
    r"train|tun|sft|dpo|grpo|ppo|rlhf|orpo|kto|lora|batch|epoch|learning|lr|reward|distil|deepspeed|main", re.IGNORECASE
)
_SET_OFF = lazy_pattern(
    r"\n(?: {4}|\t)[ \t]*(?:[$%][ \t]+)?(?:[A-Z_]+=|torchrun|accelerate|deepspeed|python|env |srun|nohup|swift "
    r"|megatron |llamafactory|lmf |axolotl|tune |trl |litgpt|xtuner|composer)"
)
"""A line of an indented block that may start something."""
_DATA = word_set("json jsonc json5 yaml yml")
_NAMES = lazy_pattern(r"(?<![\w./-])[\w./-]*\w\.(?:jsonc?|ya?ml)\b")
_PYTHON = word_set("python py python3")
_SCRIPT_NAME = lazy_pattern(r"#[ \t]*(?:[Ff]ile(?:name)?:[ \t]*)?`?([\w.-]+(?:/[\w.-]+)*\.py)`?[ \t]*\r?\n")
_IMPORTS = lazy_pattern(r"^(?:import|from)[ \t]+\w", re.MULTILINE)
_QUOTE = lazy_pattern(r"^[ \t]*(?:>[ \t]?)+")


@frozen
class Block:
    """A fenced block: the name of its language in small letters, and where what it holds begins and ends."""

    language: str
    start: int
    end: int
    quoted: bool = False
    """Whether it stands in a quotation, with ``>`` in front of each of its lines."""


def is_page(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


_FENCE = lazy_pattern("```|~~~")


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order; one that is not closed reaches to the end."""
    position = 0
    while (at := _next_fence(text, position)) >= 0:
        line = text.rfind("\n", 0, at) + 1
        found = _OPENING.match(text, line) if line >= position or position == 0 else None
        if found is None:
            position = at + 3
            continue
        start = min(found.end() + 1, len(text))
        closing = re.compile(rf"^[ \t>]*{found['fence'][0]}{{{len(found['fence'])},}}[ \t]*\r?$", re.MULTILINE)
        end = closing.search(text, start)
        info = found["info"].strip().lower()
        language = re.split(r"[\s,{:]", info.lstrip("{."), maxsplit=1)[0].rstrip("}")
        yield Block(language, start, end.start() if end is not None else len(text), ">" in found["prefix"])
        if end is None:
            return
        position = end.end()


def _next_fence(text: str, position: int) -> int:
    found = _FENCE.search(text, position)
    return found.start() if found is not None else -1


_HEADING = lazy_pattern(r"^ {0,3}(?:#{1,6}[ \t]|(?:={3,}|-{3,})[ \t]*\r?$)", re.MULTILINE)
"""A heading, or the line below one."""


def under_one_heading(text: str, one: int, another: int) -> bool:
    """Whether no heading of a page stands between two places in it."""
    first, last = sorted((one, another))
    inside = [(block.start, block.end) for block in blocks(text)]
    headings = (found.start() for found in _HEADING.finditer(text, first, last))
    return all(any(start <= at < end for start, end in inside) for at in headings)


def with_commands(text: str) -> Iterator[Block]:
    """The blocks that may start something, in order."""
    fenced = [*blocks(text)]
    for block in sorted((*fenced, *_indented(text, fenced)), key=lambda each: each.start):
        if block.language not in _NO_COMMANDS and _hints(text, block):
            yield block


def _indented(text: str, fenced: Sequence[Block]) -> Iterator[Block]:
    """Blocks that are set off by four blanks or a tab and an empty line above, outside of the fenced ones."""
    if _SET_OFF.search(text) is None:
        return
    start, end, at, empty = -1, -1, 0, True
    ends = iter([*fenced, Block("", len(text), len(text))])
    fence = next(ends)
    for line in text.splitlines(keepends=True):
        while at >= fence.end and fence.end < len(text):
            fence = next(ends)
        outside, blank = not fence.start <= at < fence.end, not line.strip()
        if outside and not blank and line.startswith(("    ", "\t")) and (start >= 0 or empty):
            start, end = start if start >= 0 else at, at + len(line)
        elif start >= 0 and not (blank and outside):
            yield Block("", start, end)
            start = -1
        at += len(line)
        empty = blank
    if start >= 0:
        yield Block("", start, end)


def _hints(text: str, block: Block) -> bool:
    """Whether a block has a launcher in it, or a Python script and a word of training."""
    found = _START.search(text, block.start, block.end)
    while found is not None and found.group().startswith(("python", "env", "nohup", "srun")):
        if _SCRIPT.search(text, found.start(), block.end) and _TRAINING.search(text, found.start(), block.end):
            return True
        found = _START.search(text, found.end(), block.end)
    return found is not None


def starts_something(text: str) -> bool:
    """Whether a page has a block that may start something: a cheap look."""
    return any(word in text for word in WORDS) and next(with_commands(text), None) is not None


def shells(text: str) -> Iterator[str]:
    """The page with blanks for all but the commands of one block, up to its end, for each that may start something.

    What the page sets above it stays, too: who follows the page has it in the shell that the block is typed into.
    """
    kept_lines = set_once(text)
    for block in with_commands(text):
        lines = text[block.start : block.end].splitlines(keepends=True)
        if block.quoted:
            lines = [_without_quote(line) for line in lines]
        if has_prompts(lines):
            kept = of_prompts(lines)
        elif block.language in _SHELLS:
            kept = map(joined, lines)
        else:
            kept = commands_in(lines)
        yield _above(text, kept_lines, block.start) + without_angles("".join(kept))


_SETS = lazy_pattern(
    r"^[ \t]*(?:[$%][ \t]+)?(?P<set>(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)=(?P<value>[^\r\n]*))\r?$", re.MULTILINE
)
_WHOLE = lazy_pattern(rf"(?:export[ \t]+)?{ASSIGNED}")


def set_once(text: str) -> list[Span]:
    """Where the blocks of a page set a variable on a line of its own, of those that it always gives the same value."""
    if "=" not in text or "$" not in text:
        return []
    found: dict[str, list[re.Match[str]]] = {}
    for block in blocks(text):
        if (block.language in _SHELLS or not block.language) and not block.quoted:
            for match in _SETS.finditer(text, block.start, block.end):
                found.setdefault(match["name"], []).append(match)
    once = (matches for matches in found.values() if len({match["value"].strip() for match in matches}) == 1)
    spans = [Span(*each.span("set")) for matches in once for each in matches if _WHOLE.fullmatch(each["set"])]
    return sorted(spans, key=lambda span: span.start)


def _above(text: str, kept: Sequence[Span], end: int) -> str:
    """A comment as long as what stands in front of a block, but for the lines that are kept."""
    made, position = "", 0
    for span in (*(each for each in kept if each.end < end), Span(end, end)):
        between = span.start - position
        made += ("\n" + passed_over(between - 1) if made else passed_over(between)) + text[span.start : span.end]
        position = span.end
    return made


def shown_files(text: str) -> Iterator[tuple[str, Block]]:
    """The files that a page shows: JSON and YAML with a file's name in the line above or in the first of the block,
    Python that imports something below a comment that is a file's name alone (``# train.py``)."""
    for block in blocks(text):
        if block.language in _PYTHON and not block.quoted:
            script = _SCRIPT_NAME.match(text, block.start, block.end)
            if script is not None and _IMPORTS.search(text, script.end(), block.end):
                yield script[1], block
        if block.language not in _DATA or block.quoted:
            continue
        opening = text.rfind("\n", 0, block.start - 1) + 1
        above = text[:opening].rstrip().rpartition("\n")[2]
        first = text[block.start : block.end].lstrip().partition("\n")[0]
        names = _NAMES.findall(above) or (_NAMES.findall(first) if first.startswith(("#", "//")) else [])
        if len(set(names)) == 1:
            yield names[0], block


def _without_quote(line: str) -> str:
    found = _QUOTE.match(line)
    return " " * found.end() + line[found.end() :] if found is not None else line
