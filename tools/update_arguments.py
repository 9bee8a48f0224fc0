"""Write which arguments the libraries' command lines take, by version: lintfit/catalog/data/arguments.json.

    pip download --no-deps -d WHEELS transformers==5.23.0 trl==1.16.0 accelerate==1.15.0 …
    python tools/update_arguments.py WHEELS

Reads the wheels' source without importing it: the fields of transformers' ``TrainingArguments`` and
``Seq2SeqTrainingArguments`` and of every dataclass of TRL whose name ends with ``Config`` or ``Arguments``, each with
what ``HfArgumentParser`` makes of it (``lintfit/sources/flag_grammars/kinds.py``), and the options of
``accelerate launch``. ClassVars and fields that the constructor does not take have the empty kind.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from packaging.version import Version  # noqa: E402

from lintfit.sources.flag_grammars.kinds import field_kind  # noqa: E402

DATA = ROOT / "lintfit" / "catalog" / "data" / "arguments.json"
LAUNCH = "accelerate/commands/launch.py"
PARSER = "transformers/hf_argparser.py"
_MODULES = re.compile(
    r"transformers/(hf_argparser|train\w+)\.py|trl/(?!scripts/vllm_serve).*\.py|accelerate/commands/launch\.py"
)
"""The modules that may declare arguments; those of ``trl vllm-serve`` are no trainer's."""
OF_TRANSFORMERS = ("TrainingArguments", "Seq2SeqTrainingArguments")
ABOUT = (
    "arguments by version, as the sources in the libraries' wheels declare them; a field is a list of [index of the "
    "first version, kind], or [index] where it is gone from then on; kinds: lintfit/sources/flag_grammars/kinds.py"
)
BARE = frozenset({"store_true", "store_false", "help"})

Classes = dict[str, dict[str, Any]]


def sources(wheel: Path) -> dict[str, ast.Module]:
    """The modules of a wheel that may declare arguments, by their path."""
    with zipfile.ZipFile(wheel) as archive:
        texts = {name: archive.read(name).decode("utf-8") for name in archive.namelist() if _MODULES.fullmatch(name)}
    return {name: ast.parse(text) for name, text in texts.items()}


def released(wheel: Path) -> str:
    """The day on which the wheel was packed."""
    with zipfile.ZipFile(wheel) as archive:
        newest = max(each.date_time for each in archive.infolist())
    return "{:04}-{:02}-{:02}".format(*newest[:3])


def enums_of(modules: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """The words of each enumeration of a library."""
    found: dict[str, list[str]] = {}
    for module in modules.values():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Enum") for base in node.bases):
                found[node.name] = [
                    str(each.value.value)
                    for each in node.body
                    if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
                ]
    return found


def fields_of(node: ast.ClassDef, enums: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The fields of a dataclass by their kind; the empty word for one that is no argument."""
    found: dict[str, str] = {}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = field_kind(ast.unparse(each.annotation), each.value, enums)
    return found


def dataclasses_of(library: str, modules: Mapping[str, ast.Module]) -> Classes:
    """The dataclasses of a library with their bases and fields; classes of one name are taken together."""
    found: Classes = {}
    enums = enums_of(modules)
    for module in modules.values():
        aliases = {
            alias.asname: alias.name
            for node in ast.walk(module)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname
        }
        for node in (each for each in ast.walk(module) if isinstance(each, ast.ClassDef)):
            named = node.name in OF_TRANSFORMERS if library == "transformers" else _is_arguments(node)
            if not named:
                continue
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            one = found.setdefault(node.name, {"bases": [], "fields": {}})
            one["bases"] += [aliases.get(base, base) for base in bases if aliases.get(base, base) != node.name]
            one["fields"] |= fields_of(node, enums)
    for one in found.values():
        one["bases"] = [_qualified(base, library, found) for base in dict.fromkeys(one["bases"])]
    return found


def _is_arguments(node: ast.ClassDef) -> bool:
    decorated = any("dataclass" in ast.unparse(each) for each in node.decorator_list)
    return decorated and node.name.endswith(("Config", "Arguments"))


def _qualified(base: str, library: str, found: Classes) -> str:
    return f"{library}.{base}" if base in found else f"transformers.{base}" if base in OF_TRANSFORMERS else base


def launch_options(module: ast.Module) -> dict[str, str]:
    """The options of ``accelerate launch``: ``bare`` or ``value`` or their words."""
    found: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            action = given.get("action")
            bare = isinstance(action, ast.Constant) and action.value in BARE
            for word in words:
                if word.startswith("-"):
                    found[word] = "flag" if bare else _words(given.get("choices"))
    return found


def _words(choices: ast.expr | None) -> str:
    listed = choices.elts if isinstance(choices, ast.List | ast.Tuple) else []
    words = [each.value for each in listed if isinstance(each, ast.Constant)]
    return "=" + "|".join(map(str, words)) if words and len(words) == len(listed) else "any"


def steps(values: Sequence[Any]) -> list[list[Any]]:
    """A value by version as changes; None where it is not there."""
    found: list[list[Any]] = []
    before: Any = None
    for index, value in enumerate(values):
        if value != before:
            found.append([index] if value is None else [index, value])
        before = value
    return found


def table(library: str, wheels: Sequence[Path]) -> dict[str, Any]:
    """What is written of one library."""
    taken = [sources(wheel) for wheel in wheels]
    made: dict[str, Any] = {"versions": [_version(wheel) for wheel in wheels], "packed": [released(w) for w in wheels]}
    if library == "accelerate":
        read = [launch_options(modules[LAUNCH]) for modules in taken]
        names = list(dict.fromkeys(name for each in read for name in each))
        made["launch"] = {name: steps([each.get(name) for each in read]) for name in names}
        return made
    classes = [dataclasses_of(library, modules) for modules in taken]
    if library == "transformers":
        made["dashes"] = steps(["long_options.append" in ast.unparse(modules[PARSER]) for modules in taken])
    made["classes"] = {}
    for name in sorted({name for each in classes for name in each}):
        of_class = [each.get(name) for each in classes]
        fields = list(dict.fromkeys(field for one in of_class if one for field in one["fields"]))
        made["classes"][name] = {
            "bases": steps([one["bases"] if one else None for one in of_class]),
            "fields": {
                field: steps([one["fields"].get(field) if one else None for one in of_class]) for field in fields
            },
        }
    return made


def _version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _lines(value: Any, depth: int = 0) -> Iterator[str]:
    """JSON with a line for each field."""
    if not isinstance(value, dict) or depth == 5:
        yield json.dumps(value)
        return
    pad = " " * (depth + 1)
    inner = (f"{pad}{json.dumps(key)}: " + "".join(_lines(each, depth + 1)) for key, each in value.items())
    yield "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path)
    folder: Path = parser.parse_args().wheels
    made: dict[str, Any] = {"about": ABOUT, "libraries": {}}
    for library in ("transformers", "trl", "accelerate"):
        wheels = sorted(folder.glob(f"{library}-*.whl"), key=lambda wheel: Version(_version(wheel)))
        made["libraries"][library] = table(library, wheels)
    DATA.write_text("".join(_lines(made)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
