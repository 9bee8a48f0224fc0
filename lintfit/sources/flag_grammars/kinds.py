"""What HfArgumentParser makes of a dataclass's field: how many words its flag takes, and which.

A kind is a word: ``str``, ``int``, ``float`` or ``any`` for a flag of one value, the same with ``...`` behind it for
one of several and with ``?`` for one that may stand alone; ``open`` for any number of words; ``flag`` for a ``bool``
that may stand alone, ``flag+`` where it is on by default, so that ``--no_x`` is a flag, too; ``bool`` for a truth value
that must be given; ``=a|b`` for one of these words. Read in ``HfArgumentParser._parse_dataclass_field`` (transformers
4.28 to 5.23).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

Default = Literal["missing", "None", "True", "other"]
"""What a field has where nobody says anything."""

ANY = "any"
OPEN = "open"
SEVERAL = "..."
OPTIONAL = "?"
CHOICE = "="
_PLAIN = frozenset({"str", "int", "float"})
_LISTS = frozenset({"list", "List"})
_NONE = "None"


def default_of(value: ast.expr | None) -> tuple[Default, bool]:
    """What a field has where nobody says anything, by what is assigned to it, and whether the constructor takes it."""
    if value is None:
        return "missing", True
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        init = given.get("init")
        taken = not (isinstance(init, ast.Constant) and init.value is False)
        if "default_factory" in given:
            return "other", taken
        return (default_of(given["default"])[0] if "default" in given else "missing"), taken
    if isinstance(value, ast.Constant) and (value.value is None or value.value is True):
        return ("None" if value.value is None else "True"), True
    return "other", True


def field_kind(annotation: str, value: ast.expr | None, enums: Mapping[str, Sequence[str]]) -> str:
    """The kind of a field, by what is assigned to it, too; the empty word for one that is no argument.

    ``metadata={"nargs": …}`` is handed to ``add_argument``.
    """
    default, taken = default_of(value)
    if not taken or "ClassVar" in annotation:
        return ""
    kind = kind_of(annotation, default, enums)
    counts = list(_nargs(value))
    if not counts or kind.startswith("flag"):
        return kind
    if counts != ["?"] or kind.startswith(CHOICE) or kind.endswith(SEVERAL):
        return OPEN
    return "flag" if kind == "bool" else kind + OPTIONAL


def _nargs(value: ast.expr | None) -> Iterator[object]:
    """What a field's metadata says of the number of words; None where that is no literal."""
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Dict):
            for key, each in zip(node.keys, node.values, strict=True):
                if key is None or (isinstance(key, ast.Constant) and key.value == "nargs"):
                    yield each.value if key is not None and isinstance(each, ast.Constant) else None
        elif isinstance(node, ast.keyword) and node.arg == "nargs":
            yield node.value.value if isinstance(node.value, ast.Constant) else None
        elif (
            isinstance(node, ast.keyword) and node.arg == "metadata" and not isinstance(node.value, ast.Dict | ast.Call)
        ):
            yield None


def kind_of(annotation: str, default: Default, enums: Mapping[str, Sequence[str]]) -> str:
    """The kind of a field, by the text of its annotation; ``enums`` are the words of each enumeration in sight."""
    try:
        members = _members(ast.parse(annotation.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return ANY
    names = [_name(member) for member in members]
    if names == ["bool"] or sorted(names) == [_NONE, "bool"]:
        if len(names) == 1 or default not in ("None", "missing"):
            return "flag+" if default == "True" else "flag"
        return "bool"
    if len(members) == 1:
        return _of_type(members[0], enums)
    if _NONE not in names:
        kind = _of_type(members[0] if names[1] == "str" else members[1], enums)
        return kind if kind != "bool" else "flag+" if default == "True" else "flag"
    if "bool" in names:
        return ANY
    return _of_type(members[0] if names[1] == _NONE else members[1], enums)


def _of_type(node: ast.expr, enums: Mapping[str, Sequence[str]]) -> str:
    name = _name(node)
    if name in _PLAIN:
        return name
    if name == "bool":
        return "bool"
    if isinstance(node, ast.Subscript) and name in _LISTS:
        inner = _name(node.slice)
        return (inner if inner in _PLAIN else ANY) + SEVERAL
    if isinstance(node, ast.Subscript) and name == "Literal":
        words = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        texts = [word.value for word in words if isinstance(word, ast.Constant)]
        if len(texts) == len(words):
            return CHOICE + "|".join(map(str, texts))
    return CHOICE + "|".join(enums[name]) if name in enums else ANY


def _members(node: ast.expr) -> list[ast.expr]:
    """The types of a union, each once, as ``typing`` flattens them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _members(ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    if isinstance(node, ast.Subscript) and _name(node) in ("Union", "Optional"):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        found = [member for part in parts for member in _members(part)]
        optional = _name(node) == "Optional" and _NONE not in map(_name, found)
        return [*found, ast.Constant(None)] if optional else found
    return [node]


def _name(node: ast.expr) -> str:
    """The last part of a type's name; ``None`` for that."""
    match node:
        case ast.Subscript():
            return _name(node.value)
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return "" if node.id == _NONE else node.id
        case ast.Constant(value=None):
            return _NONE
        case ast.Constant(value=str() as text):
            return text
    return ""
