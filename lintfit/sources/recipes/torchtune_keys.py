"""torchtune's config with its overrides as keys: ``tune run RECIPE --config CONFIG key=value ~key``.

``torchtune/config/_parse.py`` and ``_utils.py`` (0.6.1): a YAML that OmegaConf loads without a schema, under the words
of the command line, each of which stands over the file; ``${key}`` refers to another key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument, Edit, FileEdit
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.settings.model import UNKNOWN, Place, Provenance, Setting
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.recipes.keys import Keys, Stated, of_flag, scalar, spelled

if TYPE_CHECKING:
    from lintfit.documents.shell_words import Word
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import OpenFile

COMPONENT = "_component_"

KEYS = (
    "model._component_", "model.base_model_path", "model.lora_attn_modules", "model.apply_lora_to_mlp",
    "model.apply_lora_to_output", "model.lora_rank", "model.lora_dropout", "model.use_dora", "model.quantize_base",
    "model.decoder_trainable", "model.encoder_trainable", "model.fusion_trainable", "checkpointer.checkpoint_dir",
    "teacher_model._component_", "policy_model._component_", "reward_and_value_model._component_",
    "reward_and_value_model.base_model_path", "tokenizer.max_seq_len", "dataset._component_",
    "dataset.packed", "batch_size",
    "ppo_batch_size", "forward_batch_size", "max_generated_tokens", "gradient_accumulation_steps",
    "optimizer._component_", "optimizer.fused", "optimizer_in_bwd", "loss._component_", "clip_grad_norm", "compile",
    "enable_activation_checkpointing", "enable_activation_offloading", "ac_mode", "ac_option", "dtype",
    "fsdp_cpu_offload", "fsdp_reshard_after_forward", "tensor_parallel_dim", "context_parallel_dim",
    "data_parallel_replicate_dim",
)  # fmt: skip
"""The keys that decide memory, with dots."""

DEFAULTS: Mapping[str, Any] = {
    "model.apply_lora_to_mlp": False, "model.apply_lora_to_output": False, "model.lora_dropout": 0.0,
    "model.use_dora": False, "model.quantize_base": False, "model.lora_rank": 8, "fsdp_reshard_after_forward": True,
    "compile": False, "enable_activation_checkpointing": False, "enable_activation_offloading": False,
    "fsdp_cpu_offload": False, "tensor_parallel_dim": 1, "context_parallel_dim": 1, "data_parallel_replicate_dim": 1,
    "optimizer_in_bwd": False, "dataset.packed": False, "optimizer.fused": None,
}  # fmt: skip
"""What recipes (``cfg.get``) and builders take where a key is left out, besides ``None`` (torchtune 0.6.1)."""

_REFERENCE = lazy_pattern(r"\$\{\s*([\w.-]+)\s*\}")
_DEEPEST = 8
"""How many references may lead from one to the next."""


def plain(root: Any, key: str, depth: int = 0) -> Any:
    """A value of a config at a key with dots, with what it refers to; UNKNOWN where that cannot be told."""
    value = root
    for step in key.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return _followed(root, value, depth)


def _followed(root: Any, value: Any, depth: int = 0) -> Any:
    if isinstance(value, list):
        return [_followed(root, each, depth) for each in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = _REFERENCE.fullmatch(value)
    if depth == _DEEPEST:
        return UNKNOWN
    if whole is not None:
        return plain(root, whole[1], depth + 1)
    parts = {name: plain(root, name, depth + 1) for name in _REFERENCE.findall(value)}
    if any(not isinstance(part, (str, int, float)) for part in parts.values()):
        return UNKNOWN
    text = _REFERENCE.sub(lambda match: str(parts[match[1]]), value)
    return UNKNOWN if "${" in text else text


def references(text: str) -> frozenset[str]:
    """The keys at the top of a config that its own text refers to."""
    return frozenset(name.partition(".")[0] for name in _REFERENCE.findall(text))


def read_keys(launch: Launch, open_file: OpenFile, recipe: str) -> Keys:
    """What the config says, and over it the words of the command line."""
    keys = Keys(launch, defaults=DEFAULTS, whose="torchtune's default")
    flag = launch.flag("config")
    if flag is not None:
        _read_config(keys, flag, open_file, recipe)
    for word in _removed(launch):
        for key in [key for key in keys.stated if f"{key}.".startswith(f"{word}.")]:
            del keys.stated[key]
    for given in launch.overrides:
        _override(keys, given)
    return keys


def _read_config(keys: Keys, flag: Flag, open_file: OpenFile, recipe: str) -> None:
    """A file, or a name of the registry, which stands for a file of the package (``_cli/run.py:_get_config``)."""
    from lintfit.catalog.torchtune import registry

    name = flag.value or "$"
    known = registry().configs.get(name)
    paths = [f"recipes/configs/{name}.yaml", f"{name}.yaml"] if known is not None else [name]
    opened = (open_file(path) for path in paths if "$" not in path)
    document = next((each for each in opened if isinstance(each, DataDocument) and each.root is not None), None)
    if document is not None and document.root is not None and document.root.shape == "mapping":
        keys.read(document, KEYS)
        content = document.root.plain()
        for key, stated in keys.stated.items():
            keys.stated[key] = Stated(_followed(content, stated.value), stated.provenance, node=stated.node)
    elif known is not None:
        whose = Provenance.default(f"torchtune {registry().version}'s config {name}")
        for key, value in known.facts.items():
            keys.put(key, Stated(value, whose))
    else:
        keys.missing = Setting("config", flag.value, of_flag(flag))


def _override(keys: Keys, given: Flag) -> None:
    """One ``key=value``; of a component its key alone may stand for its path (``model=torchtune.models…``)."""
    inner = f"{given.name}.{COMPONENT}"
    key = inner if inner in KEYS else given.name
    if key not in KEYS:
        return
    value = UNKNOWN if given.value is None or "$" in given.value else _value(given.value)
    keys.put(key, Stated(value, of_flag(given), replace(given, write=partial(_rewrite, given))))


def _rewrite(given: Flag, text: str) -> tuple[FileEdit, ...] | None:
    place = given.value_place
    if place is None or place.document.slice(place.span) != given.value:
        return None
    return (FileEdit(place.document.path, Edit(place.span, text), place.document),)


def _value(text: str) -> Any:
    """A word as OmegaConf's dotlist has it: YAML, of which lists stand in brackets."""
    if text.startswith("[") and text.endswith("]"):
        return [scalar(each.strip().strip("\"'")) for each in text[1:-1].split(",") if each.strip()]
    return scalar(text)


def _removed(launch: Launch) -> Iterator[str]:
    """The keys that ``~key`` takes out."""
    return (word.text[1:].partition("=")[0] for word in words(launch) if word.text.startswith("~"))


def words(launch: Launch) -> Iterator[Word]:
    """The words behind the recipe's name that are no flag and no flag's first value."""
    yield from launch.invocation.positional
    for option in launch.invocation.arguments:
        yield from option.words if option.bare or option.glued else option.words[1:]


def write(keys: Keys, key: str, value: Any) -> tuple[FileEdit, ...] | None:
    """Changes the override where one decides, else the config, else adds an override to the launch line."""
    found, launch = keys.get(key), keys.launch
    if keys.config is not None or launch.assumed or (found is not None and found.flag is not None):
        return keys.write(key, value)
    from lintfit.documents.shell_edits import set_flag

    try:
        edits = set_flag(launch.document, launch.command, f"{key}={spelled(value)}", None)
    except ValueError:
        return None
    return tuple(FileEdit(launch.document.path, edit, launch.document) for edit in edits)


def place_of(launch: Launch, word: Word) -> Place:
    """Where a word stands, of an assumed launch the recipe as a whole."""
    return launch.place if launch.assumed else Place(launch.document, word.at)
