"""A run that flags describe, in the words of flags: their texts as the keys of a spec, and errors as flags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.commands.specs import Estimated, estimate_mapping
from lintfit.documents import door
from lintfit.documents.door import MAX_NAMED_CONFIG
from lintfit.errors import LintfitError, shorten
from lintfit.frozen import replace
from lintfit.memory.spec import GIB
from lintfit.memory.tensors.lora import without_module
from lintfit.report import shown_path
from lintfit.settings.kinds import is_list
from lintfit.settings.registry import SETTINGS

if TYPE_CHECKING:
    from lintfit.options.model import Options


def described(options: Options, flags: Mapping[str, str]) -> Estimated:
    """The run that flags describe. Raises LintfitError in the words of the flags."""
    result = estimate_mapping({**hardware_of(options), **mapping_of(flags)})
    if result.estimate is None:
        raise LintfitError(in_flags(result.error))
    assert result.spec is not None
    no_module = without_module(result.spec)
    if no_module:
        raise LintfitError(f"--lora-targets: {no_module}")
    taken = taken_for(options.gpu)
    if not taken:
        return result
    return replace(result, estimate=replace(result.estimate, assumptions=(taken, *result.estimate.assumptions)))


def taken_for(gpu: str | None) -> str:
    """Which GPU a name is taken for that several have; nothing where it is clear."""
    if gpu is None:
        return ""
    from lintfit.catalog.gpus import ambiguous

    found = ambiguous(gpu)
    others = [each.name for each in found if each.vendor_gb > found[0].vendor_gb]
    if not others:
        return ""
    return f"{gpu} is taken for the {found[0].name}, which has the least memory ({', '.join(others)} has more)"


def in_flags(message: str) -> str:
    """An error of a spec with its keys as flags: ``zero_stage: 3 needs …`` is ``--zero-stage: 3 needs …``."""
    flags = {name: f"--{record.option}" for name, record in SETTINGS.items() if record.in_spec}
    flags |= {"gpu_memory_gib": "--gpu-memory", "host_memory_gib": "--host-memory"}
    head, colon, rest = message.partition(":")
    head = flags.get(head, head)
    rest = re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", lambda word: flags.get(word[0], word[0]), rest)
    return f"{head}{colon}{rest}".replace("the spec says", "the flags say")


def mapping_of(flags: Mapping[str, str]) -> dict[str, Any]:
    """Flags as keys of a spec. A LoRA flag says that the method is LoRA."""
    mapping = {name.replace("-", "_"): value_of(name.replace("-", "_"), text) for name, text in flags.items()}
    _win(mapping)
    if "method" not in mapping and any(name.startswith("lora_") for name in mapping):
        mapping["method"] = "lora"
    return mapping


def _win(mapping: dict[str, Any]) -> None:
    """Flags beat the DeepSpeed file: what they say otherwise goes out of it."""
    zero = mapping.get("deepspeed_config", {}).get("zero_optimization")
    if not isinstance(zero, Mapping):
        return
    # By the names that the JSON has for them.
    beaten = {"zero_stage": "stage", "offload_optimizer": "offload_optimizer", "offload_param": "offload_param"}
    gone = {name for flag, name in beaten.items() if flag in mapping and not _agrees(mapping[flag], zero.get(name))}
    rest = {key: value for key, value in zero.items() if key not in gone}
    mapping["deepspeed_config"] = {**mapping["deepspeed_config"], "zero_optimization": rest}


def _agrees(flag: Any, stated: Any) -> bool:
    return bool(flag == (stated.get("device") if isinstance(stated, Mapping) else stated))


def value_of(key: str, text: str) -> Any:
    """A flag's text as the JSON value that the key of a spec takes."""
    if key in SETTINGS and is_list(SETTINGS[key].kind):
        return text if text == "all-linear" else [name.strip() for name in text.split(",") if name.strip()]
    if key == "deepspeed_config":
        return _object(Path(text), "a DeepSpeed config is")
    if key == "frozen_models":
        return _frozen_models(text)
    if key == "fsdp":
        return _fsdp(text)
    try:
        return json.loads(text.lower())
    except (ValueError, RecursionError):
        return text


def _frozen_models(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return [{"model": name.strip()} for name in text.split(",") if name.strip()]
    return _json("frozen-models", text)


def _fsdp(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return {"strategy": text.upper()}
    return _json("fsdp", text)


def _json(flag: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LintfitError(f"--{flag} {shorten(text)}: not JSON: {error}") from None


def hardware_of(options: Options) -> dict[str, Any]:
    """The hardware and model flags as keys of a spec."""
    mapping: dict[str, Any] = {}
    if options.asks_machine:
        from lintfit.options.machine import with_machine

        options = with_machine(options)
    # Numbers and words as they are; sizes and models of the options are of other types.
    for name in ("gpu", "gpus", "nodes", "seq_len", "images"):
        if (value := getattr(options, name)) is not None:
            mapping[name] = value
    if options.versions:
        mapping["versions"] = options.versions
    for name, size in (("gpu_memory_gib", options.gpu_memory_bytes), ("host_memory_gib", options.host_memory_bytes)):
        if size is not None:
            mapping[name] = size / GIB
    config = options.model_config
    if config is None and options.model and door.is_file(Path(options.model) / "config.json"):
        config = Path(options.model) / "config.json"
    if config is not None:
        mapping["model_config"] = _object(config, "a model's config.json is")
    elif options.model:
        mapping["model"] = options.model
    return mapping


def _object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file. Raises LintfitError where there is none."""
    try:
        content = json.loads(door.read_regular(path, MAX_NAMED_CONFIG).decode("utf-8-sig"))
    except OSError as error:
        raise LintfitError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LintfitError(f"{shown_path(path)}: not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise LintfitError(f"{shown_path(path)}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise LintfitError(f"{shown_path(path)}: expected a JSON object, as {what}")
    return content
