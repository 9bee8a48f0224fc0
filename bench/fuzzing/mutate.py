"""Small changes of a tree's files by chance, of the kinds that readers fail over."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from bench.fuzzing.trees import Tree

_TOKENS = [
    *(
        "0",
        "-1",
        "-0",
        "1e999",
        "-1e999",
        "1e-400",
        "NaN",
        "Infinity",
        "-Infinity",
        ".inf",
        ".nan",
        "9" * 30,
        "9" * 4400,
    ),
    *("null", "~", "true", "None", "...", "[]", "{}", "()", '""', "''", "[[]]", '{"": {}}', "auto", '"auto"', "none"),
    *("$", "${", "$(", "$((", "${a:-", "`", "$@", "${a[@]}", "$$", "\\", "\\\n", "|", "&&", "<<EOF", "<<<", ">", ";;"),
    *("*", "**", "%", "%s", "%(a)s", "{0}", "{a!r:>{b}}", "f'{a:{b}}'", "*a, ", "**k", "lambda: ", "await ", "yield "),
    *("import *", "from . import a\n", "del a\n", "return\n", "class A(A): pass\n", "match a:\n case _: pass\n"),
    *("&a ", "*a", "<<: *a\n", "!!python/object:a ", "? ", "- - - ", "--- \n", "...\n", "%YAML 9.9\n", "\t", "|+\n"),
    *("${a}", "${oc.env:A}", "???", "_target_: a.b\n", "defaults: [_self_, a: b]\n", "@package _global_\n"),
    *("::error::a", "##[error]a", "\x1b[2J", "\x00", "\x85", "\u2028", "\ufeff", "\ud800", "\U0010ffff", "\u202e", "é"),
    *("@all", "<img src=x>", "](http://a)", "```", "~~~", "#", "# lintfit: ignore", "# lintfit: ignore[a", "//", "/*"),
    *("\r", "\r\n", "\n\n\n", "\f", "\v", " " * 300, "(" * 150, "[" * 300, "{" * 300, '"' * 3, "'" * 3, "a." * 300),
    *(
        "--deepspeed",
        "--bf16",
        "--fp16=",
        "--nproc_per_node=",
        "-m",
        "--",
        "@a.args",
        "--config_file",
        "accelerate launch ",
    ),
]
_ODD_NAMES = [
    "a\nb",
    "::error::a",
    "-rf",
    "a b",
    "é",
    "\x1b[31ma",
    "@all",
    "a.json.py",
    "CON",
    "..a",
    "a" * 200,
    "*",
    "$(a)",
]
_SUFFIXES = (".py", ".sh", ".json", ".yaml", ".ipynb", ".md", ".toml", "")
_LONGEST = 400_000
"""Bytes that a file is let grow to."""


def mutated(random: Random, trees: list[Tree]) -> Tree:
    """A tree with some of its files changed; once in a while with files of another one."""
    tree = dict(random.choice(trees))
    if random.random() < 0.2:
        tree |= random.choice(trees)
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        name = random.choice(sorted(tree))
        if random.random() < 0.06:
            _move(random, tree, name)
        else:
            tree[name] = _changed(random, tree[name], random.choice(trees))[:_LONGEST]
    return tree


def _move(random: Random, tree: Tree, name: str) -> None:
    content = tree.pop(name)
    folder, _, own = name.rpartition("/")
    odd = (
        random.choice(_ODD_NAMES) + random.choice(_SUFFIXES)
        if random.random() < 0.5
        else own + random.choice(_SUFFIXES)
    )
    tree[f"{folder}/{odd}" if folder else odd] = content


def _changed(random: Random, content: bytes, other: Tree) -> bytes:
    change: Callable[[Random, str, Tree], str] = random.choice(_CHANGES)
    text = change(random, content.decode("utf-8", "surrogateescape"), other)
    encoding = random.choices(("utf-8", "utf-8-sig", "utf-16", "latin-1"), (60, 1, 1, 1))[0]
    try:
        return text.encode(encoding, "surrogatepass" if encoding == "utf-16" else "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _stretch(random: Random, text: str) -> tuple[int, int]:
    start = random.randint(0, len(text))
    return start, min(len(text), start + random.choice((0, 1, 1, 3, 10, 60, 400)))


def _token(random: Random, text: str, _: Tree) -> str:
    start, end = _stretch(random, text)
    return text[:start] + random.choice(_TOKENS) + text[end:]


def _word(random: Random, text: str, _: Tree) -> str:
    """Another word in the place of one: a token, or one of the text's own."""
    found = list(re.finditer(r"[\w.+-]+|\"[^\"\n]*\"|'[^'\n]*'", text))
    if not found:
        return text
    at = random.choice(found)
    new = random.choice(_TOKENS) if random.random() < 0.6 else random.choice(found)[0]
    return text[: at.start()] + new + text[at.end() :]


def _cut(random: Random, text: str, _: Tree) -> str:
    start, end = _stretch(random, text)
    return text[:start] + text[end:] if random.random() < 0.8 else text[:start]


def _doubled(random: Random, text: str, _: Tree) -> str:
    start, end = _stretch(random, text)
    return text[:end] + text[start:end] * random.choice((1, 1, 2, 40, 1000)) + text[end:]


def _lines(random: Random, text: str, _: Tree) -> str:
    """Lines moved, doubled or indented."""
    lines = text.splitlines(keepends=True) or [""]
    at = random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            lines.insert(random.randrange(len(lines) + 1), lines[at])
        case 1:
            lines.insert(random.randrange(len(lines)), lines.pop(at))
        case 2:
            lines[at] = random.choice((" ", "\t", "    ", "  - ")) + lines[at]
        case _:
            lines[at] = lines[at] * random.choice((2, 30, 500))
    return "".join(lines)


def _spliced(random: Random, text: str, other: Tree) -> str:
    """A stretch of a file of another tree."""
    more = random.choice(sorted(other.items()))[1].decode("utf-8", "surrogateescape")
    start, end = _stretch(random, more)
    at = random.randint(0, len(text))
    return text[:at] + more[start : max(end, start + 80)] + text[at:]


def _flipped(random: Random, text: str, _: Tree) -> str:
    characters = list(text)
    for _ in range(random.choice((1, 2, 8))):
        if characters:
            characters[random.randrange(len(characters))] = chr(
                random.choice((0, 9, 10, 13, 34, 39, 92, 127, 255, 8232))
            )
    return "".join(characters)


_CHANGES = (_token, _token, _word, _word, _word, _cut, _doubled, _lines, _lines, _spliced, _flipped)
