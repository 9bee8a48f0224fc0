"""Command-line parsers as scripts use them: argparse, HfArgumentParser, TrlParser, click, fire, tyro.

What they accept was read in argparse (CPython 3.11) and ``HfArgumentParser`` (transformers 5.23): unique
prefixes, ``-`` for ``_``, ``--no_x`` for booleans that default to true, the last of repeated flags.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, takewhile
from typing import Any

import libcst as cst

from lintfit.documents import bounds
from lintfit.documents.python_walk import code_of
from lintfit.documents.steps import Steps
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter.origins import Datum, Origin
from lintfit.sources.script.interpreter.values import (
    Class,
    Const,
    Field,
    Function,
    Items,
    Object,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    held,
    plain,
)
from lintfit.sources.training_arguments import SEVERAL, begun_by, of_text

_TRUE = frozenset({"yes", "true", "t", "y", "1", "on"})
_FALSE = frozenset({"no", "false", "f", "n", "0", "off"})
_KINDS = re.compile(r"\b(bool|int|float|str|dict|Dict)\b")
_MANY = re.compile(r"^\s*(?:(?:typing\.)?Optional\[)?\s*(?:typing\.)?(?:List|list|Tuple|tuple|Sequence)\b")
_ANNOTATED = re.compile(r"^\s*(?:typing\.)?Annotated\[(?P<type>(?:[^][,]|\[[^][]*\])+),.*", re.DOTALL)
_TYPER = frozenset({"typer.Option", "typer.Argument"})
_BOOLEAN_NAME = re.compile(r"bool", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Parser(Object):
    """A parser object under construction. ``classes`` are the dataclasses of an HfArgumentParser."""

    fields: dict[str, Field] = field(default_factory=dict)
    classes: list[Value] = field(default_factory=list)
    commands: bool = False
    """Whether it has subcommands, which take words of their own."""


def parameter_field(name: str, kind: str, default: Value | None, node: cst.CSTNode, many: bool) -> Field:
    """The field that a function's parameter declares; ``typer.Option(8, "--batch")`` says its default and names."""
    call = default.call if isinstance(default, Object) and default.kind in _TYPER else None
    if call is None:
        return Field(name, kind, default, node, many)
    stated = call.value(0, "default")
    known = stated if isinstance(stated, Const) and stated.value is not ... else None
    texts = [value.value for value in call.positional[1:] if isinstance(value, Const)]
    aliases = [part for text in texts if isinstance(text, str) for part in text.split("/")[:1]]
    return Field(name, kind, known, node, many, aliases=tuple(each.lstrip("-").replace("-", "_") for each in aliases))


def kind_of(annotation: str) -> tuple[str, bool]:
    """The bare type of an annotation's text and whether it takes several values."""
    annotation = _ANNOTATED.sub(r"\g<type>", annotation)
    kinds = _KINDS.findall(annotation)
    if "dict" in kinds or "Dict" in kinds:
        kinds = [kind for kind in kinds if kind not in ("dict", "Dict")] or [""]
    for kind in ("bool", "float", "int", "str"):
        if kind in kinds:
            return kind, bool(_MANY.match(annotation))
    return "", bool(_MANY.match(annotation))


def argument_field(names: list[str], keywords: Mapping[str, Value], node: cst.CSTNode) -> Field | None:
    """The field that ``add_argument(*names, **keywords)`` declares; None for a positional of unknown name."""
    if not names:
        return None
    normal = [name.lstrip("-").replace("-", "_") for name in names]
    long = [name for name, raw in zip(normal, names, strict=True) if raw.startswith("--")]
    dest = keywords.get("dest")
    name = str(dest.value) if isinstance(dest, Const) and dest.value else (long or normal)[0]
    action = keywords.get("action")
    act = action.value if isinstance(action, Const) else None
    constant: Any = None
    default = keywords.get("default")
    kind = _type_kind(keywords.get("type"))
    if act in ("store_true", "store_false"):
        constant = act == "store_true"
        default = default or Const(node, not constant)
        kind = "flag"
    elif act == "store_const" and isinstance(keywords.get("const"), Const):
        constant = keywords["const"].value  # type: ignore[attr-defined]
    elif isinstance(action, Ref) and action.name.endswith("BooleanOptionalAction"):
        constant, kind = True, "bool"
    nargs = keywords.get("nargs")
    const = keywords.get("const")
    if isinstance(nargs, Const) and nargs.value == "?" and isinstance(const, Const):
        constant = const.value
    count = nargs.value if isinstance(nargs, Const) else None
    many = count in ("+", "*") or isinstance(count, int)
    aliases = tuple(n for n in normal if n != name)
    given = default or Const(node, None)
    if not names[0].startswith("-"):
        needed = None if count not in ("?", "*") and not isinstance(default, Const) else given
        return Field(name, kind, needed, node, many, constant, nargs=count, positional=True)
    return Field(name, kind, given, node, many, constant, aliases)


