"""Read the installed deepspeed and accelerate, and report what the schemas lack.

    python tools/update_schemas.py [deepspeed] [accelerate]

One line per difference: a key that the library reads and the schema does not have, a key that the library has
forgotten, another default, type, range or set of words. Exits with 1 where there is any, so that a new release is
``pip install -U deepspeed accelerate`` and this command. Needs the ``peers`` extra.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import logging
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lintfit.schema.sections import Schema, SchemaName, load  # noqa: E402

KeyPath = tuple[str, ...]

MARK = "x_path"
"""A key put into every section, by which a model is recognized when DeepSpeed makes it."""

NOT_KEYS = frozenset({MARK, "enabled", "mpu", "tp_group"})
OPEN = frozenset(
    {"autotuning", "data_efficiency", "datastates_ckpt", "expert_parallel", "inference", "msamp", "optimizer"}
)
"""Sections whose keys the schema leaves to the code that reads them."""


BY_VALIDATOR = frozenset({"fp16.loss_scale", "zero_optimization.zenflow.update_interval"})
"""Keys whose range a validator's code checks, which the field does not show."""


class Recorder(dict[str, Any]):
    """A dict that remembers which keys it was asked for."""

    def __init__(self, path: KeyPath, asked: set[KeyPath], *args: Any) -> None:
        super().__init__(*args)
        self.path, self.asked = path, asked

    def __copy__(self) -> Recorder:
        return Recorder(self.path, self.asked, self)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add((*self.path, key))
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add((*self.path, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add((*self.path, str(key)))
        return super().__contains__(key)


@dataclasses.dataclass(frozen=True)
class Field:
    """What a library says of one key. ``default`` is a 1-tuple, empty where there is none."""

    types: frozenset[str]
    words: frozenset[Any]
    default: tuple[Any, ...]
    bounds: frozenset[tuple[str, float]]


def differences(names: Iterable[SchemaName]) -> Iterator[str]:
    """The lines of the report."""
    readers: dict[SchemaName, Callable[[Schema], Iterator[str]]] = {"deepspeed": deepspeed, "accelerate": accelerate}
    for name in names:
        module = __import__(name)
        schema = load(name)
        if schema["x-version"] != module.__version__:
            yield f"{name}: x-version is {schema['x-version']}, installed is {module.__version__}"
        for line in readers[name](schema):
            yield f"{name}: {line}"


def deepspeed(schema: Schema) -> Iterator[str]:
    """What the schema lacks of DeepSpeed: its pydantic models, and the keys that its code asks plain dicts for."""
    asked, models = _parsed(schema)
    known = dict(_sections(schema, ()))
    for path in sorted(asked):
        section = known.get(path[:-1])
        if section is None or path[-1] in NOT_KEYS or (path and path[0] in OPEN and len(path) > 1):
            continue
        if path[-1] not in section.get("properties", {}):
            yield f"{'.'.join(path)} is read and missing"
    for path, model in sorted(models.items()):
        yield from _model(path, model, known.get(path, {}))


def _parsed(schema: Schema) -> tuple[set[KeyPath], dict[KeyPath, Any]]:
    """The keys that DeepSpeedConfig asks for, and the pydantic model of each section."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    logging.disable(logging.CRITICAL)
    from deepspeed.runtime import config
    from deepspeed.runtime.config_utils import DeepSpeedConfigModel

    asked: set[KeyPath] = set()
    models: dict[KeyPath, Any] = {}
    original = DeepSpeedConfigModel.__init__

    def init(self: Any, strict: bool = False, **data: Any) -> None:
        path = data.pop(MARK, None)
        if path is not None:
            models[path] = type(self)
        original(self, strict=strict, **data)

    data = Recorder((), asked, {"train_batch_size": 1})
    for key, child in schema["properties"].items():
        if "properties" in child and not child.get("deprecated"):
            dict.__setitem__(data, key, Recorder((key,), asked, {MARK: (key,)}))
    throughput = Recorder(("timers", "throughput"), asked, {MARK: ("timers", "throughput")})
    dict.__setitem__(data, "timers", Recorder(("timers",), asked, {"throughput": throughput}))
    DeepSpeedConfigModel.__init__ = init
    try:
        config.DeepSpeedConfig(data)
    finally:
        DeepSpeedConfigModel.__init__ = original
    for path, model in list(models.items()):
        models.update(_nested(path, model, DeepSpeedConfigModel))
    return {path for path in asked if path[-1] not in _inside(models, path[:-1])}, models


def _inside(models: dict[KeyPath, Any], path: KeyPath) -> frozenset[str]:
    """Keys of a model's section are its fields, whatever else its code asks for."""
    return frozenset(models[path].model_fields) if path in models else frozenset()


def _nested(path: KeyPath, model: Any, base: type) -> Iterator[tuple[KeyPath, Any]]:
    for name, field in model.model_fields.items():
        for kind in _parts(field.annotation):
            if isinstance(kind, type) and issubclass(kind, base):
                here = (*path, field.alias or name)
                yield here, kind
                yield from _nested(here, kind, base)


def _model(path: KeyPath, model: Any, section: Schema) -> Iterator[str]:
    properties = section.get("properties", {})
    accepted: set[str] = set()
    for name, field in model.model_fields.items():
        accepted |= {name, field.alias or name}
        for key in sorted({name, field.alias or name}):
            here = ".".join((*path, key))
            if key not in properties:
                yield f"{here} is missing ({_shown(_described(field))})"
            elif "x-removed-in" not in properties[key]:
                lines = _compared(_described(field), properties[key])
                yield from (f"{here}: {line}" for line in lines if here not in BY_VALIDATOR)
    for key, child in properties.items():
        if key not in accepted and "x-removed-in" not in child:
            yield f"{'.'.join((*path, key))} is no longer a field of {model.__name__}"


def _described(field: Any) -> Field:
    bounds = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    found = {
        (keyword, float(getattr(one, name)))
        for one in field.metadata
        for name, keyword in bounds.items()
        if getattr(one, name, None) is not None
    }
    default = field.default
    if isinstance(default, enum.Enum):
        default = default.value
    plain = default is None or isinstance(default, (bool, int, float, str))
    names, words = _json_types(field.annotation)
    return Field(names, words, (default,) if plain else (), frozenset(found))


def _json_types(annotation: Any) -> tuple[frozenset[str], frozenset[Any]]:
    names: set[str] = set()
    words: set[Any] = set()
    simple = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string", type(None): "null"}
    for kind in _parts(annotation):
        origin = typing.get_origin(kind) or kind
        if origin is typing.Literal:
            words |= set(typing.get_args(kind))
        elif origin in simple:
            names.add(simple[origin])
        elif isinstance(origin, type) and issubclass(origin, enum.Enum):
            words |= {one.value for one in origin}
        elif isinstance(origin, type) and issubclass(origin, (list, tuple, set)):
            names.add("array")
        elif isinstance(origin, type) and (issubclass(origin, dict) or hasattr(origin, "model_fields")):
            names.add("object")
    return frozenset(names), frozenset(words)


def _parts(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from _parts(part)
    else:
        yield annotation


def _compared(field: Field, schema: Schema) -> Iterator[str]:
    names, words, bounds = _stated(schema)
    # A whole number is a number, and the words of an enumeration need no type; "auto" stands wherever a model is.
    missing = {name for name in field.types - names if not (name == "integer" and "number" in names)}
    if missing and not words and "$ref" not in schema:
        yield f"type {_listed(missing)} is missing"
    if field.words and not field.words <= words:
        yield f"words {_listed(field.words - words)} are missing"
    if field.bounds != bounds and field.types & {"integer", "number"}:
        yield f"range is {_listed(bounds) or 'open'}, the library's {_listed(field.bounds) or 'open'}"
    if field.default and "default" in schema and schema["default"] != field.default[0]:
        yield f"default is {schema['default']!r}, the library's {field.default[0]!r}"


def _stated(schema: Schema) -> tuple[set[str], set[Any], frozenset[tuple[str, float]]]:
    stated = schema.get("type", ())
    names = {stated} if isinstance(stated, str) else set(stated)
    words = set(schema.get("enum", ())) | ({schema["const"]} if "const" in schema else set())
    keywords = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    bounds = {(keyword, float(schema[keyword])) for keyword in keywords if keyword in schema}
    for part in schema.get("anyOf", ()):
        more_names, more_words, more_bounds = _stated(part)
        names |= more_names
        words |= more_words - {"auto"}
        bounds |= more_bounds
    return names, words, frozenset(bounds)


def _sections(schema: Schema, path: KeyPath) -> Iterator[tuple[KeyPath, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        if "properties" in child:
            yield from _sections(child, (*path, name))


def accelerate(schema: Schema) -> Iterator[str]:
    """What the schema lacks of Accelerate: the fields of its config classes, and the launcher's arguments."""
    from accelerate.commands.config import config_args
    from accelerate.commands.launch import launch_command_parser

    for name, cls in (("cluster", config_args.ClusterConfig), ("sagemaker", config_args.SageMakerConfig)):
        yield from _fields(cls, schema["$defs"][name]["properties"])
    groups = {group.title: group for group in launch_command_parser()._action_groups}
    cluster = schema["$defs"]["cluster"]["properties"]
    read = _read_by_launcher()
    for section, (title, prefix) in _GROUPS.items():
        if title not in groups:
            yield f'the group of arguments "{title}" is gone'
            continue
        actions = {action.dest: action for action in groups[title]._group_actions if action.dest.startswith(prefix)}
        yield from _arguments(section, actions, cluster[section]["properties"], read)


def _read_by_launcher() -> frozenset[str]:
    """The names that the launcher's code takes from its arguments, among them some that no flag sets."""
    from accelerate.utils import launch

    source = Path(launch.__file__).read_text("utf-8")
    return frozenset(
        name for pair in re.findall(r'args\.(\w+)|getattr\(args, "(\w+)"', source) for name in pair if name
    )


_GROUPS = {
    "deepspeed_config": ("DeepSpeed Arguments", ""),
    "fsdp_config": ("FSDP Arguments", "fsdp_"),
    "megatron_lm_config": ("Megatron-LM Arguments", "megatron_lm_"),
    "fp8_config": ("FP8 Arguments", "fp8_"),
    "parallelism_config": ("ParallelismConfig Arguments", "parallelism_config_"),
    "mpirun_config": ("MPI Arguments", "mpirun_"),
}
"""The sections of a cluster's file, the group of arguments that stands for each, and what its names begin with."""


def _fields(cls: Any, properties: Schema) -> Iterator[str]:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name, field in fields.items():
        if name not in properties:
            yield f"{name} is a field of {cls.__name__} and missing"
            continue
        stated = properties[name].get("default", field.default)
        if field.default is not dataclasses.MISSING and stated != field.default:
            yield f"{name}: default is {stated!r}, {cls.__name__}'s {field.default!r}"
    for name, child in properties.items():
        if name not in fields and not child.get("deprecated"):
            yield f"{name} is no longer a field of {cls.__name__}"


def _arguments(section: str, actions: dict[str, Any], properties: Schema, read: frozenset[str]) -> Iterator[str]:
    for name, action in actions.items():
        if name not in properties:
            yield f"{section}.{name} is an argument of accelerate launch and missing"
            continue
        words = {str(word).casefold() for word in properties[name].get("enum", ())}
        missing = {str(word) for word in action.choices or () if str(word).casefold() not in words}
        if words and missing:
            yield f"{section}.{name}: words {_listed(missing)} are missing"
    for name, child in properties.items():
        if name not in actions and name not in read and not ({"x-alias-of", "deprecated"} & child.keys()):
            yield f"{section}.{name} is no longer an argument of accelerate launch"


def _shown(field: Field) -> str:
    default = f", default {field.default[0]!r}" if field.default else ""
    return f"{_listed(field.types) or _listed(field.words)}{default}"


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, names)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", choices=["deepspeed", "accelerate", []], help="default: both")
    libraries = parser.parse_args().libraries or ["deepspeed", "accelerate"]
    lines = list(differences(libraries))
    for line in lines:
        print(line)
    print(f"{len(lines)} differences" if lines else "the schemas have everything that the installed libraries read")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
