"""Write what transformers takes for keys that a model's config leaves out, for every model type of the catalogue.

    python tools/update_architectures.py

Writes ``lintfit/catalog/data/config_defaults.json`` from the config classes of the installed transformers (torch is not
needed), with its version and today's date. Of a class's fields it takes those that ``lintfit/catalog`` and
``lintfit/memory`` name somewhere and whose default is not None, which stands for a value that the class derives. Model
types that transformers does not have state their defaults themselves. Of the configs inside another's, such as
``vision_config``, it writes those that ``lintfit/catalog`` asks for by name (``defaults("qwen2_vl.vision_config")``).
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lintfit.catalog import architectures  # noqa: E402
from lintfit.catalog.config_defaults import DATA  # noqa: E402

READERS = ("lintfit/catalog", "lintfit/memory")

ABOUT = (
    "what transformers' config classes take for keys that a config.json leaves out, by model type; "
    "written by tools/update_architectures.py"
)

PART = r"\w+\.\w+_config"

NOT_OF_A_SHAPE = frozenset({"architectures", "dtype", "is_decoder", "is_encoder_decoder", "use_cache"})
"""Fields that say how a class is used, which a run decides, not its config."""


def main() -> None:
    import transformers

    found = rows()
    DATA.write_text(text(found, transformers.__version__, datetime.date.today()), encoding="utf-8")
    print(f"{DATA.relative_to(ROOT)}: {len(found)} configs of transformers {transformers.__version__}")


def rows() -> dict[str, dict[str, Any]]:
    """The defaults of every config of the catalogue that transformers has, in the order of its class's fields."""
    keys = words_read()
    found = ((name, declared(name)) for name in (*architectures.names(), *parts_asked()))
    return {name: {key: fields[key] for key in fields if key in keys} for name, fields in found if fields is not None}


def parts_asked() -> tuple[str, ...]:
    """The configs inside another's that the catalogue takes the defaults of: ``<model type>.<key>``."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / READERS[0]).rglob("*.py"))
    return tuple(sorted({text for tree in trees for text in strings(tree) if re.fullmatch(PART, text)}))


def words_read() -> frozenset[str]:
    """All words in the code's strings that could be a config's key."""
    found: set[str] = set()
    for folder in READERS:
        for path in (ROOT / folder).rglob("*.py"):
            found.update(*map(words, strings(ast.parse(path.read_text(encoding="utf-8")))))
    return frozenset(found) - NOT_OF_A_SHAPE


def words(text: str) -> list[str]:
    """The words of a list of keys, or the one key; none of prose."""
    return text.split() if re.fullmatch(r"[\w\s]+", text) else []


def strings(tree: ast.AST) -> Iterator[str]:
    """The strings of a module but its docstrings."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def declared(name: str) -> Mapping[str, Any] | None:
    """The defaults of a config class's own fields; None where transformers has no such model type.

    What a class works out once it is made is left out: it depends on what the config does state. So is the share of a
    head that rotary embedding is applied to, but where the class itself sets it whatever the rest.
    """
    cls = config_class(name)
    if cls is None:
        return None
    fields = {each.name: default(each) for each in dataclasses.fields(cls)}
    rope = getattr(cls(), "rope_parameters", None) or {}
    fields["partial_rotary_factor"] = fields.get("partial_rotary_factor") or rope.get("partial_rotary_factor")
    return {key: value for key, value in fields.items() if plain(value)}


def config_class(name: str) -> Any:
    """The class of a model type, or of a config inside its config; None where transformers has none."""
    from transformers import CONFIG_MAPPING

    model_type, _, part = name.partition(".")
    known = next((each for each in (model_type, model_type.replace("_", "-")) if has(each)), None)
    if known is None:
        return None
    return CONFIG_MAPPING[known].sub_configs[part] if part else CONFIG_MAPPING[known]


def has(model_type: str) -> bool:
    """Whether transformers has a config class of this name."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return model_type in CONFIG_MAPPING_NAMES


def default(field: dataclasses.Field[Any]) -> Any:
    """A field's default; None where it has none."""
    made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    return listed(made)


def listed(value: Any) -> Any:
    """A value with lists for tuples, as JSON has them."""
    return [listed(each) for each in value] if isinstance(value, list | tuple) else value


def plain(value: Any) -> bool:
    """Whether a default is a value that JSON has, and says something."""
    if isinstance(value, list):
        return all(map(plain, value))
    return isinstance(value, bool | int | float | str)


def text(rows: Mapping[str, Mapping[str, Any]], version: str, day: datetime.date) -> str:
    """The file: a line for each model type, which is parsed when it is asked for."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows))
    head = f' "about": {json.dumps(ABOUT)},\n "transformers": {json.dumps(version)},\n "date": "{day}",\n'
    return f'{{\n{head} "defaults": {{\n{lines}\n }}\n}}\n'


if __name__ == "__main__":
    main()
