"""Write what LLaMA-Factory's recipes take, by version: lintfit/catalog/data/llamafactory.json and their JSON Schema.

    git clone https://github.com/hiyouga/LLaMA-Factory
    python tools/update_llamafactory.py LLaMA-Factory

Reads the repository at every release from 0.2.0 on and at its newest commit, without importing anything: the fields of
the dataclasses that ``llamafactory-cli train`` and its older scripts are parsed into, each with what
``HfArgumentParser`` makes of it (``lintfit/sources/flag_grammars/kinds.py``) and its default, and the DeepSpeed configs
among its examples. ``schemas/llamafactory.schema.json`` has the keys of the newest commit.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from packaging.version import Version  # noqa: E402

from lintfit.catalog import arguments as libraries  # noqa: E402
from tools.update_swift import (  # noqa: E402
    Field,
    Repository,
    dataclasses_of,
    enums_of,
    json_lines,
    resolved,
    steps,
)

DATA = ROOT / "lintfit" / "catalog" / "data" / "llamafactory.json"
SCHEMA = ROOT / "schemas" / "llamafactory.schema.json"
TRAINING = (
    "GeneralArguments",
    "ModelArguments",
    "DataArguments",
    "TrainingArguments",
    "FinetuningArguments",
    "GeneratingArguments",
)
"""The dataclasses that a training is parsed into (``hparams/parser.py``, ``_TRAIN_ARGS``)."""
_OLDEST = "0.2.0"
_MODULES = re.compile(r"src/(llmtuner|llamafactory)/(hparams/.*|extras/constants)\.py")
_CONFIGS = re.compile(r"examples/deepspeed/(ds_\w+\.json)")
_VERSION = re.compile(r'VERSION = "([\w.]+)"')
_ENVIRONMENT = "src/llamafactory/extras/env.py"
ABOUT = (
    "arguments of LLaMA-Factory by version, as the dataclasses of its repository declare them; a field is a list of "
    "[index of the first version, kind, default], or [index] where it is gone from then on; a default of [] is a list, "
    "{} one that is no constant; kinds: lintfit/sources/flag_grammars/kinds.py"
)


def releases(repository: Repository) -> list[str]:
    """The tags of all releases, oldest first, and the newest commit."""
    tags = [tag for tag in repository.git("tag").split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    return [*sorted((tag for tag in tags if Version(tag) >= Version(_OLDEST)), key=Version), "HEAD"]


def fields_of(repository: Repository, commit: str) -> dict[str, Field]:
    """The fields of the dataclasses that a training is parsed into, those of transformers' own apart."""
    modules = list(repository.modules(commit, _MODULES))
    classes = dataclasses_of(modules, enums_of(modules))
    found: dict[str, Field] = {}
    for name in TRAINING:
        found |= resolved(name, classes)[0]
    return found


def table(repository: Repository) -> dict[str, Any]:
    commits = releases(repository)
    each_version = [fields_of(repository, commit) for commit in commits]
    names = sorted({name for fields in each_version for name in fields})
    return {
        "about": ABOUT,
        "versions": [version(repository, commit) for commit in commits],
        "released": [repository.git("log", "-1", "--format=%cs", commit).strip() for commit in commits],
        "fields": {name: steps([fields.get(name) for fields in each_version]) for name in names},
        "lists": sorted(lists_of(repository.modules("HEAD", _MODULES))),
        "mappings": sorted(mappings_of(repository.modules("HEAD", _MODULES)) & set(names)),
        "deepspeed": dict(configs(repository)),
    }


def lists_of(modules: Iterable[ast.Module]) -> Iterator[str]:
    """The fields whose words are split at commas where they are no list yet (``self.x = split_arg(self.x)``)."""
    for node in (each for module in modules for each in ast.walk(module) if isinstance(each, ast.Call)):
        if ast.unparse(node.func) == "split_arg" and len(node.args) == 1:
            owner, _, name = ast.unparse(node.args[0]).rpartition(".")
            if owner == "self":
                yield name


def mappings_of(modules: Iterable[ast.Module]) -> set[str]:
    """The fields whose annotation has a ``dict``."""
    return {
        ast.unparse(each.target)
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and re.search(r"\b[dD]ict\b", ast.unparse(each.annotation))
    }


