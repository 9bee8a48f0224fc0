"""``lintfit estimate``: from specs, files or flags to the text that is printed and the exit status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lintfit import __version__
from lintfit.config import Options
from lintfit.errors import LintfitError
from lintfit.memory.spec import GIB
from lintfit.report import View, shown_path
from lintfit.report.json import SCHEMA_VERSION, dumps, run_json
from lintfit.specs import Estimated, estimate_mapping, read_specs


@dataclass(frozen=True, slots=True)
class Done:
    """What to print, what to complain of, and the exit status."""

    text: str
    errors: tuple[str, ...] = ()
    status: int = 0


def of_specs(source: str, output_format: str, view: View) -> Done:
    """The specs of a JSON file; an array in gives an array out, and a bad spec an error in its place."""
    mappings, many = read_specs(source)
    results = [estimate_mapping(mapping) for mapping in mappings]
    bad = [(number, result) for number, result in enumerate(results, 1) if result.estimate is None]
    errors = tuple(f"spec {number}: {result.error}" if many else result.error for number, result in bad)
    text = _json(results, many) if output_format == "json" else _text(results, view)
    return Done(text, errors, 2 if bad else 0)


def of_flags(hardware: Options, flags: Mapping[str, str], output_format: str, view: View) -> Done:
    """A run that is described by flags alone."""
    mapping = {name.replace("-", "_"): _value(text) for name, text in flags.items()}
    result = estimate_mapping({**_hardware(hardware), **mapping})
    if result.estimate is None:
        raise LintfitError(result.error)
    return Done(_json([result], False) if output_format == "json" else _text([result], view))


def of_paths(paths: Sequence[Path], options: Options, output_format: str, view: View) -> Done:
    """The runs of some files."""
    from lintfit import engine

    loaded, runs = engine.load_runs(paths, options)
    status = 2 if loaded.errors else 0
    if output_format == "json":
        contents = [run_json(run) for run in runs]
        text = dumps({"schema_version": SCHEMA_VERSION, "lintfit_version": __version__, "runs": contents})
        return Done(text, loaded.errors, status)
    from lintfit.report.estimate import render_runs

    return Done(render_runs(runs, view) or "No runs found.\n", loaded.errors, status)


def _json(results: Sequence[Estimated], many: bool) -> str:
    return dumps([result.to_json() for result in results] if many else results[0].to_json())


def _text(results: Sequence[Estimated], view: View) -> str:
    from lintfit.report.estimate import render_spec

    shown = [render_spec(result.spec, result.estimate, view) for result in results if result.spec and result.estimate]
    return "\n".join(shown)


def _value(text: str) -> Any:
    """A flag's text as the JSON value that it looks like: ``2``, ``true``; anything else stays text."""
    try:
        return json.loads(text.lower())
    except ValueError:
        return text


def _hardware(options: Options) -> dict[str, Any]:
    """The hardware and model flags as keys of a spec."""
    mapping: dict[str, Any] = {}
    for name in ("gpu", "gpus", "nodes", "seq_len"):
        if (value := getattr(options, name)) is not None:
            mapping[name] = value
    for name, size in (("gpu_memory_gib", options.gpu_memory_bytes), ("host_memory_gib", options.host_memory_bytes)):
        if size is not None:
            mapping[name] = size / GIB
    config = options.model_config
    if config is None and options.model and (Path(options.model) / "config.json").is_file():
        config = Path(options.model) / "config.json"
    if config is not None:
        mapping["model_config"] = _model_config(config)
    elif options.model:
        mapping["model"] = options.model
    return mapping


def _model_config(path: Path) -> Any:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise LintfitError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise LintfitError(f"{shown_path(path)}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise LintfitError(f"{shown_path(path)}: expected a JSON object, as a model's config.json is")
    return content
