"""OmegaConf's configs: loaded, merged, structured by dataclasses, overridden by ``key=value`` words, interpolated.

What the functions do was read in omegaconf 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from lintfit.documents import bounds
from lintfit.documents.model import Kind
from lintfit.documents.steps import Steps
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter import config_files
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import Class, Const, Items, Object, Record, Table, Unknown, Value, held
from lintfit.sources.training_arguments import of_text


def config(value: Value, steps: Steps, root: Table | None = None, level: int = 0) -> Value:
    """A copy whose interpolations refer to it; ``"???"`` is a value that is missing. A value takes a step."""
    if level >= bounds.MAX_LEVELS or not steps.take():
        return Table(value.origin, open=True) if isinstance(value, Table) else Unknown(value.origin)
    if isinstance(value, Table):
        made = Table(value.origin, {}, value.open, over=value.over)
        made.root, made.steps = root or made, steps
        made.items = {key: config(item, steps, made.root, level + 1) for key, item in value.items.items()}
        return made
    if isinstance(value, Items):
        return Items(value.origin, [config(item, steps, root, level + 1) for item in value.items], value.open)
    return Unknown(value.origin) if isinstance(value, Const) and value.value == "???" else value


def as_table(value: Value | None) -> Table | None:
    """A dict, dataclass or its object as a table; None for anything else."""
    if isinstance(value, Table):
        return value
    if isinstance(value, Class):
        fields = value.all_fields()
        return Table(value.origin, {name: entry.default or Unknown(entry.node) for name, entry in fields.items()})
    if isinstance(value, Object) and value.cls is not None:
        return Table(value.origin, dict(value.attributes), value.open)
    return None


def merged(values: Iterable[Value], record: Record, steps: Steps) -> Value:
    """``OmegaConf.merge``: the later wins, key by key."""
    result = Table(record.node)
    for value in values:
        table = as_table(value)
        result = over(result, table, steps) if table is not None else Table(record.node, open=True)
    return config(result, steps)


def over(below: Table, above: Table, steps: Steps, level: int = 0) -> Table:
    """Two configs merged key by key, each of which takes a step; the second wins."""
    made = Table(above.origin if above.items else below.origin, {}, below.open or above.open)
    if level >= bounds.MAX_LEVELS:
        made.open = True
        return made
    for key in dict.fromkeys([*below.items, *above.items]):
        if not steps.take():
            made.open = True
            return made
        old, new = below.items.get(key), above.items.get(key)
        inner, outer = as_table(old), as_table(new)
        if inner is not None and outer is not None:
            made.items[key] = over(inner, outer, steps, level + 1)
        elif new is not None and old is not None:
            made.items[key] = replace(new, over=old)
        elif new is not None:
            # What stands beside these keys in what is out of sight below is not known either.
            beside = outer is not None and below.open
            made.items[key] = over(Table(open=True), outer, steps, level + 1) if outer is not None and beside else new
        elif old is not None:
            # What may be overridden by keys out of sight is not known.
            made.items[key] = (
                over(inner, Table(open=True), steps, level + 1) if inner is not None and above.open else old
            )
            if inner is None and above.open:
                made.items[key] = Unknown(old.origin)
    return made


def _overrides(interpreter: Evaluator, record: Record) -> Value:
    """``OmegaConf.from_cli()``: the ``key=value`` words of the launch line."""
    walk = interpreter.walk
    walk.parses = True
    walk.step(len(walk.overrides))
    if not walk.assume:
        return Table(record.node, open=True)
    return dotted(walk.overrides, record)


def dotted(words: Iterable[Flag], record: Record) -> Table:
    """A nested table from words such as ``train.lr=1e-5``, each value with its word as its origin."""
    table = Table(record.node)
    for word in words:
        value = word.value
        known = value is not None and "$" not in value
        guess = None if value in ("null", "~") else of_text(value or "")
        _put(table, word.name.split("."), Const(word, guess) if known else Unknown(word))
    return table


def _from_list(interpreter: Evaluator, record: Record) -> Value:
    words = record.value(0, "dotlist")
    if not isinstance(words, Items) or words.open:
        return _overrides(interpreter, record)
    table = Table(record.node)
    for word in words.items:
        if not isinstance(word, Const) or not isinstance(word.value, str):
            return Table(record.node, open=True)
        name, _, text = word.value.partition("=")
        _put(table, name.split("."), Const(word.origin, of_text(text)))
    return table


def _put(table: Table, path: list[str], value: Value) -> None:
    if len(path) > bounds.MAX_LEVELS:
        table.open = True
        return
    for part in path[:-1]:
        deeper = table.items.get(part)
        table.items[part] = table = deeper if isinstance(deeper, Table) else Table(value.origin, root=table.root)
    table.items[path[-1]] = value


def _load(interpreter: Evaluator, record: Record) -> Value:
    return config(config_files.load(interpreter, record.value(0, "file_"), record, Kind.YAML), interpreter.walk.steps)


def _create(interpreter: Evaluator, record: Record) -> Value:
    value = record.value(0, "obj")
    if value is None:
        return config(Table(record.node), interpreter.walk.steps)
    table = as_table(value)
    return config(table, interpreter.walk.steps) if table is not None else Unknown(record.node)


def _merge(interpreter: Evaluator, record: Record) -> Value:
    return Unknown(record.node) if record.spreads else merged(record.positional, record, interpreter.walk.steps)


def _select(interpreter: Evaluator, record: Record) -> Value:
    holder, key = record.value(0, "cfg"), record.value(1, "key")
    if not isinstance(key, Const) or not isinstance(holder, Table):
        return Unknown(record.node)
    current: Value | None = holder
    for part in str(key.value).split("."):
        if not isinstance(current, Table):
            return Unknown(record.node)
        found = held(current, part)
        if found is None:
            return Unknown(record.node) if current.open else record.keyword("default") or Const(record.node, None)
        current = found
    return current or Unknown(record.node)


def _update(interpreter: Evaluator, record: Record) -> Value:
    holder, key, value = record.value(0, "cfg"), record.value(1, "key"), record.value(2, "value")
    if isinstance(holder, Table) and isinstance(key, Const) and value is not None:
        _put(holder, str(key.value).split("."), value)
    elif isinstance(holder, Table):
        holder.open = True
    return Const(record.node, None)


def _itself(interpreter: Evaluator, record: Record) -> Value:
    return record.value(0, "cfg") or Unknown(record.node)


def _nothing(interpreter: Evaluator, record: Record) -> Value:
    return Const(record.node, None)


_NAMES: dict[str, Callable[[Evaluator, Record], Value]] = {
    "load": _load,
    "create": _create,
    "structured": _create,
    "merge": _merge,
    "unsafe_merge": _merge,
    "from_cli": _overrides,
    "from_dotlist": _from_list,
    "to_container": _itself,
    "to_object": _itself,
    "select": _select,
    "update": _update,
    "set_struct": _nothing,
    "set_readonly": _nothing,
    "resolve": _nothing,
    "register_new_resolver": _nothing,
}

FUNCTIONS: dict[str, Any] = {f"omegaconf.OmegaConf.{name}": handler for name, handler in _NAMES.items()}
