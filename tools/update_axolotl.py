"""Read axolotl's config classes in a git checkout, over its releases, and write what lintfit knows of its keys.

    python tools/update_axolotl.py CHECKOUT [--check]

``CHECKOUT`` is a clone of github.com/axolotl-ai-cloud/axolotl with its tags; the work tree does not matter. It writes

- ``lintfit/catalog/data/axolotl.json``: which release has which key (of the config, its sections, each plugin),
  which keys only releases before these read, what a key that is left out comes to, which keys stop a run and with which
  words, which libraries a release pins, and the DeepSpeed files that come with axolotl;
- ``schemas/axolotl.schema.json``: the keys of the newest release as JSON Schema, for editors.

Nothing of axolotl is imported: its source is read with ``ast``. With ``--check`` nothing is written, and the exit is
1 where either file would change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.axolotl_source import Release, keys_before, releases  # noqa: E402

TABLE = ROOT / "lintfit" / "catalog" / "data" / "axolotl.json"
SCHEMA = ROOT / "schemas" / "axolotl.schema.json"

CONFIG = "AxolotlInputConfig"
SECTIONS = ("fsdp_config", "trl", "vllm", "qat", "quantization", "peft", "ebft", "dynamic_checkpoint")
"""Keys of the config that hold keys of a class of their own."""

DEFAULTS = frozenset({
    "activation_offloading", "adapter", "attn_implementation", "batch_size", "bf16", "bfloat16", "deepspeed",
    "eval_batch_size", "flash_attention", "float16", "fp16", "fsdp_version", "gradient_accumulation_steps",
    "gradient_checkpointing", "load_in_4bit", "load_in_8bit", "lora_dropout", "lora_r", "lora_target_linear",
    "max_grad_norm", "micro_batch_size", "optimizer", "pad_to_sequence_len", "rl", "sample_packing", "sequence_len",
    "torch_compile", "val_set_size",
})  # fmt: skip
"""Keys that decide a run's memory: only of these the default is noted."""


def table(found: list[Release], before: Iterable[str]) -> dict[str, Any]:
    """The content of ``axolotl.json``; ``before`` are the keys that older releases than these read."""
    keys = _spans(found, {release.version: release.keys(CONFIG) for release in found})
    plugins = _plugins(found)
    later = keys.keys() | {key for plugin in plugins.values() for key in plugin["keys"]}
    return {
        "releases": [release.version for release in found],
        "before": sorted(set(before) - later),
        "keys": keys,
        "sections": {
            name: _spans(found, {release.version: release.section(CONFIG, name) for release in found})
            for name in SECTIONS
        },
        "plugins": plugins,
        "removed": _removed(found),
        "defaults": _defaults(found),
        "pins": {release.version: release.pins() for release in found},
        "deepspeed": found[-1].deepspeed_files(),
    }


def _spans(found: list[Release], by_release: Mapping[str, Iterable[str]]) -> dict[str, list[Any]]:
    """By key the first release that has it and the first that no longer does, null for none: ``[first, gone]``."""
    order = [release.version for release in found]
    has = {version: frozenset(keys) for version, keys in by_release.items()}
    spans: dict[str, list[Any]] = {}
    for key in sorted(frozenset().union(*has.values())):
        known = [version for version in order if key in has[version]]
        after = order.index(known[-1]) + 1
        spans[key] = [known[0], order[after] if after < len(order) else None]
    return spans


def _plugins(found: list[Release]) -> dict[str, Any]:
    """The keys of each plugin that comes with axolotl, by its folder, and what the plugin is called in a recipe."""
    folders = sorted({folder for release in found for folder in release.plugins()})
    result: dict[str, Any] = {}
    for folder in folders:
        by_release = {release.version: release.plugins().get(folder, frozenset()) for release in found}
        keys = _spans(found, by_release)
        names = [name for release in found if (name := release.plugin_name(folder)) is not None]
        if keys and names:
            result[folder] = {"name": names[-1], "keys": keys}
    return result


def _removed(found: list[Release]) -> dict[str, list[Any]]:
    """By key ``[first release that stops, "true" | "set", its words]``."""
    result: dict[str, list[Any]] = {}
    for release in found:
        for key, (when, words) in release.stopping().items():
            result.setdefault(key, [release.version, when, words])
    return dict(sorted(result.items()))


def _defaults(found: list[Release]) -> dict[str, list[Any]]:
    """By key the changes of its default: ``[[first release, default], …]``."""
    result: dict[str, list[Any]] = {}
    for release in found:
        for key, default in release.defaults(CONFIG).items():
            changes = result.setdefault(key, [])
            if key in DEFAULTS and (not changes or changes[-1][1] != default):
                changes.append([release.version, default])
    return {key: changes for key, changes in sorted(result.items()) if changes}


def schema(newest: Release) -> dict[str, Any]:
    """The content of ``axolotl.schema.json``."""
    properties = newest.properties(CONFIG)
    for folder in newest.plugins():
        name = newest.plugin_name(folder)
        for cls in newest.plugin_classes(folder):
            for key, value in newest.properties(cls).items():
                properties.setdefault(key, {**value, "x-plugin": name})
    for key, (when, _) in newest.stopping().items():
        if key in properties:
            properties[key] = {"deprecated": True, "enum": [None, *([False] if when == "true" else [])]}
    said = f"The keys of a recipe of axolotl {newest.version}. A key that it does not have is ignored without a word."
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:lintfit:schema:axolotl",
        "title": "axolotl recipe",
        "description": said,
        "x-version": newest.version,
        "x-unknown-keys": "ignored",
        "type": "object",
        "required": newest.required(CONFIG),
        "properties": dict(sorted(properties.items())),
        "$defs": newest.definitions(properties),
    }


def _written(found: list[Release], before: Iterable[str]) -> Iterator[tuple[Path, str]]:
    yield TABLE, _lines(table(found, before))
    yield SCHEMA, json.dumps(schema(found[-1]), indent=2) + "\n"


def _lines(content: Mapping[str, Any]) -> str:
    """One line for each key, so that a new release is a readable difference."""
    parts = []
    for name, value in content.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items())
            parts.append(f" {json.dumps(name)}: {{\n{inner}\n }}")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    changed = False
    for path, text in _written(releases(options.checkout), keys_before(options.checkout)):
        if not path.exists() or path.read_text("utf-8") != text:
            changed = True
            print(path.relative_to(ROOT))
            if not options.check:
                path.write_text(text, "utf-8")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