def version(repository: Repository, commit: str) -> str:
    """A tag's version, or that of the newest commit, which names the release that comes next."""
    if commit.startswith("v"):
        return commit[1:]
    found = _VERSION.search(repository.git("show", f"{commit}:{_ENVIRONMENT}"))
    assert found is not None
    return found[1]


def configs(repository: Repository) -> Iterator[tuple[str, Any]]:
    """The DeepSpeed configs among the examples, by their name."""
    for path in repository.git("ls-tree", "-r", "--name-only", "HEAD").splitlines():
        found = _CONFIGS.fullmatch(path)
        if found is not None:
            yield found[1], json.loads(repository.git("show", f"HEAD:{path}"))


# -- schema ---------------------------------------------------------------------------------------------------------

_TYPES: Mapping[str, list[str]] = {
    "str": ["string"],
    "int": ["integer"],
    "float": ["number"],
    "bool": ["boolean"],
    "flag": ["boolean"],
}
_SEQ2SEQ: Mapping[str, str] = {
    "sortish_sampler": "flag",
    "predict_with_generate": "flag",
    "generation_max_length": "int",
    "generation_num_beams": "int",
    "generation_config": "str",
}
"""What ``Seq2SeqTrainingArguments`` has besides (transformers 4.33 to 5.23)."""
_MAPPINGS = frozenset({
    "accelerator_config", "deepspeed", "fsdp_config", "gradient_checkpointing_kwargs", "lr_scheduler_kwargs"
})  # fmt: skip
"""transformers' fields that are text or a mapping (``_VALID_DICT_FIELDS`` of ``training_args.py``, 4.45 and up)."""
_LISTS = frozenset({"report_to", "fsdp"})
"""transformers' fields that are a text or a list of them (their annotations, transformers 4.45 and up)."""
_TRUTHS = frozenset({"fsdp", "resume_from_checkpoint"})
"""transformers' fields that are text or a truth value: ``fsdp``'s annotation, and what ``Trainer.train`` takes."""


def schema(made: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a recipe for the newest commit; any other key stops the program."""
    newest = {name: past[-1] for name, past in made["fields"].items() if len(past[-1]) > 1}
    studied = libraries.studied("transformers", None, None)
    inherited: Mapping[str, str] = {}
    for at in studied.possible if studied is not None else ():
        inherited = {**inherited, **(libraries.fields_at("transformers.TrainingArguments", {"transformers": at}) or {})}
    kinds: dict[str, tuple[str, Any]] = {name: (kind, None) for name, kind in {**inherited, **_SEQ2SEQ}.items() if kind}
    kinds |= {name: (kind, default) for name, (_, kind, default) in newest.items()}
    properties = {name: property_of(*each, also(name, made)) for name, each in kinds.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:lintfit:schema:llamafactory",
        "title": "LLaMA-Factory recipe",
        "description": f"The keys of a training recipe of LLaMA-Factory {made['versions'][-1]}, with those of "
        "transformers' Seq2SeqTrainingArguments, without those of Megatron and KTransformers. LLaMA-Factory refuses "
        "any other key.",
        "type": "object",
        "properties": dict(sorted(properties.items())),
        "required": ["model_name_or_path"],
        "additionalProperties": False,
    }


def also(name: str, made: Mapping[str, Any]) -> Iterator[str]:
    """The types that a recipe's key may have besides that of the flag: ``parse_dict`` hands on what the file has."""
    if name in _MAPPINGS or name in made["mappings"]:
        yield "object"
    if name in _LISTS or name in made["lists"]:
        yield "array"
    if name in _TRUTHS:
        yield "boolean"


def property_of(kind: str, default: Any, others: Iterable[str] = ()) -> dict[str, Any]:
    """What the schema says of a key: its type where one is known, and its default."""
    found: dict[str, Any] = {}
    word = kind.removesuffix("?").removesuffix("+")
    if word.startswith("="):
        found["enum"] = [*word[1:].split("|"), None]
    elif word in _TYPES:
        found["type"] = [*_TYPES[word], *others, "null"]
    if default is not None and default != {} and default != []:
        found["default"] = default
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    made = table(Repository(parser.parse_args().repository))
    DATA.write_text("".join(json_lines(made)) + "\n", encoding="utf-8")
    SCHEMA.write_text(json.dumps(schema(made), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
