"""Write what torchtune's recipes read and what its configs say: lintfit/catalog/data/torchtune.json.

    git clone https://github.com/pytorch/torchtune
    python tools/update_torchtune.py torchtune v0.1.1 v0.2.1 v0.3.1 v0.4.0 v0.5.0 v0.6.1 main

Reads the source of each revision without importing it, the newest last: the keys that each recipe's code asks its
config for (``cfg.batch_size``, ``cfg.get("compile")``), whether it runs on several devices, which config belongs to
which recipe (``torchtune/_recipe_registry.py``), and what decides memory of each config as it was last.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lintfit.documents.model import FileText  # noqa: E402
from lintfit.documents.yaml_reader import read_yaml  # noqa: E402
from lintfit.sources.recipes.torchtune_keys import DEFAULTS, KEYS, plain  # noqa: E402

DATA = ROOT / "lintfit" / "catalog" / "data" / "torchtune.json"
REGISTRY = "torchtune/_recipe_registry.py"
CLIENT = "torchtune/training/checkpointing/_checkpoint_client.py"
_OWN = frozenset({"get", "copy", "items", "keys", "pop", "values"})
"""Methods of a DictConfig."""
_PROFILER = "profiler"
"""What ``PROFILER_KEY`` is."""


def show(checkout: Path, revision: str, path: str) -> str | None:
    """A file's text at a revision; None where that has no such file."""
    words = ["git", "-C", str(checkout), "show", f"{revision}:{path}"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else None


def keys_read(text: str) -> Iterator[str]:
    """The keys that code asks ``cfg`` for, at the top of the config."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and _is_config(node.value) and node.attr not in _OWN:
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_config(node.func.value):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value
            elif isinstance(first, ast.Name) and first.id == "PROFILER_KEY":
                yield _PROFILER
        elif isinstance(node, ast.Compare) and any(_is_config(each) for each in node.comparators):
            yield from [str(node.left.value)] if isinstance(node.left, ast.Constant) else []


def _is_config(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "cfg") or (
        isinstance(node, ast.Attribute) and node.attr == "_cfg"
    )


def registry(text: str) -> Iterator[tuple[str, str, bool, list[tuple[str, str]]]]:
    """Name, file, whether it is distributed, and configs (name, file) of each recipe of ``_ALL_RECIPES``."""
    for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        if not (isinstance(call.func, ast.Name) and call.func.id == "Recipe"):
            continue
        given = {word.arg: word.value for word in call.keywords}
        listed = given["configs"].elts if isinstance(given["configs"], ast.List) else []
        configs = []
        for each in listed:
            assert isinstance(each, ast.Call)
            words = {word.arg: ast.literal_eval(word.value) for word in each.keywords}
            configs.append((words["name"], words["file_path"]))
        distributed = given.get("supports_distributed")
        yield (
            ast.literal_eval(given["name"]),
            ast.literal_eval(given["file_path"]),
            distributed is not None and bool(ast.literal_eval(distributed)),
            configs,
        )


def collected(checkout: Path, revisions: list[str]) -> dict[str, Any]:
    """The table, by recipe and by config; of a config's facts those that are not the commonest."""
    recipes: dict[str, dict[str, Any]] = {}
    of_config: dict[str, str] = {}
    facts: dict[str, dict[str, Any]] = {}
    for revision in revisions:
        shared = set(keys_read(show(checkout, revision, CLIENT) or ""))
        for name, path, distributed, configs in registry(show(checkout, revision, REGISTRY) or ""):
            text = show(checkout, revision, f"recipes/{path}")
            if not _trains(name) or text is None:
                continue
            keys = set(keys_read(text))
            before = recipes.get(name, {"keys": [], "elsewhere": []})
            elsewhere = (set(before["keys"]) | set(before["elsewhere"]) | shared) - keys
            recipes[name] = {"distributed": distributed, "keys": sorted(keys), "elsewhere": sorted(elsewhere)}
            for config, file in configs:
                content = show(checkout, revision, f"recipes/configs/{file}")
                if content is not None:
                    of_config[config] = name
                    facts[config] = config_facts(content, file)
    usual = commonest(list(facts.values()))
    shared_keys = set.intersection(*(set(recipe["keys"]) for recipe in recipes.values()))
    for recipe in recipes.values():
        recipe["keys"] = sorted(set(recipe["keys"]) - shared_keys)
    return {
        "version": (show(checkout, revisions[-1], "version.txt") or "").strip(),
        "shared": sorted(shared_keys),
        "recipes": recipes,
        "usual": usual,
        "configs": {name: [of_config[name], unusual(usual, found)] for name, found in facts.items()},
    }


def commonest(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """The value of each key that more than half of the configs have."""
    counts: dict[str, Counter[str]] = {}
    for found in facts:
        for key, value in found.items():
            counts.setdefault(key, Counter())[json.dumps(value)] += 1
    most = {key: count.most_common(1)[0] for key, count in counts.items()}
    return {key: json.loads(value) for key, (value, times) in most.items() if 2 * times > len(facts)}


def unusual(usual: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from the usual; null for a usual key that is not there."""
    absent = {key: None for key in usual if key not in found}
    return {key: value for key, value in found.items() if usual.get(key) != value} | absent


def _trains(name: str) -> bool:
    from lintfit.sources.recipes.front_ends import trains_by_recipe

    return trains_by_recipe(name)


def config_facts(text: str, file: str) -> dict[str, Any]:
    """The keys of a config that decide memory, with dots, references followed."""
    root = read_yaml(FileText(Path(file), text)).root
    assert root is not None
    content = root.plain()
    found = {key: plain(content, key) for key in KEYS if not key.startswith(("checkpointer.", "dataset._"))}
    return {key: value for key, value in found.items() if value is not None and value != DEFAULTS.get(key)}


def _row(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("revisions", nargs="+")
    options = parser.parse_args()
    table = collected(options.checkout, options.revisions)
    lines = [f"{json.dumps(key)}: {json.dumps(table[key])}" for key in ("version", "shared", "usual")]
    for part in ("recipes", "configs"):
        rows = (f"  {json.dumps(name)}: {_row(value)}" for name, value in sorted(table[part].items()))
        lines.append(f"{json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n }")
    DATA.write_text("{\n " + ",\n ".join(lines) + "\n}\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
