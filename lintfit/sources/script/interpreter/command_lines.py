"""What fills objects from the command line: parsers, TRL and Hugging Face's dataclasses, fire, tyro."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from lintfit.documents import bounds
from lintfit.documents.model import Kind
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter import config_files, operators, parsers
from lintfit.sources.script.interpreter.argument_files import flags_of
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import (
    Class,
    Const,
    Field,
    Function,
    Items,
    Object,
    Record,
    Table,
    Unknown,
    Value,
)


def filled(interpreter: Evaluator, record: Record, target: Value) -> Value:
    """``tyro.cli(Config)`` or ``tyro.cli(main)``."""
    walk = interpreter.walk
    if isinstance(target, Function):
        return interpreter.enter(target)
    if isinstance(target, Class):
        walk.step(_work(len(target.all_fields()), len(walk.flags)))
    if isinstance(target, Class) and parsers.takes_dotted_flags(target):
        walk.parses = True
        made = parsers.nested(target, walk.flags, walk.assume, record.node, walk.steps)
        made.call = record
        walk.parsed.append(made)
        return made
    parser = parsers.Parser(record.node, record.function, record, classes=[target])
    return _dataclasses(interpreter, record, parser)[0]


def _work(fields: int, flags: int) -> int:
    """The steps that it takes to hand flags out to fields; one that is cut short is held against each of them."""
    return bounds.cost(items=fields + flags + fields * flags // 10)


def is_fire(name: str, record: Record) -> bool:
    """``fire.Fire``, or a project's wrapper of it (h2ogpt: ``H2O_Fire``) over a function, a class or a dict of them."""
    if name == "fire.Fire":
        return True
    last = name.rpartition(".")[2]
    named = last == "Fire" or last.endswith("_Fire")
    return named and isinstance(record.value(0, "component"), Function | Class | Table)


def fire(interpreter: Evaluator, record: Record) -> Value:
    """``fire.Fire(target)``: a function, a class, or a dict of them by the command's first word."""
    words = list(interpreter.walk.positional)
    target = record.value(0, "component")
    if target is None:
        target = interpreter.globals.names.get(words.pop(0)) if words else None
    elif isinstance(target, Table):
        target = target.items.get(words.pop(0)) if words else None
    if isinstance(target, Class):
        made = Object(record.node, target.name, cls=target, attributes=dict(target.members))
        constructor = target.member("__init__")
        if isinstance(constructor, Function):
            interpreter.enter(Function(constructor.origin, constructor.node, constructor.scope, made))
        method = target.member(words.pop(0)) if words else None
        target = Function(method.origin, method.node, method.scope, made) if isinstance(method, Function) else None
    if isinstance(target, Function) and id(target.node) not in interpreter.walk.ran:
        return interpreter.enter(target, words)
    return Unknown(record.node)


def deepspeed_arguments(parser: Value, record: Record) -> Value:
    """The flags that ``deepspeed.add_config_arguments`` declares and a config is read from."""
    if isinstance(parser, parsers.Parser):
        parser.fields["deepspeed"] = Field("deepspeed", "flag", Const(record.node, False), record.node, constant=True)
        parser.fields["deepspeed_config"] = Field("deepspeed_config", "str", Const(record.node, None), record.node)
    return parser


