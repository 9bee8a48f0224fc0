"""``lintfit estimate``: from specs, files or flags to the text that is printed and the exit status."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit import __version__
from lintfit.commands.described import described, hardware_of, in_flags, mapping_of, taken_for
from lintfit.commands.done import Done
from lintfit.commands.specs import Estimated, estimate_mapping, read_specs
from lintfit.errors import LintfitError
from lintfit.frozen import frozen
from lintfit.report import View
from lintfit.report.encoding import SCHEMA_VERSION, compact, dumps

if TYPE_CHECKING:
    from lintfit.findings.questions import WhatIf
    from lintfit.findings.results import RunResult
    from lintfit.options.model import Options


@frozen
class Shown:
    """How estimates are shown: ``text`` or ``json``, with or without their formulas."""

    output_format: str
    explain: bool
    view: View


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


def of_flags(hardware: Options, flags: Mapping[str, str], shown: Shown, sweep: str | None = None) -> Done:
    """A run that is described by flags alone; the hardware may come from the config above the working directory.

    Where nothing but the model and the GPU is said, a person gets a table of the usual ways to train.
    """
    from lintfit.options.config import config_for

    options = config_for(Path(), hardware)
    if sweep is None and not flags and shown.output_format == "text" and not shown.explain and options.gpus is None:
        return _calculated(options, shown)
    result = described(options, flags)
    if sweep is not None:
        return _swept([_judged_alone(result)], sweep, shown, ())
    return Done(_together(_written(result, False, shown), False, shown))


def _calculated(options: Options, shown: Shown) -> Done:
    from lintfit.commands import calculator
    from lintfit.report.sweep import render_table

    found = calculator.table(hardware_of(options))
    return Done(render_table(found, taken_for(options.gpu), shown.view))


def _judged_alone(result: Estimated) -> RunResult:
    from lintfit.findings.results import RunResult
    from lintfit.fit.options import run_of
    from lintfit.verdict.judge import judge

    assert result.spec is not None
    return RunResult.of(judge(run_of(result.spec)))


def _swept(runs: Sequence[RunResult], text: str, shown: Shown, errors: tuple[str, ...]) -> Done:
    """Every run with each combination of the values of one setting or two."""
    from lintfit.commands.sweep import axes, sweep

    swept = axes(text)
    found = [sweep(result.run, swept) for result in runs if result.run.spec is not None]
    status = 2 if errors else 0
    if shown.output_format == "json":
        from lintfit.report.json import sweep_json

        head = {"schema_version": SCHEMA_VERSION, "lintfit_version": __version__}
        return Done(dumps({**head, "sweeps": [sweep_json(each) for each in found]}), errors, status)
    from lintfit.report.sweep import render

    return Done(render(found, shown.view) or ("" if errors else "No runs found.\n"), errors, status)


def of_paths(
    paths: Sequence[Path],
    options: Options,
    shown: Shown,
    flags: Mapping[str, str] | None = None,
    sweep: str | None = None,
) -> Done:
    """The runs of some files; with ``flags`` of a spec before and after.

    Raises CatalogError for a ``--model-config`` that nothing can be estimated with, LintfitError for flags that no run
    can have.
    """
    from lintfit.commands import what_if

    if options.model_config is not None:
        from lintfit.catalog.models import from_directory

        from_directory(options.model_config)
    stated = mapping_of(flags or {})
    try:
        answers, errors = what_if.load(paths, options, stated)
    except LintfitError as error:
        raise LintfitError(in_flags(str(error))) from None
    if sweep is not None:
        return _swept([answer.after for answer in answers], sweep, shown, errors)
    status = 2 if errors else 0
    if shown.output_format == "json":
        head = {"schema_version": SCHEMA_VERSION, "lintfit_version": __version__}
        return Done(dumps({**head, "runs": [_answer_json(each, stated, shown) for each in answers]}), errors, status)
    from lintfit.report.what_if import render

    text = render(answers, _question(flags or {}, options), shown.view, shown.explain)
    return Done(text or ("" if errors else "No runs found.\n"), errors, status)


def _answer_json(answer: WhatIf, stated: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    from lintfit.report.json import what_if_json

    content = what_if_json(answer, stated)
    result = answer.after
    if shown.explain and result.estimate is not None and result.run.spec is not None:
        from lintfit.report.explain import explanation_json

        content["estimate"]["explanation"] = explanation_json(result.run.spec, result.estimate)
    return content


def _question(flags: Mapping[str, str], options: Options) -> str:
    """What was asked, as flags."""
    from lintfit.commands.what_if import ASKED

    hardware = {name.replace("_", "-"): getattr(options, name) for name in ASKED}
    stated = {**{name: value for name, value in hardware.items() if value is not None}, **flags}
    return " ".join(f"--{name} {value}" for name, value in stated.items())


def _written(result: Estimated, many: bool, shown: Shown) -> list[str]:
    """The text of one estimate, in JSON that of its error where there is none; of ``many`` it takes one line."""
    if shown.output_format == "json":
        content = _content(result, shown.explain)
        return [compact(content) if many else dumps(content)]
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