def _type_kind(value: Value | None) -> str:
    if isinstance(value, Ref):
        last = value.name.rpartition(".")[2]
        if last == "bool":
            return "truthy"
        return "bool" if _BOOLEAN_NAME.search(last) else last
    if isinstance(value, Function):
        text = code_of(value.node) if isinstance(value.node, cst.Lambda) else value.name
        return "bool" if _BOOLEAN_NAME.search(text) else ""
    return "" if value is not None else "str"


def convert(flag: Flag, declared: Field | None) -> Value:
    """The value that a flag gives to a field, with the flag as its origin."""
    if flag.doubtful:
        return Unknown(flag)
    if flag.value is None:
        if declared is None or declared.kind in ("bool", "flag", ""):
            constant = declared.constant if declared is not None else None
            return Const(flag, True if constant is None else constant)
        return Const(flag, declared.constant) if declared.constant is not None else Unknown(flag)
    if declared is not None and declared.many:
        words = flag.words or (flag.value,)
        if isinstance(declared.node, cst.Param):
            words = _listed(words)
        return Items(flag, [Const(flag, _scalar(word, declared.kind)) for word in words])
    if declared is None and flag.name in SEVERAL and len(flag.words) > 1:
        return Items(flag, [Const(flag, of_text(word)) for word in flag.words])
    if declared is not None and declared.kind == "flag":
        return Const(flag, True if declared.constant is None else declared.constant)
    if "$" in flag.value:
        return Unknown(flag)
    return Const(flag, _scalar(flag.value, declared.kind if declared is not None else ""))


_TUPLE = re.compile(r"(?:\w+|'\w*'|\"\w*\")(?:,(?:\w+|'\w*'|\"\w*\"))+,?")
"""Words that Python takes for a tuple, whose bare ones Fire makes strings."""


def _listed(words: tuple[str, ...]) -> tuple[str, ...]:
    """The elements of a list as Fire takes it on a command line: ``[q_proj,v_proj]``, whose bare words are strings
    (fire 0.7.1 ``parser.DefaultParseValue``)."""
    text = words[0].strip()
    if len(words) == 1 and _TUPLE.fullmatch(text):
        return tuple(part.strip("'\"") for part in text.split(",") if part)
    if len(words) > 1 or text[:1] + text[-1:] not in ("[]", "()"):
        return words
    parts = (part.strip() for part in text[1:-1].split(","))
    return tuple(part.strip("'\"") for part in parts if part)


def _scalar(text: str, kind: str) -> Any:
    lowered = text.lower()
    try:
        match kind:
            case "str":
                return None if lowered == "none" and text == "None" else text
            case "bool":
                return True if lowered in _TRUE else (False if lowered in _FALSE else text)
            case "truthy":
                return bool(text)
            case "int":
                return int(text)
            case "float":
                return float(text)
    except ValueError:
        return text
    return of_text(text)


def assign(fields: Iterable[Field], flags: Mapping[str, Flag]) -> dict[str, tuple[Flag, bool]]:
    """Which flag fills which field; the bool is True where it is the negation ``--no_x``."""
    known = {name: entry for entry in fields for name in (entry.name, *entry.aliases)}
    names = sorted(known)
    found: dict[str, tuple[Flag, bool]] = {}
    for name, flag in flags.items():
        entry = known.get(name)
        negated = False
        if entry is None and name.startswith("no_") and name[3:] in known:
            entry, negated = known[name[3:]], True
        if entry is None:
            longer = takewhile(partial(_begins, name), islice(names, bisect_left(names, name), None))
            candidates = {id(known[full]): known[full] for full in longer}
            entry = next(iter(candidates.values())) if len(candidates) == 1 else None
        if entry is not None:
            found[entry.name] = (flag, negated)
    return found


def _begins(start: str, name: str) -> bool:
    return name.startswith(start)


def fill(entry: Field, flag: tuple[Flag, bool] | None, assume: bool) -> Value:
    """A field's value: its flag's, else its default; not known where the launch is not (``assume`` False)."""
    if flag is not None:
        value = Const(flag[0], False) if flag[1] else convert(flag[0], entry)
        value.over = entry.default
        return value
    if not assume or entry.default is None:
        return Unknown(entry.node)
    if isinstance(entry.default, Const) and isinstance(entry.default.value, str) and entry.kind in ("int", "float"):
        return Const(entry.default.origin, _scalar(entry.default.value, entry.kind))
    return entry.default