def parser_method(interpreter: Evaluator, record: Record, parser: parsers.Parser) -> Value:
    walk, name = interpreter.walk, record.name
    match name:
        case "add_argument":
            names = [str(value.value) for value in record.positional if isinstance(value, Const)]
            keywords = {passed.name: passed.value for passed in record.passed if passed.name is not None}
            entry = parsers.argument_field(names, keywords, record.node)
            if entry is not None and walk.branch.taken is not False:
                parser.fields[entry.name] = entry
                if entry.kind == "flag":
                    walk.switches.add(entry.name)
                long = [name.lstrip("-") for name in names if name.startswith("--")]
                if long and "-" in long[0]:
                    walk.spelling[entry.name] = long[0]
            return Unknown(record.node)
        case "add_argument_group" | "add_mutually_exclusive_group" | "add_subparsers" | "add_parser":
            parser.commands |= name in ("add_subparsers", "add_parser")
            return parser
        case "set_defaults":
            for passed in record.passed:
                if passed.name in parser.fields:
                    parser.fields[passed.name].default = passed.value
            return Const(record.node, None)
        case "parse_args" | "parse_known_args" if parser.classes:
            made_of_all = _dataclasses(interpreter, record, parser)
            whole = made_of_all[0] if len(made_of_all) == 1 else _in_one(parser, made_of_all)
            return whole if name == "parse_args" else Items(record.node, [whole, Items(record.node, open=True)])
        case "parse_args" | "parse_known_args":
            walk.parses = True
            flags = {**_from_files(interpreter, parser), **walk.flags}
            walk.step(_work(len(parser.fields), len(flags)))
            made = parsers.namespace(parser, flags, walk.positional, walk.assume)
            made.call = record
            walk.parsed.append(made)
            return made if name == "parse_args" else Items(record.node, [made, Items(record.node, open=True)])
        case "parse_args_into_dataclasses" | "parse_args_and_config" | "parse":
            made_objects: list[Value] = list(_dataclasses(interpreter, record, parser))
            remaining = record.keyword("return_remaining_strings", "return_remaining_args")
            if remaining is not None and operators.truth(remaining) is not False:
                made_objects.append(Items(record.node, open=True))
            if name == "parse" and len(made_objects) == 1:
                return made_objects[0]
            return Items(record.node, made_objects)
        case "parse_json_file" | "parse_yaml_file":
            return Items(record.node, _file_objects(interpreter, record, parser))
        case "parse_dict" if isinstance(table := record.value(0, "args"), Table):
            made_of_table = [parsers.table_object(cls, table, record) for cls in parser.classes]
            interpreter.walk.parsed += made_of_table
            return Items(record.node, list(made_of_table))
    return Unknown(record.node)


def _file_objects(interpreter: Evaluator, record: Record, parser: parsers.Parser) -> list[Value]:
    """The dataclasses as a JSON or YAML file fills them; the command line has no say in it."""
    source = record.value(0, "json_file", "yaml_file")
    kind = Kind.JSON if record.name == "parse_json_file" else Kind.YAML
    table = config_files.load(interpreter, source, record, kind)
    if not isinstance(table, Table):
        opened = [parsers.object_of(cls, record.node, {}, open_=True) for cls in parser.classes]
        return [replace(each, call=record) for each in opened]
    names = interpreter.walk.defaults.names
    made = parsers.dataclass_objects(parser, {}, assume=True, open_=False, accepted=names)
    parsers.from_file(made, table, names)
    for each in made:
        each.call = record
    interpreter.walk.parsed += made
    return list(made)


def _in_front(interpreter: Evaluator, record: Record) -> dict[str, Flag]:
    """The files of words that HfArgumentParser puts in front of the command line's own, the last one winning."""
    opener = interpreter.walk.open_arguments
    if record.name != "parse_args_into_dataclasses" or opener is None:
        return {}
    documents = [opener(name) for name in (*_beside(interpreter, record), *_named(interpreter, record))]
    return {name: given for document in documents if document is not None for name, given in flags_of(document).items()}


def _beside(interpreter: Evaluator, record: Record) -> Iterator[str]:
    """``train.args`` beside ``train.py``."""
    looks = record.keyword("look_for_args_file")
    script = interpreter.globals.names.get("__file__")
    if isinstance(script, Const) and (looks is None or operators.truth(looks) is not False):
        yield str(script.value).removesuffix(".py") + ".args"


