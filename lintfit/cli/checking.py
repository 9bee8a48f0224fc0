"""``lintfit check`` from its flags to its exit status, whoever has read the flags.

click reads them, and says what is wrong with them. Where they are plain, :func:`plain` reads them instead: to load
click and to set up all commands takes longer than to read a recipe.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.cli import flags as cli_flags
from lintfit.cli import output as cli_output
from lintfit.cli import progress as cli_progress
from lintfit.errors import LintfitError, one_line
from lintfit.frozen import replace
from lintfit.report import render

if TYPE_CHECKING:
    from lintfit.findings.results import CheckResult
    from lintfit.options.model import Options
    from lintfit.severity import FailOn

SWITCHES = (
    "fix", "unsafe-fixes", "diff", "no-ignores", "exit-zero", "exit-non-zero-on-fix", "as-found", "isolated",
    "statistics", "show-fixes", "verbose", "quiet", "show-plans",
)  # fmt: skip
VALUES = ("baseline", "write-baseline", "fail-on", "stdin-filename", "margin", *cli_flags.HARDWARE)
LISTS = ("select", "ignore", "exclude", "output-format")
"""The flags of the command that :func:`plain` reads, each as the command in :mod:`lintfit.cli.main` declares it."""


def plain(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, Any]] | None:
    """Paths and flags as click gives them; None where there is anything that is better left to it.

    That is help, a short flag, a mistake, or a value that begins like a flag.
    """
    values: dict[str, Any] = {
        **dict.fromkeys(SWITCHES, False),
        **dict.fromkeys((*VALUES, "add-ignores")),
        **dict.fromkeys(LISTS, ()),
        "color": "auto",
    }
    paths: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word[2:].partition("=")
        if not word.startswith("-") or word == "-":
            paths.append(word)
        elif word == f"--{name}" and name in SWITCHES:
            values[name] = True
        elif word.startswith("--") and (name in VALUES or name in LISTS):
            given = value if equals else next(rest, "-")
            if not equals and given.startswith("-"):
                return None
            values[name] = (*values[name], given) if name in LISTS else given
        else:
            return None
    return tuple(paths), {name.replace("-", "_"): value for name, value in values.items()}


def check(paths: tuple[str, ...], flags: Mapping[str, Any]) -> int:
    """Check files and folders, print the report, and give the exit status."""
    options, named = _options(paths, flags)
    below = cli_output.below_roots(options, named)
    from lintfit.commands import check as engine

    with cli_progress.progress("checking"):
        result = engine.check(named, options)
    _show(result, options, flags, below)
    return _status(result, options, flags)


def _complain(text: str) -> None:
    """Standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _options(paths: tuple[str, ...], flags: Mapping[str, Any]) -> tuple[Options, list[Path]]:
    """The flags as Options and the paths to check, with standard input read where it is asked for."""
    from lintfit.options.config import from_flags

    stated = cli_flags.given(flags, *cli_flags.HARDWARE, "margin", "fail-on", "baseline")
    for name in ("select", "ignore", "exclude"):
        stated[name] = tuple(item.strip() for text in flags[name] for item in text.split(",") if item.strip()) or None
    baseline = flags["write_baseline"]
    if baseline is not None and flags["diff"]:
        raise LintfitError("--write-baseline counts what is left; --diff leaves everything as it is")
    name = flags["stdin_filename"]
    if "-" in paths and not name:
        raise LintfitError("- reads standard input: say with --stdin-filename what it is (ds_config.json, …)")
    named = [Path(path) for path in paths if path != "-"]
    options = from_flags(
        stated,
        fix=flags["fix"],
        unsafe_fixes=flags["unsafe_fixes"],
        diff=flags["diff"],
        show_plans=flags["show_plans"],
        isolated=flags["isolated"],
        as_found=flags["as_found"],
        outputs=cli_output.outputs(flags["output_format"]),
        no_ignores=flags["no_ignores"],
        add_ignores=_reason(flags["add_ignores"]),
        stdin_filename=Path(name) if name else None,
        stdin=cli_output.standard_input() if name else None,
    )
    if baseline is not None:
        # What an older baseline counts is counted anew.
        origins = {**options.origins, "baseline": "--write-baseline"}
        options = replace(options, write_baseline=Path(baseline), baseline=None, origins=origins)
    return options, named if named or name else [Path()]


def _reason(text: str | None) -> str | None:
    if text is not None and not all(character.isprintable() for character in text):
        raise LintfitError("--add-ignores: the reason must be one line of text")
    return text.strip() if text is not None else None


def _show(result: CheckResult, options: Options, flags: Mapping[str, Any], below: Sequence[Path]) -> None:
    """Print each output where it goes; the diff and the fixed standard input take standard output for themselves."""
    taken = options.diff or result.fixed_stdin is not None
    for error in result.errors:
        _complain(f"lintfit: {one_line(error)}\n")
    if options.diff:
        cli_output.echo(result.diff)
    elif result.fixed_stdin is not None:
        cli_output.echo(result.fixed_stdin)
    for output in options.outputs:
        if output.file is not None:
            cli_output.write(output.file, render(output.format, result, cli_output.view(flags, None)), below)
        elif not taken:
            cli_output.echo(render(output.format, result, cli_output.view(flags, sys.stdout)))
        else:
            _complain(render(output.format, result, cli_output.view(flags, sys.stderr)))


def _status(result: CheckResult, options: Options, flags: Mapping[str, Any]) -> int:
    if result.errors:
        return 2
    if flags["exit_non_zero_on_fix"] and result.fixed:
        return 1
    if flags["exit_zero"]:
        return 0
    if options.diff and result.diff:
        return 1
    return int(_fails(result, options))


def _fails(result: CheckResult, options: Options) -> bool:
    """Whether something is left at or above what the config of its file fails on."""
    from lintfit.options.config import config_for

    def fail_on(path: Path) -> FailOn:
        return config_for(path, options).fail_on

    if any(finding.severity >= fail_on(finding.place.document.path).severity for finding in result.findings):
        return True
    open_ends = [*(run.run.origin.path for run in result.runs if run.is_unknown), *(s.path for s in result.skipped)]
    return any(fail_on(path).unknown for path in open_ends)
