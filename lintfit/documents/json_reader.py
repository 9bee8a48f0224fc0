"""JSON as DeepSpeed reads it, with a span for every key and value.

DeepSpeed loads its config with ``hjson.load`` (``deepspeed/runtime/config.py:DeepSpeedConfig.__init__``), which takes
comments, trailing and missing commas, bare keys and words, single quotes, ``'''`` strings and no braces at the root;
transformers and accelerate load the same file with ``json.load``, which takes none of these. So the values here are
HJSON's (syntax: https://hjson.github.io/syntax.html, behaviour: hjson 3.1.0), and whatever ``json.load`` would refuse
becomes a ``not-strict-json`` problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn

from lintfit.documents.json_strictness import Strictness
from lintfit.documents.limits import (
    MAX_BYTES,
    MAX_COMMENTS,
    MAX_DEPTH,
    MAX_VALUES,
    MOST_DIGITS,
    TOO_MANY,
    TOO_MANY_COMMENTS,
    not_utf8,
    too_large,
    too_many_digits,
)
from lintfit.documents.lines import line_start
from lintfit.documents.model import DataDocument, Entry, FileText, Kind, Node, Problem, Scalar, Span
from lintfit.documents.steps import Steps

_SPACE = re.compile(r"[ \t\n\r]*")
_EASY_STRING = re.compile(r'"([^"\\\x00-\x1f]*)"')
_EASY_KEY = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*(?![ \t\n\r/#])')
_LITERAL = re.compile(
    r"(?:(?P<word>true|false|null)[^\S\r\n]*"
    r"|(?P<integer>-?(?:0|[1-9][0-9]*))(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?[ \t]*)"
    r"(?=[\r\n,}\]#]|/[/*]|\Z)"
)
_BARE_KEY = re.compile(r"[^:{}\[\], \t\n\r]+")
_LINE = re.compile(r"[^\r\n]*")
_STRING_CHUNK = re.compile(r"[^'\"\\\x00-\x1f]*")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_NOT_FINITE = re.compile(r"(?:NaN|-?Infinity)(?=[ \t]*[,}\]\r\n]|[ \t]*\Z)")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {c: c for c in "\"'\\/"}
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}


class _Stop(Exception):
    """Reading cannot go on: the problem that says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def read_json(file: FileText) -> DataDocument:
    """Read JSON or HJSON text into a tree.

    Never raises for bad text: where it cannot be read, ``root`` is None and one ``syntax-error`` says why and where.
    So does one for text that is not UTF-8, as which every library opens a config; its tree is there all the same.
    Other problems are ``duplicate-key`` and one ``not-strict-json`` for each sort of construct that ``json.load``
    refuses, at its first place, with edits for all its places where these keep every value.
    """
    text = file.text
    if len(text) > MAX_BYTES[Kind.JSON]:
        large = Problem("syntax-error", too_large(Kind.JSON), Span(0, 0))
        return DataDocument(file, Kind.JSON, (large,), strict=False)
    reader = _Reader(text)
    try:
        root = reader.document()
    except _Stop as stop:
        return DataDocument(file, Kind.JSON, (stop.problem,), strict=_json_reads(text) and not file.bom)
    notes = reader.strictness
    utf8 = file.encoding == "utf-8"
    if not utf8:
        reader.problems.append(Problem("syntax-error", not_utf8(file.encoding), Span(0, 0)))
    elif file.bom:
        notes.byte_order_mark()
    strict = utf8 and (not notes.kinds or (notes.kinds == {"nan"} and _json_reads(text)))
    problems = [*reader.problems, *notes.problems(text, root, _values)]
    problems.sort(key=lambda problem: problem.span)
    return DataDocument(file, Kind.JSON, tuple(problems), root=root, strict=strict)


def _values(text: str) -> object:
    """The plain values of a text; raises ValueError where it cannot be read."""
    try:
        return _Reader(text).document().plain()
    except _Stop as stop:
        raise ValueError(str(stop)) from None