def _named(interpreter: Evaluator, record: Record) -> Iterator[str]:
    """The files that the command line names by ``args_file_flag``, each behind a flag of its own."""
    flag, words = _file_flag(record), interpreter.walk.words or ()
    for word, following in pairwise([*words, ""]):
        name, glued, value = word.partition("=")
        if flag is not None and name == f"--{flag}":
            yield value if glued else following


def _file_flag(record: Record) -> str | None:
    """The name of the flag that names files of words."""
    given = record.keyword("args_file_flag")
    return str(given.value).lstrip("-").replace("-", "_") if isinstance(given, Const) and given.value else None


def _from_files(interpreter: Evaluator, parser: parsers.Parser) -> dict[str, Flag]:
    """``@file`` on the command line of a parser with ``fromfile_prefix_chars``."""
    prefix = parser.call.keyword("fromfile_prefix_chars") if parser.call is not None else None
    opener = interpreter.walk.open_arguments
    if not isinstance(prefix, Const) or not isinstance(prefix.value, str) or opener is None:
        return {}
    found: dict[str, Flag] = {}
    for word in interpreter.walk.positional:
        document = opener(word[1:]) if word[:1] in prefix.value else None
        if document is not None:
            found |= flags_of(document, by_line=True)
    return found


def _config_name(interpreter: Evaluator, parser: parsers.Parser, record: Record) -> Const | Unknown | None:
    """The YAML file that a TrlParser is handed by ``--config``, an H4ArgumentParser (``parse()``) as its first word."""
    flag = interpreter.walk.flags.get("config")
    declares = any("config" in cls.all_fields() for cls in parser.classes if isinstance(cls, Class))
    if flag is not None and not declares and _file_flag(record) != "config":
        known = flag.value is not None and "$" not in flag.value
        return Const(flag, flag.value) if known else Unknown(flag)
    words = interpreter.walk.words or ()
    first = words[0] if words and ("H4" in parser.kind or record.name == "parse") else ""
    if "$" in first:
        return Unknown(parser.origin)
    return Const(parser.origin, first) if first.endswith((".yaml", ".yml")) else None


def _dataclasses(interpreter: Evaluator, record: Record, parser: parsers.Parser) -> list[Object]:
    walk = interpreter.walk
    walk.parses = True
    named = _config_name(interpreter, parser, record)
    table = config_files.load(interpreter, named, record, Kind.YAML) if named is not None else None
    unread = named is not None and not isinstance(table, Table)
    given = {**_in_front(interpreter, record), **walk.flags}
    flags = {name: flag for name, flag in given.items() if name != "config" or named is None}
    walk.step(_work(sum(len(cls.all_fields()) for cls in parser.classes if isinstance(cls, Class)), len(flags)))
    own = {flag.name for flag, _ in parsers.assign(parser.fields.values(), flags).values()}
    of_classes = {name: flag for name, flag in flags.items() if flag.name not in own}
    made = parsers.dataclass_objects(parser, of_classes, walk.assume, unread, walk.defaults.names)
    if isinstance(table, Table):
        sure = not (walk.puts_words and parser.kind.endswith("HfArgumentParser"))  # which has no --config of its own
        parsers.from_file(made, table, walk.defaults.names, sure=sure)
    for each in made:
        each.call = record
        each.open |= interpreter.is_unread(each.kind)
    for each in made:
        interpreter.post_init(each)
    if parser.fields:  # what ``add_argument`` declares beside the classes comes behind them, in a namespace
        made.append(parsers.namespace(parser, flags, (), walk.assume))
        made[-1].call = record
    walk.parsed += made
    return made


def _in_one(parser: parsers.Parser, made: list[Object]) -> Object:
    """The namespace of argparse's own ``parse_args``, which has the fields of all classes."""
    attributes = {name: value for each in made for name, value in each.attributes.items()}
    return Object(
        parser.origin, "argparse.Namespace", attributes=attributes, parsed=True, open=any(e.open for e in made)
    )
