"""One release of axolotl as its source tells it: config classes with their fields, plugins, keys that stop a run."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_OLDEST = (0, 5, 0)
"""The first release that validates a recipe with pydantic; before it every key passes."""
_PARTS = ("src/axolotl/utils", "src/axolotl/integrations", "deepspeed_configs", "requirements.txt", "pyproject.toml")
_CODE = ("src/axolotl", "scripts")
_CONFIGS = ("cfg", "self.cfg")
"""What axolotl's code calls a recipe."""
_PIN = re.compile(
    r"^\s*\"?(transformers|accelerate|trl|peft|bitsandbytes|liger-kernel|deepspeed)==([\w.]+)", re.MULTILINE
)
_SCHEMAS = ("src/axolotl/utils/schemas/", "src/axolotl/utils/config/models/input/v0_4_1/")
"""Where the config's classes are, since 0.8 and before."""
_INTEGRATIONS = "src/axolotl/integrations/"
_SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null",
           "PositiveInt": "integer"}  # fmt: skip
_NO_DEFAULT = object()


@dataclass(frozen=True)
class Field:
    """A field of a pydantic class: its name in a recipe, what may stand there, its default."""

    name: str
    annotation: ast.expr
    default: Any
    deprecated: bool


def releases(checkout: Path) -> list[Release]:
    """The releases among a checkout's tags, oldest first; post releases apart."""
    tags = subprocess.run(["git", "-C", checkout, "tag"], capture_output=True, text=True, check=True).stdout.split()
    numbered = sorted(
        (tuple(map(int, match[1].split("."))), tag) for tag in tags if (match := re.fullmatch(r"v(\d+\.\d+\.\d+)", tag))
    )
    found = [tag for number, tag in numbered if number >= _OLDEST]
    return [Release(tag.removeprefix("v"), _files(checkout, tag)) for tag in found]


def keys_before(checkout: Path) -> frozenset[str]:
    """The keys that releases before those read of a recipe, which is a plain mapping there (``cfg.name``)."""
    tags = subprocess.run(["git", "-C", checkout, "tag"], capture_output=True, text=True, check=True).stdout.split()
    numbers = {tag: tuple(map(int, match[1].split("."))) for tag in tags
               if (match := re.fullmatch(r"v(\d+\.\d+\.\d+)", tag))}  # fmt: skip
    older = [tag for tag, number in numbers.items() if number < _OLDEST]
    texts = (text for tag in older for name, text in _files(checkout, tag, _CODE).items() if name.endswith(".py"))
    read = (name for text in texts for name in _read_of_config(ast.parse(text)))
    return frozenset(name for name in read if not hasattr(dict, name))


def _read_of_config(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node.value) in _CONFIGS:
            yield node.attr
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in {f"{each}.get" for each in _CONFIGS}:
            named = _literal(node.args[0])
            if isinstance(named, str):
                yield named


def _files(checkout: Path, tag: str, parts: Sequence[str] = _PARTS) -> Mapping[str, str]:
    packed = subprocess.run(
        ["git", "-C", checkout, "archive", tag, *_present(checkout, tag, parts)], capture_output=True, check=True
    )
    files = {}
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith((".py", ".json", ".txt", ".toml")) else None
            if content is not None:
                files[member.name] = content.read().decode("utf-8")
    return files


