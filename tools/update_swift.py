"""Write what ms-swift's command line takes, by version: lintfit/catalog/data/swift.json.

    git clone https://github.com/modelscope/ms-swift
    python tools/update_swift.py ms-swift

Reads the repository at the last release of each minor version and at its newest commit, without importing anything: the
fields of the dataclasses that ``swift sft``, ``pt`` and ``rlhf`` are parsed into, each with what ``HfArgumentParser``
makes of it (``lintfit/sources/flag_grammars/kinds.py``) and its default, and the models' ids on the Hugging Face Hub by
the names that ms-swift has for them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from packaging.version import Version  # noqa: E402

from lintfit.sources.flag_grammars.kinds import default_of, field_kind  # noqa: E402

DATA = ROOT / "lintfit" / "catalog" / "data" / "swift.json"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "sft": ("SftArguments", "TrainArguments"),
    "pt": ("PretrainArguments", "PtArguments", "SftArguments", "TrainArguments"),
    "rlhf": ("RLHFArguments",),
}
"""The dataclass of each command: the first of these that a version has."""
OF_TRANSFORMERS = ("TrainingArguments", "Seq2SeqTrainingArguments")
_OLDEST = "2.0"
_MODULES = re.compile(r"swift/(llm|arguments|trainers|rlhf_trainers|ray|ray_utils|utils|megatron/arguments)/.*\.py")
_MODELS = re.compile(r"swift/(llm/)?model/(models?/)?\w+\.py|swift/llm/utils/model\.py")
_SETUP = "swift/version.py"
ABOUT = (
    "arguments of ms-swift by version, as the dataclasses of its repository declare them; a field is a list of [index "
    "of the first version, kind, default], or [index] where it is gone from then on; a default of [] is a list, {} one "
    "that is no constant; kinds: lintfit/sources/flag_grammars/kinds.py"
)

Field = tuple[str, Any]
Classes = dict[str, tuple[list[str], dict[str, Field]]]


class Repository:
    """A checkout, or a bare repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", "-C", str(self.folder), *words], check=True, capture_output=True)
        return done.stdout.decode("utf-8", "replace")

    def releases(self) -> list[str]:
        """The tag of the last release of each minor version, oldest first, and the newest commit."""
        tags = [tag for tag in self.git("tag").split() if re.fullmatch(r"v\d+\.\d+\.\d+(\.post\d+)?", tag)]
        newest: dict[tuple[int, ...], str] = {}
        for tag in sorted(tags, key=Version):
            if Version(tag) >= Version(_OLDEST):
                newest[Version(tag).release[:2]] = tag
        return [*newest.values(), "HEAD"]

    def modules(self, commit: str, wanted: re.Pattern[str]) -> Iterator[ast.Module]:
        for path in self.git("ls-tree", "-r", "--name-only", commit).splitlines():
            if wanted.fullmatch(path):
                try:
                    yield ast.parse(self.git("show", f"{commit}:{path}"))
                except SyntaxError:
                    continue


Enums = Mapping[str, Mapping[str, str]]
"""Classes of words by name, each with its members."""