def namespace(parser: Parser, flags: Mapping[str, Flag], words: Sequence[str], assume: bool) -> Object:
    """What ``parse_args()`` returns. ``words`` are those in front of the first flag."""
    filled = assign((entry for entry in parser.fields.values() if not entry.positional), flags)
    attributes = {name: fill(entry, filled.get(name), assume) for name, entry in parser.fields.items()}
    if words:
        attributes |= _placed(parser, words)
    return Object(parser.origin, "argparse.Namespace", attributes=attributes, parsed=True, open=not assume)


def _placed(parser: Parser, words: Sequence[str]) -> dict[str, Value]:
    """The positional arguments that words fill in order; not known where subcommands or a count share them out."""
    entries = [entry for entry in parser.fields.values() if entry.positional]
    last = len(entries) - 1
    if parser.commands or any(entry.nargs is not None for entry in entries[:last]):
        return {entry.name: Unknown(entry.node) for entry in entries}
    found: dict[str, Value] = {}
    for index, (entry, word) in enumerate(zip(entries, words, strict=False)):
        rest = words[index:] if entry.many else (word,)
        known = not any("$" in each for each in rest)
        values = [Const(entry.node, _scalar(each, entry.kind)) for each in rest]
        value: Value = Items(entry.node, list(values)) if entry.many else values[0]
        found[entry.name] = value if known else Unknown(entry.node)
    return found


def dataclass_objects(
    parser: Parser,
    flags: Mapping[str, Flag],
    assume: bool,
    open_: bool,
    accepted: Callable[[str], frozenset[str]] = lambda cls: frozenset(),
) -> list[Object]:
    """What ``parse_args_into_dataclasses()`` returns, one object a class.

    A flag that no dataclass of the script declares belongs to a class of a library that accepts it, or to each
    where that is not known. ``open_`` where a config file may set more.
    """
    own = {name: entry for cls in parser.classes if isinstance(cls, Class) for name, entry in cls.all_fields().items()}
    libraries = [_library(cls) for cls in parser.classes]
    inherited = frozenset[str]().union(*(accepted(library) for library in libraries if library is not None))
    # A library's whole name is no beginning of the script's own (``gradient_checkpointing_kwargs``).
    filled = assign(own.values(), {name: each for name, each in flags.items() if name in own or name not in inherited})
    taken = {id(flag) for flag, _ in filled.values()}
    rest = {name: flag for name, flag in flags.items() if id(flag) not in taken}
    made: list[Object] = []
    of_library: list[Object] = []
    for cls, library in zip(parser.classes, libraries, strict=True):
        attributes: dict[str, Value] = {}
        if library is not None:
            attributes |= _library_flags(rest, accepted(library))
        if isinstance(cls, Class):
            for name, entry in cls.all_fields().items():
                attributes[name] = fill(entry, filled.get(name), assume and not (open_ and name not in filled))
        made.append(object_of(cls, parser.origin, attributes, open_ or not assume))
        if library is not None:
            of_library.append(made[-1])
    _unclaimed(rest, of_library)
    return made


def _library(cls: Value) -> str | None:
    """The library's class that a dataclass is, or inherits from."""
    return cls.name if isinstance(cls, Ref) else (cls.library if isinstance(cls, Class) else None)


def defaults_of(cls: Class, origin: cst.CSTNode) -> Object:
    """An object of a dataclass that nobody gave anything."""
    attributes = {name: entry.default or Unknown(entry.node) for name, entry in cls.all_fields().items()}
    return Object(origin, cls.name, cls=cls, attributes=attributes)


def nested(
    cls: Class,
    flags: Mapping[str, Flag],
    assume: bool,
    origin: cst.CSTNode | None,
    steps: Steps,
    prefix: str = "",
) -> Object:
    """A dataclass of dataclasses as tyro fills it: ``--train.micro-batch 2``, ``--train.no-bf16``."""
    attributes: dict[str, Value] = {}
    if not steps.take() or prefix.count(".") > bounds.MAX_LEVELS:
        return Object(origin, cls.name, cls=cls, parsed=True, open=True)
    for name, entry in cls.all_fields().items():
        if entry.cls is not None and entry.cls.fields:
            inner = nested(entry.cls, flags, assume, origin, steps, f"{prefix}{name}.")
            given = entry.default.attributes if isinstance(entry.default, Object) else {}
            for key, value in given.items():
                if assume and not isinstance(inner.attributes.get(key, Unknown()).origin, Flag):
                    inner.attributes[key] = value
            attributes[name] = inner
            continue
        flag, negation = flags.get(prefix + name), flags.get(f"{prefix}no_{name}")
        chosen = (flag, False) if flag is not None else ((negation, True) if negation is not None else None)
        attributes[name] = _refilled(fill(entry, chosen, assume), entry, flags, f"{prefix}{name}.")
    return Object(origin, cls.name, cls=cls, attributes=attributes, parsed=True, open=not assume)