def _present(checkout: Path, tag: str, parts: Sequence[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "-C", checkout, "ls-tree", "--name-only", tag, *parts],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


class Release:
    """The classes of one release, by name."""

    def __init__(self, version: str, files: Mapping[str, str]) -> None:
        self.version = version
        self._files = files

    @cached_property
    def _trees(self) -> dict[str, ast.Module]:
        wanted = (*_SCHEMAS, _INTEGRATIONS)
        return {name: ast.parse(text) for name, text in self._files.items()
                if name.endswith(".py") and name.startswith(wanted)}  # fmt: skip

    @cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        """Classes of the config, and behind them those of plugins, by name."""
        ordered = sorted(self._trees, key=lambda name: name.startswith(_INTEGRATIONS), reverse=True)
        return {
            node.name: node for name in ordered for node in self._trees[name].body if isinstance(node, ast.ClassDef)
        }

    def _fields(self, cls: str) -> dict[str, Field]:
        """The fields of a class and of its bases, which it stands over."""
        node = self._classes.get(cls)
        if node is None:
            return {}
        fields: dict[str, Field] = {}
        for base in reversed(node.bases):
            if isinstance(base, ast.Name) and base.id != cls:
                fields.update(self._fields(base.id))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                field = _field(statement.target.id, statement)
                fields[statement.target.id] = field
        return fields

    def keys(self, cls: str) -> frozenset[str]:
        """The keys that a class takes: its fields, by their names and by their aliases."""
        return frozenset(name for pair in self._fields(cls).items() for name in (pair[0], pair[1].name))

    def section(self, cls: str, key: str) -> frozenset[str]:
        """The keys of the class that a key's value is; empty where it is a plain mapping, or the key is not there."""
        field = self._fields(cls).get(key)
        names = _names(field.annotation) if field is not None else ()
        found = [self.keys(name) | self._aliases(name) for name in names if self._is_model(name)]
        return frozenset().union(*found)

    def _aliases(self, cls: str) -> frozenset[str]:
        """Further spellings of fields (``AliasChoices``)."""
        calls = (node for node in ast.walk(self._classes[cls]) if isinstance(node, ast.Call))
        choices = (call.args for call in calls if isinstance(call.func, ast.Name) and call.func.id == "AliasChoices")
        return frozenset(arg.value for args in choices for arg in args if isinstance(arg, ast.Constant))

    def defaults(self, cls: str) -> dict[str, Any]:
        plain = {field.name: field.default for field in self._fields(cls).values()}
        return {key: value for key, value in plain.items() if value is not _NO_DEFAULT}

    def required(self, cls: str) -> list[str]:
        return sorted(field.name for field in self._fields(cls).values() if field.default is _NO_DEFAULT)

    # -- plugins ----------------------------------------------------------------------------------------------------

    def plugins(self) -> dict[str, frozenset[str]]:
        """The keys of each plugin by the folder that it stands in."""
        folders = {name.removeprefix(_INTEGRATIONS).partition("/")[0] for name in self._trees if name.count("/") > 3
                   and name.startswith(_INTEGRATIONS)}  # fmt: skip
        return {
            folder: frozenset().union(*(self.keys(cls) for cls in self.plugin_classes(folder)))
            for folder in sorted(folders)
        }

    def plugin_classes(self, folder: str) -> list[str]:
        """The classes of arguments that the plugins of a folder bring (``get_input_args``)."""
        texts = "\n".join(text for name, text in self._files.items() if name.startswith(f"{_INTEGRATIONS}{folder}/"))
        asked = re.findall(rf'"axolotl\.integrations\.{folder}\.(?:[\w.]+\.)?(\w+)"', texts)
        return [cls for cls in dict.fromkeys(asked) if self._is_model(cls)]

    def plugin_name(self, folder: str) -> str | None:
        """The plugin's dotted name, as a recipe lists it."""
        names = [node.name for name, tree in self._trees.items() if name.startswith(f"{_INTEGRATIONS}{folder}/")
                 for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Plugin")]  # fmt: skip
        return f"axolotl.integrations.{folder}.{names[0]}" if names else None

    # -- keys that stop a run -----------------------------------------------------------------------------------------

    def stopping(self) -> dict[str, tuple[str, str]]:
        """Keys whose own validator raises DeprecationWarning, by whether a true value or any does, with its words."""
        node = self._classes.get("DeprecatedParameters")
        found = {}
        for function in node.body if node is not None else ():
            if isinstance(function, ast.FunctionDef):
                found.update(_stops(function))
        return found

    def pins(self) -> dict[str, str]:
        """The libraries that it is installed with in one version alone."""
        texts = "\n".join(self._files.get(name, "") for name in ("requirements.txt", "pyproject.toml"))
        return dict(sorted(_PIN.findall(texts)))

    def deepspeed_files(self) -> dict[str, Any]:
        """The DeepSpeed configs that come with axolotl, by name."""
        found = {name: json.loads(text) for name, text in self._files.items() if name.startswith("deepspeed_configs/")}
        return {name.rpartition("/")[2]: found[name] for name in sorted(found)}

    # -- the schema ---------------------------------------------------------------------------------------------------

    def _is_model(self, name: str) -> bool:
        node = self._classes.get(name)
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)] if node is not None else []
        return "BaseModel" in bases or any(base != name and self._is_model(base) for base in bases)

    def properties(self, cls: str) -> dict[str, Any]:
        """The JSON Schema of a class's keys."""
        result = {}
        for key, field in self._fields(cls).items():
            value = self._schema(field.annotation)
            if field.default is not _NO_DEFAULT and field.default is not None:
                value = {**value, "default": field.default}
            if field.deprecated:
                value = {**value, "deprecated": True}
            result[field.name] = value
            result.setdefault(key, value)
        return result

    def definitions(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The schemas of the classes that keys name, and those that these name."""
        found: dict[str, Any] = {}
        waiting = list(_references(properties))
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            inner = self.properties(name)
            for alias in self._aliases(name):
                inner.setdefault(alias, {})
            found[name] = {"type": "object", "properties": inner}
            waiting += _references(inner)
        return dict(sorted(found.items()))

    def _schema(self, node: ast.expr) -> dict[str, Any]:
        alternatives = [self._one(part) for part in _parts(node)]
        if any(not each for each in alternatives):
            return {}
        words = [word for each in alternatives for word in each.get("enum", ())]
        plain = {each["type"] for each in alternatives if each.keys() == {"type"} and isinstance(each["type"], str)}
        rest = [each for each in alternatives if "enum" not in each and each.keys() != {"type"}]
        if words and not rest:
            more = [{"type": sorted(plain)}] if plain - {"null", "boolean"} else []
            words += [True, False] if "boolean" in plain else []
            words += [None] if "null" in plain else []
            return {"enum": words} if not more else {"anyOf": [{"enum": words}, *more]}
        kinds = [{"type": sorted(plain) if len(plain) > 1 else next(iter(plain))}] if plain else []
        every = [*([{"enum": words}] if words else []), *rest, *kinds]
        return every[0] if len(every) == 1 else {"anyOf": every}

    def _one(self, node: ast.expr) -> dict[str, Any]:
        """The schema of a part of an annotation; empty for anything."""
        name = _name(node)
        if name in _SIMPLE:
            return {"type": _SIMPLE[name]}
        if name in ("dict", "Dict"):
            return {"type": "object"}
        if name in ("list", "List", "tuple", "Tuple"):
            return {"type": "array"}
        if name is not None and self._is_model(name):
            return {"$ref": f"#/$defs/{name}"}
        if name is not None and name in self._classes:
            return _enumeration(self._classes[name])
        if not isinstance(node, ast.Subscript):
            return {}
        outer = _name(node.value)
        if outer == "Literal":
            return {"enum": [_literal(each) for each in _inner(node)]}
        if outer in ("list", "List"):
            items = self._schema(_inner(node)[0])
            return {"type": "array", **({"items": items} if items else {})}
        if outer in ("dict", "Dict"):
            return {"type": "object"}
        if outer in ("tuple", "Tuple"):
            return {"type": "array"}
        return self._schema(_inner(node)[0]) if outer == "Annotated" else {}


def _field(name: str, statement: ast.AnnAssign) -> Field:
    value, alias, deprecated = statement.value, name, False
    default: Any = _NO_DEFAULT if value is None else _literal(value)
    if isinstance(value, ast.Call) and _name(value.func) == "Field":
        options = {each.arg: each.value for each in value.keywords}
        default = _literal(options["default"]) if "default" in options else _NO_DEFAULT
        if "default_factory" in options:
            default = None
        if value.args:
            default = _literal(value.args[0])
        alias = _literal(options["alias"]) if "alias" in options else name
        deprecated = "deprecated" in options
    return Field(str(alias or name), statement.annotation, default, deprecated)


def _literal(node: ast.expr) -> Any:
    """The value of a constant; the word for a member of an enumeration of words; None for anything else."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        pass
    if isinstance(node, ast.Attribute):
        return node.attr.lower() if node.attr != "value" else _literal(node.value)
    return None


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    return node.id if isinstance(node, ast.Name) else None


def _inner(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The alternatives of an annotation: ``X | Y``, ``Optional[X]``, ``Union[X, Y]``."""
    if isinstance(node, ast.BinOp):
        yield from _parts(node.left)
        yield from _parts(node.right)
    elif isinstance(node, ast.Subscript) and _name(node.value) in ("Optional", "Union"):
        for each in _inner(node):
            yield from _parts(each)
        if _name(node.value) == "Optional":
            yield ast.Constant(None)
    else:
        yield node


def _names(node: ast.expr) -> list[str]:
    return [name for part in _parts(node) if (name := _name(part)) is not None]


def _enumeration(node: ast.ClassDef) -> dict[str, Any]:
    """The words of an enumeration; anything where they are none."""
    words = [_literal(each.value) for each in node.body if isinstance(each, ast.Assign)]
    return {"enum": words} if words and all(isinstance(word, str) for word in words) else {}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _stops(function: ast.FunctionDef) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a validator of one key raises DeprecationWarning at."""
    keys = [_literal(argument) for each in function.decorator_list if isinstance(each, ast.Call)
            and _name(each.func) == "field_validator" for argument in each.args]  # fmt: skip
    for statement in function.body:
        raised = statement.body[0] if isinstance(statement, ast.If) else None
        if (
            not isinstance(statement, ast.If)
            or not isinstance(raised, ast.Raise)
            or not isinstance(raised.exc, ast.Call)
        ):
            continue
        if _name(raised.exc.func) == "DeprecationWarning":
            words = raised.exc.args[0]
            when = "set" if isinstance(statement.test, ast.Compare) else "true"
            for key in keys:
                yield str(key), (when, str(_literal(words)))
