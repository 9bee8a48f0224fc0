"""What a reader does not take for a config, however well it is formed: one line says why."""

from __future__ import annotations

from lintfit.documents.model import Kind
from lintfit.errors import shorten

MAX_BYTES = {Kind.JSON: 2 << 20, Kind.YAML: 128 << 10, Kind.SHELL: 512 << 10, Kind.PYTHON: 4 << 20}
"""Bytes of a file that is still read, by kind. The largest real DeepSpeed JSON seen has under 10 KiB, and of the YAML
files of 180 public repositories none has 60 KiB; ruamel.yaml takes some 8 us for each. Of shell scripts and pages of
400 the largest, a list of models, has 300 KiB; quotes and brackets take some 4 us and 300 bytes each."""

MAX_PLANNED = {Kind.JSON: 64 << 10, Kind.YAML: 64 << 10, Kind.PYTHON: 128 << 10, Kind.SHELL: 64 << 10}
"""Bytes of a file of a run that a plan is looked for: carrying one out reads each file of it some hundred times.
Of training scripts the longest that were seen have some 100 KiB and 2,600 lines."""
MAX_PLANNED_LINES = 4_000
MOST_DIGITS = 4000
"""Digits of a number that is still read. Python itself stops at 4,300 (``sys.int_info.default_max_str_digits``), and
what is made of such a number must still be written out."""

MAX_NOTEBOOK = 48 << 20
"""Bytes of a notebook that is still read: pictures in outputs make a few of them tens of MB."""

MAX_PARTS = 3_000_000
"""Lists, mappings and keys of JSON that is still read, as its brackets and colons tell: each takes Python some 150
bytes. The pictures that make a notebook large have none, and a figure of 48 MiB of points, written with a line for each
number, comes to under 2,500,000."""

MAX_LINES = 50_000
"""Lines of a Python file that is still read. No module of transformers has 10,000."""

MAX_MARKS = 40_000
"""Brackets, commas, operators and line breaks of a Python file that is still read: libcst takes some 60 us and 6 KB
for each, however long the lines are. Of 26,836 files of 180 public repositories the largest, a list of names, has
36,000."""
_MARKS = ",;([{.=+\n"

FEW_MARKS = 1000
"""So many of them are read fast whatever they are: the shape of such a file is not looked at."""

MAX_COPIED = 300_000
"""Nodes of a Python file that libcst copies, at some 6 us each: of every link of a chain (``a.b().c()``) all links
before it. A chain of 250 calls with four arguments comes to as many."""
MAX_LEVELS = 75_000
"""Brackets of a Python file, each counted by the brackets around it: libcst takes some 40 us for each of these."""

MAX_WORDS = 1000
"""Conditions that one ``and`` or ``or`` joins: libcst ends the process at some 20,000."""

MAX_VALUES = 10_000
"""Values of a JSON or YAML config, with every alias followed: real ones have some hundred. PyYAML shares what aliases
stand for; a tree that is walked cannot."""

MAX_DEPTH = 200
"""Levels of nesting. Python's recursion limit of 1000 stops hjson near 490 levels; real configs have under 10."""

TOO_MANY_PARTS = f"has more than {MAX_PARTS} lists, mappings and keys: no notebook that trains"
"""The line that says so of a notebook."""

TOO_MANY = f"more than {MAX_VALUES} values: not a config"
"""The line that says that a config has more values than are read."""

MAX_COMMENTS = 5_000
"""Comments of a JSON config, each with an edit that takes it out whenever the text is read: real ones have some ten."""

TOO_MANY_COMMENTS = f"more than {MAX_COMMENTS} comments: not a config"
"""The line that says that a config has more comments than are read."""


def json_parts(text: str | bytes) -> int:
    """How many lists, mappings and keys a JSON text has at the most."""
    if isinstance(text, str):
        return sum(map(text.count, "[{:"))
    return sum(map(text.count, (b"[", b"{", b":")))


def too_many_digits(name: str, digits: int) -> str:
    """The line that says that a number is longer than any that is read; ``name`` is its key."""
    return f"{shorten(name) or 'a number'} has {digits} digits: no number of more than {MOST_DIGITS} digits is read"


def too_long(text: str) -> str:
    """The line that says that a Python file is larger than a limit, or nothing."""
    if len(text) > MAX_BYTES[Kind.PYTHON]:
        return too_large(Kind.PYTHON)
    if text.count("\n") > MAX_LINES:
        return f"more than {MAX_LINES} lines: no training script"
    many = has_marks(text, MAX_MARKS)
    return f"more than {MAX_MARKS} commas, brackets and operators: no training script" if many else ""


def has_marks(text: str, most: int) -> bool:
    """Whether a Python file has more brackets, commas, operators and line breaks than that."""
    return len(text) > most and sum(map(text.count, _MARKS)) > most


def too_large(kind: Kind) -> str:
    """The line that says that a file of this kind is larger than its limit."""
    what = {Kind.PYTHON: "no training script", Kind.SHELL: "no launch script"}.get(kind, "not a config")
    size = MAX_BYTES[kind]
    return f"larger than {f'{size >> 20} MiB' if size >> 20 else f'{size >> 10} KiB'}: {what}"


def not_utf8(encoding: str) -> str:
    """The line that says that a config is text in an encoding in which no library opens it."""
    return f"its text is {encoding.upper()}: save it as UTF-8"