def takes_dotted_flags(cls: Class) -> bool:
    """Whether a dataclass holds others: the script's, or a library's that a default makes (``TrainingArguments``)."""
    return any(entry.cls is not None or isinstance(entry.default, Object) for entry in cls.all_fields().values())


def _refilled(value: Value, entry: Field, flags: Mapping[str, Flag], prefix: str) -> Value:
    """A field's default of a library's class with what ``--training_args.learning_rate 1e-4`` changes of it.

    A bare ``no_`` stands for False where the rest is what the default already says (tyro: ``--train.no-fp16``).
    """
    own = {name.removeprefix(prefix): flag for name, flag in flags.items() if name.startswith(prefix)}
    default = value if isinstance(value, Object) else entry.default
    if not own or not isinstance(default, Object):
        return value
    passed = default.call.passed if default.call is not None else ()
    stated = {*default.attributes, *(each.name for each in passed)}
    given: dict[str, Value] = {}
    for name, flag in own.items():
        negated = flag.value is None and name.startswith("no_") and name[3:] in stated
        given[name[3:] if negated else name] = Const(flag, False) if negated else convert(flag, None)
    for name, each in given.items():
        each.over = default.attributes.get(name)
    opened = default.open or default is not value
    return replace(default, attributes={**default.attributes, **given}, open=opened)


def _unclaimed(flags: Mapping[str, Flag], made: list[Object]) -> None:
    """A flag that no known field takes is one of a library's class all the same: the parser refuses any other."""
    claimed = {id(value.origin) for each in made for value in each.attributes.values()}
    for name, flag in flags.items():
        if id(flag) not in claimed:
            for each in made:
                each.attributes.setdefault(name, convert(flag, None))


def _library_flags(flags: Mapping[str, Flag], accepted: frozenset[str]) -> dict[str, Value]:
    if not accepted:
        return {name: convert(flag, None) for name, flag in flags.items()}
    found: dict[str, Value] = {}
    for name, flag in flags.items():
        if name in accepted:
            found[name] = convert(flag, None)
        elif name.startswith("no_") and name[3:] in accepted:
            found[name[3:]] = Const(flag, False)
        elif (full := begun_by(name, accepted)) is not None:
            found[full] = convert(flag, None)
    return found


def from_file(
    made: Iterable[Object], table: Table, accepted: Callable[[str], frozenset[str]], *, sure: bool = True
) -> None:
    """Let the mapping of a config file fill the fields that no flag fills; ``sure`` that a flag wins over it.

    A key belongs to the class of the script that declares it, else to a class of a library that accepts it.
    """
    for each in made:
        own = each.cls.all_fields() if each.cls is not None else {}
        library = accepted(each.library) if each.cls is None or each.cls.library is not None else frozenset()
        unknown_class = each.cls is None and not library
        for key in table.items:
            value = held(table, key)
            if value is None or not (key in own or key in library or unknown_class):
                continue
            current = each.attributes.get(key)
            if current is not None and isinstance(current.origin, Flag):
                current.over = value
                if not sure and plain(current) != plain(value):
                    each.attributes[key] = Unknown(current.origin)
            else:
                value.over = current
                each.attributes[key] = value
        each.open |= table.open
        if isinstance(table.origin, Datum):
            each.home = table.origin


def classes_of(value: Value | None) -> list[Value]:
    """The dataclasses handed to ``HfArgumentParser(...)``."""
    if isinstance(value, Items):
        return list(value.items)
    return [value] if isinstance(value, Class | Ref) else []


def table_object(cls: Value, table: Table, record: Record) -> Object:
    """A dataclass object from a dict of known values (``parse_dict``)."""
    fields = cls.all_fields() if isinstance(cls, Class) else {}
    attributes = {name: entry.default or Unknown(record.node) for name, entry in fields.items()}
    attributes |= {str(key): item for key, item in table.items.items()}
    return replace(object_of(cls, record.node, attributes, table.open), call=record)


def object_of(cls: Value, origin: Origin, attributes: dict[str, Value], open_: bool) -> Object:
    """An object that a parser has filled, of a class of the script or of a library."""
    kind, own = (cls.name if isinstance(cls, Ref | Class) else ""), cls if isinstance(cls, Class) else None
    return Object(origin, kind, cls=own, attributes=attributes, parsed=True, open=open_)
