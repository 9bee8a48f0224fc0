"""The parsers of a script's command line that were wholly read: argparse, HfArgumentParser, TrlParser.

A parser whose options are not all in sight takes any flag, as far as anybody can tell: one that is handed to a function
out of sight, an ``add_argument`` in a loop or with a name that is not known, a dataclass from elsewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import libcst as cst

from lintfit.catalog import arguments
from lintfit.documents.model import DataDocument
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, replace
from lintfit.sources.flag_grammars.grammar import Grammar, Read, exist, ranges_of
from lintfit.sources.flag_grammars.kinds import field_kind
from lintfit.sources.flag_grammars.model import Refused
from lintfit.sources.flag_grammars.options import HELP, Option, Refusal
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.parsers import Parser
from lintfit.sources.script.interpreter.values import Class, Const, Field, Items, Record, Ref, Value, is_none
from lintfit.versions import COMMIT, FLOOR, before

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.sources.script.interpreter.state import Walk
    from lintfit.sources.script.reading.calls import Calls

_HUGGING_FACE = re.compile(r"^(transformers|trl)(\.\w+)*\.(HfArgumentParser|TrlParser)$")
_STRICT = frozenset({"parse_args", "parse_args_into_dataclasses", "parse_args_and_config"})
"""Methods that refuse what they do not know."""
_REMAINING = ("return_remaining_strings", "return_remaining_args")
_FOREIGN = ("prefix_chars", "parents", "fromfile_prefix_chars", "conflict_handler")
"""Keywords of ``ArgumentParser`` after which flags are not what they look like."""
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_HARMLESS = _STRICT | _GROUPS | {"set_defaults", "print_help", "parse_known_args", "parse_dict", "error"}
"""Methods that give a parser no option."""
_WITHOUT_VALUE = frozenset({"store_true", "store_false", "store_const", "append_const", "count", "help", "version"})
_WITH_VALUE = frozenset({"store", "append", "extend"})
_LETS_PASS = lazy_pattern(r"ArgumentError|conflict_handler|_option_string_actions|_remove_action")
"""Code that goes on where a parser has an option already, or takes it out first."""
_TYPES = frozenset({"int", "float"})
_BASES = frozenset({"object", "abc.ABC", "typing.Generic", "typing.Protocol"})
"""Bases that bring no fields."""


class _NotWhole(Exception):
    """Some of a parser is out of sight."""


def parsers_of(walk: Walk, versions: Mapping[str, str], alone: Record | None = None) -> Iterator[Read]:
    """The parsers of a walk that surely read the command line and refuse what they do not know; that of one call
    ``alone``, where one is given."""
    seen: set[int] = set()
    for made in walk.parsed:
        call = made.call
        parser = call.receiver if call is not None else None
        if call is None or not isinstance(parser, Parser) or id(call) in seen or alone not in (None, call):
            continue
        seen.add(id(call))
        if call.taken is True and call.name in _STRICT and _own_command_line(call):
            try:
                grammar = _grammar(walk, parser, versions)
                yield Read(_name(parser), replace(grammar, own=(*grammar.own, *_named_file(call))))
            except _NotWhole:
                continue


def before_rewriting(walk: Walk, calls: Calls, rewrites: re.Pattern[str], versions: Mapping[str, str]) -> Read | None:
    """The first parser of a walk where it has read the command line before the script rewrites it for another one:
    every line that does stands behind its call, in the same function."""
    strict = (each.call for each in walk.parsed if each.call is not None and each.call.name in _STRICT)
    call = next(strict, None)
    if call is None or call.loops or not calls.is_written(call.node):
        return None
    document = calls.document_of(call.node)
    home = _function(document, call.node)
    start, end = document.span(call.node).end, document.span(home).end if home is not None else len(document.text)
    for text in calls.texts():
        last = end if text == document.text else start
        if any(not start <= found.start() < last for found in rewrites.finditer(text)):
            return None
    return next(parsers_of(walk, versions, call), None)


def _function(document: PythonDocument, node: cst.CSTNode) -> cst.CSTNode | None:
    current: cst.CSTNode | None = node
    while current is not None and not isinstance(current, (cst.FunctionDef, cst.Lambda)):
        current = document.parent(current)
    return current


def _named_file(call: Record) -> Iterator[Option]:
    """The flag by which ``parse_args_into_dataclasses(args_file_flag="--config")`` is handed a file of arguments each
    time (transformers 5.24 adds it with ``action="append"``)."""
    flag = call.keyword("args_file_flag")
    if isinstance(flag, Const) and isinstance(flag.value, str):
        yield Option((flag.value,))
    elif flag is not None and not is_none(flag):
        raise _NotWhole


@frozen(eq=False)
class FileRead:
    """A file of arguments that a parser reads. ``parser`` is None where it is not wholly known, or may not read it.

    ``ignored`` says that it passes over keys that it does not know; up to the release ``until``, where there is one.
    """

    parser: Read | None
    document: DataDocument
    ignored: bool = False
    until: str | None = None


def files_of(walk: Walk, versions: Mapping[str, str]) -> Iterator[FileRead]:
    """The files of arguments that parsers of a walk read, in the order in which they do."""
    seen: set[int] = set()
    for made in walk.parsed:
        call, home = made.call, made.home
        parser = call.receiver if call is not None else None
        if call is None or home is None or home.path or id(call) in seen or not isinstance(parser, Parser):
            continue
        seen.add(id(call))
        ignored = _passes_over(call, parser)
        if call.taken is not True or ignored is None:
            yield FileRead(None, home.document)
            continue
        try:
            grammar = _grammar(walk, parser, versions)
        except _NotWhole:
            yield FileRead(None, home.document)
            continue
        until = None
        if call.name == "parse_args_and_config" and not ignored:
            ignored, until = _ignored_by_version(versions)
        read = Read(_name(parser), replace(grammar, own=(*grammar.own, *_KEYS[call.name])))
        yield FileRead(read, home.document, ignored, until)


_KEYS: Mapping[str, tuple[Option, ...]] = {
    "parse_json_file": (),
    "parse_yaml_file": (),
    "parse_args_and_config": (Option(("--env",)),),
}
"""Methods that read a file of arguments, with the keys that are no field of a dataclass."""


_REFUSES_KEYS = "0.19"
"""The first TRL whose ``parse_args_and_config`` refuses keys of its YAML that no dataclass has
(``fail_with_unknown_args``; 0.18.2 collects them and lets them be)."""


def _ignored_by_version(versions: Mapping[str, str]) -> tuple[bool, str | None]:
    """Whether the TRL of a project passes over such keys, and up to which release where both may be."""
    if "trl" + COMMIT in versions or before(versions.get("trl"), _REFUSES_KEYS) is True:
        return True, None  # of one commit nobody knows, and it is not the newest
    newer = before(versions.get("trl"), _REFUSES_KEYS) is False
    if newer or before(versions.get("trl" + FLOOR), _REFUSES_KEYS) is False:
        return False, None
    return True, _REFUSES_KEYS


def _passes_over(call: Record, parser: Parser) -> bool | None:
    """Whether a call asks for keys that are not known to be passed over; None where that cannot be said."""
    if call.name not in _KEYS or call.spreads or call.keyword(*_REMAINING) is not None:
        return None
    if parser.call is not None and parser.call.keyword("ignore_extra_args") is not None:
        return None
    extra, strict = call.value(1, "allow_extra_keys"), call.keyword("fail_with_unknown_args")
    if call.name == "parse_args_and_config":
        known = operators.truth(strict) if strict is not None else True
        return None if known is None else not known
    return operators.truth(extra) if extra is not None else False


def _own_command_line(call: Record) -> bool:
    if call.spreads or call.value(0, "args") is not None:
        return False
    asked = call.keyword(*_REMAINING)
    return asked is None or operators.truth(asked) is False


def _name(parser: Parser) -> str:
    return "argparse" if parser.kind.startswith("argparse.") else parser.kind.rpartition(".")[2]


def _grammar(walk: Walk, parser: Parser, versions: Mapping[str, str]) -> Grammar:
    made = parser.call
    hugging_face = _HUGGING_FACE.match(parser.kind) is not None
    if made is None or made.spreads or made.classes or made.keyword(*_FOREIGN) is not None or parser.commands:
        raise _NotWhole
    if not hugging_face and parser.kind != "argparse.ArgumentParser":
        raise _NotWhole
    own, positional = _added(walk, parser)
    abbreviates = made.keyword("allow_abbrev")
    if parser.kind.endswith("TrlParser"):
        own.append(Option(("--config",)))
    parts = _parts(made) if hugging_face else ()
    fields = {name: kind for own_fields, _ in parts for name, kind in own_fields.items()}
    classes = tuple(dict.fromkeys(each for _, libraries in parts for each in libraries))
    ranges = ranges_of(classes, versions) if hugging_face else ()
    if ranges is None or not exist(classes, ranges):
        raise _NotWhole
    return Grammar(
        own=tuple(own),
        fields=fields,
        classes=classes,
        ranges=ranges,
        abbreviates=abbreviates is None or operators.truth(abbreviates) is not False,
        positional=positional,
        parts=tuple((frozenset(own_fields), libraries) for own_fields, libraries in parts),
    )


# -- add_argument ------------------------------------------------------------------------------------------------------


def _added(walk: Walk, parser: Parser) -> tuple[list[Option], bool]:
    """The options that ``add_argument`` gives a parser, and whether it takes words without a name."""
    options: list[Option] = []
    positional = False
    for record in walk.records:
        if record.receiver is parser and record.taken is not False:
            if record.name == "add_argument":
                option = _option(record)
                positional |= option is None
                options += [replace(option, required=_is_required(record))] if option is not None else []
            elif record.name not in _HARMLESS and record.name not in _KEYS:
                raise _NotWhole
        elif any(_holds(passed.value, parser) for passed in record.passed):
            if record.name == "add_config_arguments" and record.function.startswith("deepspeed"):
                options += [Option((f"--{name}",), nargs=0) for name in ("deepspeed", "deepscale", "deepspeed_mpi")]
                options += [Option((f"--{name}",)) for name in ("deepspeed_config", "deepscale_config")]
            elif not _entered(walk, record):
                raise _NotWhole
    return options, positional


def not_made(walk: Walk, calls: Calls) -> Iterator[Refused]:
    """The first option that a script surely gives an ``ArgumentParser`` which has it, or with a keyword that its action
    has no use for (``type=bool, action="store_true"``): ``add_argument`` itself stops (argparse's ``_check_conflict``
    and ``_StoreTrueAction``, Python 3.11 to 3.14), whatever the command line says."""
    had: dict[int, dict[str, Record]] = {}
    if calls.say(_LETS_PASS):
        return
    for record in walk.records:
        parser = record.receiver
        if record.name != "add_argument" or not isinstance(parser, Parser) or not _refuses_another(record, parser):
            continue
        try:
            option = _option(record)
        except _NotWhole:
            continue
        if option is not None and (keyword := _useless(record)) is not None and calls.is_written(record.node):
            action = _ACTIONS[_known(record.keyword("action"))]
            message = f"{action}.__init__() got an unexpected keyword argument '{keyword}'"
            yield Refused(calls.place(record.node), option.names[-1], _name(parser), Refusal(message), unmade=keyword)
            return
        names = had.setdefault(id(parser), _help_of(parser))
        strings = option.names if option is not None else ()
        again = [name for name in strings if names.setdefault(name, record).node is not record.node]
        if again and calls.is_written(record.node):
            plural = "s" if len(again) > 1 else ""
            message = f"argument {'/'.join(strings)}: conflicting option string{plural}: {', '.join(again)}"
            yield Refused(calls.place(record.node), again[0], _name(parser), Refusal(message), twice=True)
            return


_ACTIONS = {"count": "_CountAction", "store_false": "_StoreFalseAction", "store_true": "_StoreTrueAction"}
"""Actions that take no word of the command line, and none of the keywords that say of what kind it is."""
_OF_WORDS = frozenset({"choices", "const", "metavar", "nargs", "type"})


def _useless(record: Record) -> str | None:
    """The first keyword of an ``add_argument`` that its action does not take."""
    action = record.keyword("action")
    if not isinstance(action, Const) or action.value not in _ACTIONS:
        return None
    return next((passed.name for passed in record.passed if passed.name in _OF_WORDS), None)


def _help_of(parser: Parser) -> dict[str, Record]:
    """The options that a parser has from the start."""
    if parser.call is None or parser.call.keyword("add_help") is not None:
        return {}
    return dict.fromkeys(HELP.names, parser.call)


def _refuses_another(record: Record, parser: Parser) -> bool:
    """Whether an ``add_argument`` surely runs, once, on a parser that refuses an option which it has."""
    made = parser.call
    if made is None or made.spreads or made.keyword(*_FOREIGN) is not None or parser.commands:
        return False
    return parser.kind == "argparse.ArgumentParser" and record.taken is True and not record.guarded and not record.loops


def _is_required(record: Record) -> bool:
    required = record.keyword("required")
    return isinstance(required, Const) and required.value is True


def _holds(value: Value, parser: Parser) -> bool:
    return value is parser or (isinstance(value, Items) and any(item is parser for item in value.items))


def _entered(walk: Walk, record: Record) -> bool:
    """Whether a call is of a function of the script that was followed."""
    node = record.callee.node if record.callee is not None else None
    return isinstance(node, cst.FunctionDef) and id(node) in walk.entered


def _option(record: Record) -> Option | None:
    """The option of an ``add_argument``; None for a word without a name. Raises _NotWhole."""
    names = tuple(value.value for value in record.positional if isinstance(value, Const))
    keywords = {passed.name: passed.value for passed in record.passed if passed.name is not None}
    if record.spreads or record.loops or not names or len(names) < len(record.positional):
        raise _NotWhole
    if not all(isinstance(name, str) for name in names):
        raise _NotWhole
    nargs = _known(keywords.get("nargs"))
    if nargs in ("...", "A..."):
        raise _NotWhole
    if not str(names[0]).startswith("-"):
        return None
    action = keywords.get("action")
    if isinstance(action, Ref) and action.name.endswith("BooleanOptionalAction"):
        negated = tuple(f"--no-{name[2:]}" for name in names if name.startswith("--"))
        return Option((*names, *negated), nargs=0)
    act = _known(action) if action is not None else "store"
    if act in _WITHOUT_VALUE:
        return Option(names, nargs=0)
    if act not in _WITH_VALUE:
        return Option(names, nargs="*")
    kind, choices = _type(keywords.get("type")), _choices(keywords.get("choices"))
    return Option(names, kind or "any", nargs, choices if kind is not None else ())


def _known(value: Value | None) -> Any:
    """A keyword's plain value. Raises _NotWhole where it is not known."""
    if value is None:
        return None
    if not isinstance(value, Const):
        raise _NotWhole
    return value.value