def constant(value: ast.expr | None, enums: Enums = {}) -> Any:  # noqa: B006  nothing changes it
    """The default that is assigned to a field; an empty mapping for one that is no constant."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        factory = given.get("default_factory")
        if isinstance(factory, ast.Lambda):
            return constant(factory.body, enums)
        return [] if factory is not None and ast.unparse(factory) == "list" else constant(given.get("default"), enums)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = [constant(each, enums) for each in (value.left, value.right)]
        return sides[0] * sides[1] if all(isinstance(each, int) for each in sides) else {}
    if isinstance(value, ast.Attribute):
        return enums.get(ast.unparse(value.value), {}).get(value.attr, {})
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return {}


def enums_of(modules: Iterable[ast.Module]) -> Enums:
    """The enumerations of words, each with its members by name."""
    found: dict[str, dict[str, str]] = {}
    for node in (each for module in modules for each in module.body if isinstance(each, ast.ClassDef)):
        if any(ast.unparse(base).endswith("Enum") for base in node.bases):
            found[node.name] = {
                ast.unparse(each.targets[0]): each.value.value
                for each in node.body
                if isinstance(each, ast.Assign)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            }
    return found


def dataclasses_of(modules: Iterable[ast.Module], enums: Enums = {}) -> Classes:  # noqa: B006  nothing changes it
    """The dataclasses by name, with their bases and own fields; Megatron's and TRL's are left out by the caller."""
    found: Classes = {}
    words = {name: tuple(members.values()) for name, members in enums.items()}
    for module in modules:
        aliases = {
            alias.asname: alias.name
            for node in ast.walk(module)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname
        }
        for node in module.body:
            if not isinstance(node, ast.ClassDef) or not any(
                "dataclass" in ast.unparse(d) for d in node.decorator_list
            ):
                continue
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            fields: dict[str, Field] = {}
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None:
                    kind = field_kind(ast.unparse(each.annotation), each.value, words)
                    if kind and default_of(each.value)[1]:
                        fields[each.target.id] = (kind, constant(each.value, enums))
            own = [
                f"transformers.{aliases.get(b, b)}" if _is_transformers(b, aliases) else aliases.get(b, b)
                for b in bases
            ]
            found.setdefault(node.name, (own, fields))
    return found


def _is_transformers(base: str, aliases: Mapping[str, str]) -> bool:
    """Whether a base is a class of transformers, imported under another name (``HfTrainingArguments``)."""
    return base in aliases and aliases[base] in OF_TRANSFORMERS


def resolved(name: str, classes: Classes, seen: frozenset[str] = frozenset()) -> tuple[dict[str, Field], set[str]]:
    """The fields of a class with the inherited ones, as Python finds them, and the classes of transformers among its
    bases."""
    if name.startswith("transformers.") or (name in OF_TRANSFORMERS and name not in classes):
        return {}, {name.rpartition(".")[2]}
    if name not in classes or name in seen:
        return {}, set()
    bases, own = classes[name]
    found: dict[str, Field] = {}
    foreign: set[str] = set()
    for base in reversed(bases):
        inherited, others = resolved(base, classes, seen | {name})
        found |= inherited
        foreign |= others
    return found | own, foreign


def steps(values: Sequence[Any]) -> list[list[Any]]:
    """A value by version as changes; None where it is not there."""
    found: list[list[Any]] = []
    before: Any = None
    for index, value in enumerate(values):
        if value != before:
            found.append([index] if value is None else [index, *value])
        before = value
    return found


def ids_of(modules: Iterable[ast.Module]) -> dict[str, str]:
    """The ids on the Hugging Face Hub of models that are called otherwise on ModelScope (``Model('a/b', 'c/d')``)."""
    found: dict[str, str] = {}
    for node in (each for module in modules for each in ast.walk(module) if isinstance(each, ast.Call)):
        if ast.unparse(node.func) == "Model" and len(node.args) > 1:
            here, there = (each.value if isinstance(each, ast.Constant) else None for each in node.args[:2])
            if isinstance(here, str) and isinstance(there, str) and _last(here) != _last(there):
                found[here] = there
    return found


def _last(name: str) -> str:
    return name.rpartition("/")[2].lower()


def types_of(modules: Iterable[ast.Module]) -> dict[str, str]:
    """The models of ms-swift 2 by their ``--model_type``: the id on the Hugging Face Hub, else that on ModelScope."""
    names: dict[str, str] = {}
    found: dict[str, str] = {}
    for module in modules:
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name == "ModelType":
                for each in node.body:
                    if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
                        names[ast.unparse(each.targets[0])] = str(each.value.value)
        for call in (each for each in ast.walk(module) if isinstance(each, ast.Call)):
            if ast.unparse(call.func) != "register_model" or len(call.args) < 2:
                continue
            kind = names.get(ast.unparse(call.args[0]).rpartition(".")[2])
            there = next((k.value for k in call.keywords if k.arg == "hf_model_id"), call.args[1])
            if kind is not None and isinstance(there, ast.Constant) and isinstance(there.value, str):
                found[kind] = there.value
    return found


def table(repository: Repository) -> dict[str, Any]:
    releases = repository.releases()
    made: dict[str, Any] = {"about": ABOUT, "versions": [_version(repository, each) for each in releases]}
    made["released"] = [repository.git("log", "-1", "--format=%cs", each).strip() for each in releases]
    read = [dataclasses_of(repository.modules(each, _MODULES)) for each in releases]
    made["commands"] = {}
    for command, names in COMMANDS.items():
        each_version = [resolved(next((name for name in names if name in classes), ""), classes) for classes in read]
        fields = list(dict.fromkeys(field for own, _ in each_version for field in own))
        made["commands"][command] = {
            "transformers": steps([[max(foreign)] if foreign else None for _, foreign in each_version]),
            "fields": {field: steps([own.get(field) for own, _ in each_version]) for field in sorted(fields)},
        }
    sft = made["commands"]["sft"]["fields"]
    for command in ("pt", "rlhf"):
        own = made["commands"][command]["fields"]
        made["commands"][command]["fields"] = {name: own[name] for name in own if own[name] != sft.get(name)}
    made["ids"] = dict(sorted(ids_of(repository.modules("HEAD", _MODELS)).items()))
    older = next(tag for tag in reversed(releases) if tag.startswith("v2."))
    made["types"] = dict(sorted(types_of(repository.modules(older, _MODELS)).items()))
    return made


def _version(repository: Repository, commit: str) -> str:
    if commit.startswith("v"):
        return commit[1:]
    found = re.search(r"__version__ = '([\d.]+)", repository.git("show", f"{commit}:{_SETUP}"))
    assert found is not None
    return found[1].rstrip(".")


def json_lines(value: Any, depth: int = 0) -> Iterator[str]:
    """JSON with a line for each field."""
    if not isinstance(value, dict) or depth == 4:
        yield json.dumps(value, ensure_ascii=False)
        return
    pad = " " * (depth + 1)
    inner = (f"{pad}{json.dumps(key)}: " + "".join(json_lines(each, depth + 1)) for key, each in value.items())
    yield "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}" if value else "{}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    made = table(Repository(parser.parse_args().repository))
    DATA.write_text("".join(json_lines(made)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
