"""``lintfit estimate``: from specs, files or flags to the text that is printed and the exit status."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit import __version__
from lintfit.commands.specs import Estimated, estimate_mapping, read_specs
from lintfit.documents import door
from lintfit.documents.door import MAX_NAMED_CONFIG
from lintfit.errors import LintfitError, shorten
from lintfit.frozen import frozen, replace
from lintfit.memory.spec import GIB
from lintfit.report import View, shown_path
from lintfit.report.encoding import SCHEMA_VERSION, dumps
from lintfit.settings.kinds import is_list
from lintfit.settings.registry import SETTINGS

if TYPE_CHECKING:
    from lintfit.options.model import Options


@frozen
class Shown:
    """How estimates are shown: ``text`` or ``json``, with or without their formulas."""

    output_format: str
    explain: bool
    view: View


@frozen
class Done:
    """What to print, what to complain of, and the exit status."""

    text: str
    errors: tuple[str, ...] = ()
    status: int = 0


def of_specs(source: str, shown: Shown) -> Done:
    """The specs of a JSON file; an array in gives an array out, and a bad spec an error in its place.

    Each estimate is let go once it is written down, so that thousands of them need no more memory than one. A spec
    that comes again is not estimated again.
    """
    mappings, many = read_specs(source)
    texts: list[str] = []
    errors: list[str] = []
    written: dict[str, list[str]] = {}
    # Nothing that an estimate makes refers to itself: there is no garbage to look for, now or later.
    gc.disable()
    try:
        for number, mapping in enumerate(mappings, 1):
            spelled = repr(mapping)
            text = written.get(spelled)
            if text is None:
                result = estimate_mapping(mapping)
                text = _written(result, many, shown)
                if result.estimate is None:
                    errors.append(f"spec {number}: {result.error}" if many else result.error)
                else:
                    written[spelled] = text
            texts += text
    finally:
        gc.freeze()
        gc.enable()
    return Done(_together(texts, many, shown), tuple(errors), 2 if errors else 0)


def of_flags(hardware: Options, flags: Mapping[str, str], shown: Shown) -> Done:
    """A run that is described by flags alone; the hardware may come from the config above the working directory."""
    from lintfit.options.config import config_for

    result = estimate_mapping({**_hardware(config_for(Path(), hardware)), **_mapping(flags)})
    if result.estimate is None:
        raise LintfitError(result.error)
    return Done(_together(_written(result, False, shown), False, shown))


def of_paths(paths: Sequence[Path], options: Options, shown: Shown) -> Done:
    """The runs of some files. Raises CatalogError for a ``--model-config`` that nothing can be estimated with."""
    from lintfit.commands import check
    from lintfit.report.json import run_json

    if options.model_config is not None:
        from lintfit.catalog.models import from_directory

        from_directory(options.model_config)
    loaded, runs = check.load_runs(paths, replace(options, what_if=True))
    status = 2 if loaded.errors else 0
    if shown.output_format == "json":
        contents = [run_json(run) for run in runs]
        for content, run in zip(contents, runs, strict=True):
            if shown.explain and run.estimate is not None and run.run.spec is not None:
                from lintfit.report.explain import explanation_json

                content["estimate"]["explanation"] = explanation_json(run.run.spec, run.estimate)
        text = dumps({"schema_version": SCHEMA_VERSION, "lintfit_version": __version__, "runs": contents})
        return Done(text, loaded.errors, status)
    from lintfit.report.estimate import render_runs

    text = render_runs(runs, shown.view, shown.explain)
    return Done(text or ("" if loaded.errors else "No runs found.\n"), loaded.errors, status)


def _written(result: Estimated, many: bool, shown: Shown) -> list[str]:
    """The text of one estimate, in JSON that of its error where there is none; of ``many`` it takes one line."""
    if shown.output_format == "json":
        content = _content(result, shown.explain)
        # json's own encoder is many times as slow where it indents.
        return [json.dumps(content) if many else dumps(content)]
    if result.spec is None or result.estimate is None:
        return []
    from lintfit.report.estimate import render_spec

    return [render_spec(result.spec, result.estimate, shown.view, shown.explain)]


def _together(texts: Sequence[str], many: bool, shown: Shown) -> str:
    """The texts of all estimates as one."""
    if shown.output_format != "json":
        return "\n".join(texts)
    if not many:
        return texts[0]
    return "[\n" + ",\n".join(texts) + "\n]\n" if texts else "[]\n"


def _content(result: Estimated, explain: bool) -> dict[str, Any]:
    content = result.to_json()
    if explain and result.spec and result.estimate:
        from lintfit.report.explain import explanation_json

        content["explanation"] = explanation_json(result.spec, result.estimate)
    return content


def _mapping(flags: Mapping[str, str]) -> dict[str, Any]:
    """Flags as keys of a spec. A LoRA flag says that the method is LoRA."""
    mapping = {name.replace("-", "_"): _value(name.replace("-", "_"), text) for name, text in flags.items()}
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


def _value(key: str, text: str) -> Any:
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


def _hardware(options: Options) -> dict[str, Any]:
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