def _type(value: Value | None) -> str | None:
    """``str``, ``int`` or ``float``; None for a function that makes something else of a word."""
    if value is None:
        return "str"
    return value.name if isinstance(value, Ref) and value.name in {*_TYPES, "str"} else None


def _choices(value: Value | None) -> tuple[Any, ...]:
    if not isinstance(value, Items) or value.open or not all(isinstance(item, Const) for item in value.items):
        return ()
    return tuple(item.value for item in value.items if isinstance(item, Const))


# -- dataclasses -------------------------------------------------------------------------------------------------------


def _parts(made: Record) -> tuple[tuple[Mapping[str, str], tuple[str, ...]], ...]:
    """Of each dataclass of a parser the fields that the script gives it, by their kind, and the libraries' dataclasses
    that it is or derives from. Raises _NotWhole."""
    given = made.value(0, "dataclass_types", "parsers")
    values = given.items if isinstance(given, Items) and not given.open else [given]
    found = []
    for value in values:
        libraries: list[str] = []
        own = _of_class(value, libraries)
        found.append((own, tuple(dict.fromkeys(libraries))))
    return tuple(found)


def _of_class(value: Value | None, libraries: list[str]) -> dict[str, str]:
    if isinstance(value, Ref):
        library = f"{value.name.partition('.')[0]}.{value.name.rpartition('.')[2]}"
        if value.name in _BASES:
            return {}
        if not arguments.knows(library):
            raise _NotWhole
        libraries.append(library)
        return {}
    if not isinstance(value, Class):
        raise _NotWhole
    found: dict[str, str] = {}
    for base in value.bases:
        found |= _of_class(base, libraries)
    return found | {name: _kind(field) for name, field in value.fields.items()}


def _kind(field: Field) -> str:
    """What HfArgumentParser makes of a field of the script. Raises _NotWhole where it may have other names."""
    node = field.node
    if not isinstance(node, cst.AnnAssign):
        raise _NotWhole
    code = cst.Module([]).code_for_node
    text = code(node.value) if node.value is not None else ""
    if "alias" in text or "**" in text:
        raise _NotWhole
    try:
        value = ast.parse(text.strip(), mode="eval").body if text else None
    except SyntaxError as error:
        raise _NotWhole from error
    return field_kind(code(node.annotation.annotation), value, {})