def _json_reads(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class _Reader:
    """A recursive descent over the text; every method takes an offset and returns where it ended."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.strictness = Strictness()
        self.problems: list[Problem] = []
        self.open: list[int] = []
        self.steps = Steps(MAX_VALUES, "values")
        self.line = 0, 0
        """A place, and where its line begins."""
        self.key_name = ""
        """The key whose value is read, for what is wrong with that."""
        self.greedy: Span | None = None
        """The last bare word that ran over a comma or bracket: the usual cause of a later error."""

    def document(self) -> Node:
        start = self.skip(0)
        if start == len(self.text):
            self.problems.append(Problem("syntax-error", "the file is empty: it holds no value", Span(0, 0)))
            return Node("mapping", Span(0, 0))
        node, end = self.root(start)
        end = self.skip(end)
        if end < len(self.text):
            if self.text[end] in "}]":
                self.stop(f"this {self.text[end]!r} closes nothing", end)
            self.stop("text after the end of the config", end)
        return node

    def root(self, start: int) -> tuple[Node, int]:
        if self.text[start] in "{[":
            return self.value(start)
        try:
            self.strictness.missing_braces(start, self.text)
            return self.members(start, start, bare_root=True)
        except _Stop as stop:
            # Like hjson: a text that is no list of members may still be one value.
            self.strictness, self.problems, self.open = Strictness(), [], []
            self.skip(0)
            try:
                node, end = self.value(start)
                if self.skip(end) == len(self.text):
                    return node, end
            except _Stop as value_stop:
                if self.text.startswith("'''", start):
                    raise value_stop from None
            raise stop from None

    def value(self, start: int) -> tuple[Node, int]:
        text = self.text
        if not self.steps.take():
            self.stop(TOO_MANY, start)
        character = text[start : start + 1]
        if character == '"':
            easy = _EASY_STRING.match(text, start)
            if easy:
                return Node("scalar", Span(start, easy.end()), easy[1]), easy.end()
        if character in ('"', "'"):
            string, end = self.multiline(start) if text.startswith("'''", start) else self.quoted(start)
            return Node("scalar", Span(start, end), string), end
        if character == "{":
            return self.nested(start, self.mapping)
        if character == "[":
            return self.nested(start, self.sequence)
        return self.word(start)

    def nested(self, start: int, read: Callable[[int], tuple[Node, int]]) -> tuple[Node, int]:
        self.open.append(start)
        if len(self.open) > MAX_DEPTH:
            self.stop(f"nested more than {MAX_DEPTH} levels deep: not a config", start)
        result = read(start)
        self.open.pop()
        return result

    def mapping(self, start: int) -> tuple[Node, int]:
        first = self.skip(start + 1)
        if self.text[first : first + 1] == "}":
            return Node("mapping", Span(start, first + 1)), first + 1
        return self.members(start, first)

    def members(self, start: int, offset: int, bare_root: bool = False) -> tuple[Node, int]:
        text = self.text
        entries: list[Entry] = []
        seen: dict[str, Span] = {}
        while True:
            key, key_span, offset = self.key(offset)
            self.key_name = key
            value, offset = self.value(offset)
            entries.append(Entry(key, key_span, value, Span(key_span.start, offset := value.span.end)))
            if key in seen:
                detail = f"the key {_shorten(json.dumps(key, ensure_ascii=False))} stands twice in the same object"
                related = ((seen[key], "first here"),)
                self.problems.append(Problem("duplicate-key", detail, key_span, related=related))
            seen.setdefault(key, key_span)
            end = offset
            offset = self.skip(offset)
            comma = text.startswith(",", offset)
            if comma:
                offset = self.skip(at := offset, 1)
            closed = offset == len(text) if bare_root else text.startswith("}", offset)
            if closed:
                if comma:
                    self.strictness.trailing_comma(at)
                behind = offset if bare_root else offset + 1
                return Node("mapping", Span(start, end if bare_root else behind), entries=tuple(entries)), behind
            if not comma and offset < len(text) and text[offset] not in "}]":
                self.strictness.missing_comma(end)

    def sequence(self, start: int) -> tuple[Node, int]:
        text = self.text
        elements: list[Node] = []
        offset = self.skip(start + 1)
        while not text.startswith("]", offset):
            element, offset = self.value(offset)
            elements.append(element)
            end = element.span.end
            offset = self.skip(offset)
            comma = text.startswith(",", offset)
            if comma:
                offset = self.skip(at := offset, 1)
                if text.startswith("]", offset):
                    self.strictness.trailing_comma(at)
            elif offset < len(text) and text[offset] not in "]}":
                self.strictness.missing_comma(end)
        return Node("sequence", Span(start, offset + 1), elements=tuple(elements)), offset + 1

    def key(self, start: int) -> tuple[str, Span, int]:
        """A key, its span, and where its value starts."""
        text = self.text
        easy = _EASY_KEY.match(text, start)
        if easy:
            return easy[1], Span(start, easy.end(1) + 1), easy.end()
        character = text[start : start + 1]
        if character in ('"', "'"):
            key, end = self.quoted(start)
        else:
            bare = _BARE_KEY.match(text, start)
            if bare is None:
                self.no_key(start)
            key, end = bare.group(), bare.end()
            self.strictness.bare_key(Span(start, end), key)
        colon = self.skip(end) if character in ('"', "'") else _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if not text.startswith(":", colon):
            self.no_colon(Span(start, end), colon)
        return key, Span(start, end), self.skip(colon, 1)

    def word(self, start: int) -> tuple[Node, int]:
        """A number, a constant, or HJSON's bare word, which reaches to the end of the line."""
        text = self.text
        literal = _LITERAL.match(text, start)
        if literal:
            end = literal.end("word") if literal["word"] else start + len(literal.group().rstrip(" \t"))
            value = _WORDS[literal["word"]] if literal["word"] else self.number(literal, Span(start, end))
            return Node("scalar", Span(start, end), value), end
        if start == len(text):
            self.end_of_text(start, "a value is missing")
        if text[start] == "}" and self.open and text[self.open[-1]] == "[":
            self.stop("the ']' is missing before this '}'", start, related=self.open[-1])
        if text[start] in "{}[],:":
            self.stop(f"a value is missing before this {text[start]!r}", start)
        line = _LINE.match(text, start)
        word = line.group().strip() if line else ""
        span = Span(start, start + len(word))
        not_finite = _NOT_FINITE.match(text, start)
        if not_finite:
            self.strictness.not_finite(Span(start, not_finite.end()))
        else:
            self.strictness.bare_word(span, word)
        if word.count("}") + word.count("]") > word.count("{") + word.count("["):
            self.greedy = span
        return Node("scalar", span, word), span.end

    def number(self, literal: re.Match[str], span: Span) -> int | float:
        if span.end - span.start > MOST_DIGITS:
            self.stop(too_many_digits(self.key_name, len(literal.group().strip())), span.start, span.end)
        if not (literal["fraction"] or literal["exponent"]):
            return int(literal["integer"])
        number = float(literal.group())
        try:
            whole = int(number)
        except OverflowError:
            self.stop(f"{_shorten(self.text[span.start : span.end])} is larger than any number", span.start, span.end)
        return whole if whole == number and abs(number) < 1e10 else number

    def quoted(self, start: int) -> tuple[str, int]:
        text, quote = self.text, self.text[start]
        parts: list[str] = []
        offset, strict = start + 1, quote == '"'
        while True:
            chunk = _STRING_CHUNK.match(text, offset)
            assert chunk is not None
            parts.append(chunk.group())
            offset = chunk.end()
            character = text[offset : offset + 1]
            if character == quote:
                break
            if character in ('"', "'"):
                parts.append(character)
                offset += 1
            elif character == "\\":
                part, offset, plain = self.escape(start, offset)
                parts.append(part)
                strict = strict and plain
            elif character in ("", "\n", "\r"):
                self.stop(f"this string is never closed: the {quote} is missing", start, offset)
            else:
                self.stop(f"a control character ({character!r}) in a string: write it as an escape", offset, offset + 1)
        value, span = "".join(parts), Span(start, offset + 1)
        if not strict:
            self.strictness.quotes(span, value, single=quote == "'")
        return value, offset + 1

    def escape(self, string: int, offset: int) -> tuple[str, int, bool]:
        r"""What the escape at ``offset`` stands for, where it ends, and whether JSON knows it (``\'`` it does not)."""
        text = self.text
        code = text[offset + 1 : offset + 2]
        if code == "u":
            digits = _HEX4.match(text, offset + 2)
            if digits is None:
                self.stop(r"\u needs four hexadecimal digits", offset, offset + 2)
            number = int(digits.group(), 16)
            low = _LOW_SURROGATE.match(text, digits.end()) if 0xD800 <= number < 0xDC00 else None
            if low:
                return chr(0x10000 + ((number - 0xD800) << 10 | int(low[1], 16) - 0xDC00)), low.end(), True
            return chr(number), digits.end(), True
        if not code:
            self.stop(f"this string is never closed: the {text[string]} is missing", string, len(text))
        if code not in _ESCAPES:
            self.stop(rf"\{code} is no escape: write \\ for a backslash", offset, offset + 2)
        return _ESCAPES[code], offset + 2, code != "'"

    def multiline(self, start: int) -> tuple[str, int]:
        """A ``'''`` string: its lines lose the indentation of the opening quotes."""
        text = self.text
        close = text.find("'''", start + 3)
        if close < 0:
            self.stop("this string is never closed: the ''' is missing", start, start + 3)
        indent = self.indentation(start)
        body = re.sub(r"\r\n?", "\n", text[start + 3 : close])
        lines = body.lstrip(" \t").split("\n")
        lines[1:] = [_indented_less(line, indent) for line in lines[1:]]
        if len(lines) > 1 and not lines[0]:
            del lines[0]
        value = "\n".join(lines).removesuffix("\n")
        self.strictness.multiline(Span(start, close + 3), value)
        return value, close + 3

    def indentation(self, start: int) -> int:
        """How many blanks hjson takes off the lines of a ``'''`` string that opens at ``start``."""
        begin = self.line_start(start)
        if begin:
            return start - begin
        # On the first line hjson's search for a line break goes on backwards from the end of the text.
        last = line_start(self.text, len(self.text)) - 1
        if last < 0:
            self.stop("hjson fails (IndexError) at a ''' string in a text of one line", start, start + 3)
        return start - 1 + len(self.text) - last

    def line_start(self, offset: int) -> int:
        """Where a line begins; on a long one only what lies behind the last such place is searched."""
        known, begin = self.line
        low = known if known <= offset else 0
        found = max(self.text.rfind("\n", low, offset), self.text.rfind("\r", low, offset))
        self.line = offset, found + 1 if found >= 0 or not low else begin
        return self.line[1]

    def skip(self, offset: int, consumed: int = 0) -> int:
        """The offset of the next character that is neither white space nor comment."""
        text = self.text
        offset += consumed
        while True:
            offset = _SPACE.match(text, offset).end()  # type: ignore[union-attr]
            character = text[offset : offset + 1]
            if character == "#" or (character == "/" and text.startswith("//", offset)):
                end = _LINE.match(text, offset).end()  # type: ignore[union-attr]
            elif character == "/" and text.startswith("/*", offset):
                end = text.find("*/", offset + 2) + 2
                if end == 1:
                    self.stop("this comment is never closed: the */ is missing", offset, offset + 2)
            else:
                return offset
            if len(self.strictness.comments) >= MAX_COMMENTS:
                self.stop(TOO_MANY_COMMENTS, offset, end)
            self.strictness.comment(Span(offset, end))
            offset = end

    def no_key(self, offset: int) -> NoReturn:
        if offset == len(self.text):
            self.end_of_text(offset, "a key is missing")
        character = self.text[offset]
        if character == ":":
            self.stop("a key is missing before this ':'", offset)
        if character == "]" and self.open:
            self.stop("this ']' does not close the '{' that is open", offset, related=self.open[-1])
        if character == "}":
            self.stop("this '}' closes nothing", offset)
        self.stop(f"a key was expected, not {character!r}", offset)

    def no_colon(self, key: Span, offset: int) -> NoReturn:
        word = _shorten(self.text[key.start : key.end])
        if offset == len(self.text):
            self.end_of_text(offset, f"a ':' and a value are missing after {word}")
        self.stop(f"a ':' is missing after the key {word}", key.start, key.end)

    def end_of_text(self, offset: int, what: str) -> NoReturn:
        if self.open:
            opener = self.open[-1]
            closer = "}" if self.text[opener] == "{" else "]"
            self.stop(f"the {self.text[opener]!r} is never closed: a {closer!r} is missing", opener)
        self.stop(what, offset)

    def stop(self, detail: str, start: int, end: int | None = None, related: int | None = None) -> NoReturn:
        span = Span(start, min(len(self.text), start + 1) if end is None else end)
        places: tuple[tuple[Span, str], ...] = ()
        if related is not None:
            places = ((Span(related, related + 1), "opened here"),)
        if self.greedy:
            word = _shorten(self.text[self.greedy.start : self.greedy.end])
            detail = f"a bare word reaches to the end of its line, so this is one string: {word}; put it in quotes"
            span, places = self.greedy, ()
        raise _Stop(Problem("syntax-error", detail, span, related=places))


def _indented_less(line: str, most: int) -> str:
    """A line without its first blanks, so many of them at most."""
    return line[min(most, len(line) - len(line.lstrip(" \t"))) :]


def _shorten(text: str, width: int = 40) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
