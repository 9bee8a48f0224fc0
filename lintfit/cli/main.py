"""The commands. They turn flags into Options, call the engine or the memory model, and print."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lintfit import __version__
from lintfit.cli import cache as cli_cache
from lintfit.cli import flags as cli_flags
from lintfit.cli import output as cli_output
from lintfit.cli import progress as cli_progress
from lintfit.cli.help import Grouped, help_all
from lintfit.cli.spelling import Forgiving
from lintfit.errors import LintfitError, one_line
from lintfit.report import REPORTERS, render

if TYPE_CHECKING:
    from lintfit.commands.done import Done
    from lintfit.commands.estimate import Shown
    from lintfit.commands.kept.store import Keeping
    from lintfit.findings.results import CheckResult
    from lintfit.options.model import Options
    from lintfit.severity import FailOn

SCHEMAS = (
    "deepspeed",
    "accelerate",
    "axolotl",
    "llamafactory",
)
"""Whose schemas there are, ``schemas/NAME.schema.json``."""

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, "-V", "--version", message="lintfit %(version)s")
def lintfit() -> None:
    """A linter, fixer and memory estimator for the files that decide an LLM training run."""


class _WithReason(Forgiving):
    """Takes a plain ``--add-ignores`` as one without a reason, so that the path behind it is not taken for one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        own = [f"{arg}=" if arg == "--add-ignores" else arg for arg in args[:end]]
        return super().parse_args(ctx, [*own, *args[end:]])


@lintfit.command(cls=_WithReason, short_help="Lint files, and fix them with --fix.")
@click.argument("paths", nargs=-1)
@click.option("--fix", is_flag=True, help="Write safe fixes, and the plan where it is safe.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix: also what may change how it trains.")
@click.option("--diff", is_flag=True, help="Print what --fix would change; write nothing.")
@click.option("--select", metavar="RULES", multiple=True, help="Only these rules (names or codes, comma-separated).")
@click.option("--ignore", metavar="RULES", multiple=True, help="Not these rules.")
@click.option("--no-ignores", is_flag=True, help="Report also what comments silence.")
@click.option("--add-ignores", metavar="[=REASON]", help="Write comments that silence what is left.")
@click.option("--baseline", metavar="FILE", help="Known findings, which are not reported.")
@click.option("--write-baseline", metavar="FILE", help="Count what is left as known in this file.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="What a search of folders passes over.")
@click.option(
    "--output-format",
    metavar="FORMAT[:FILE]",
    multiple=True,
    help=f"{', '.join(REPORTERS)}; repeatable, each but one with a file.",
)
@click.option(
    "--fail-on",
    metavar="SEVERITY",
    help="error, warning (default), info, or unknown: warnings, a run without a verdict, a file not understood.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even where findings are left.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 where something was fixed.")
@click.option("--stdin-filename", metavar="FILE", help="Check standard input as if it were this file.")
@click.option("--as-found", is_flag=True, help="Take named files as found ones (for hooks).")
@click.option("--staged", is_flag=True, help="Check the runs that the next commit touches.")
@click.option("--changed-since", metavar="REV", help="Check the runs touched since a commit of git.")
@click.option("--isolated", is_flag=True, help="Read no lintfit.toml and no pyproject.toml.")
@click.option("--no-cache", is_flag=True, help="Neither take nor keep an earlier report.")
@click.option("--statistics", is_flag=True, help="Count findings by rule, unknown runs by reason.")
@click.option("--show-fixes", is_flag=True, help="List what was fixed.")
@click.option("--verbose", is_flag=True, help="Findings with their code, and what is assumed.")
@click.option("-q", "--quiet", is_flag=True, help="The last line alone.")
@click.option("--show-plans", is_flag=True, help="Every kind of plan, not only the best.")
@click.option("--margin", metavar="SHARE|SIZE", help="What plans leave free on a GPU: 10%, 2GiB.")
@cli_flags.flags(cli_flags.HARDWARE)
@cli_flags.color_option
def check(paths: tuple[str, ...], **flags: Any) -> int:
    """Lint files; folders are searched, the default is the current one.

    Exit status: 0 nothing at or above --fail-on is left, 1 findings are left, 2 bad usage, a bad config, or a named
    file that is missing or unreadable.
    """
    options, named = _options(paths, flags)
    below = cli_output.below_roots(options, named)
    from lintfit.commands import check as engine

    with cli_progress.progress("checking"):
        recording = cli_cache.Recording.begun if cli_cache.may_be_kept(options) else None
        keeping = _keeping(recording) if recording is not None else None
        result = engine.check(named, options, keeping)
    if result.errors:
        recording = None
    for stream, text in _said(result, options, flags, below):
        cli_output.echo(text) if stream == 1 else click.echo(text, err=True, nl=False)
        if recording is not None:
            recording.say(stream, text)
    status = _status(result, options, flags)
    if recording is not None:
        recording.keep(status, map(str, named), keeping.written if keeping is not None else lambda: None)
    return status


def _keeping(recording: cli_cache.Recording) -> Keeping:
    """What a check takes from an earlier one of nearly the same files."""
    from lintfit.commands.kept.store import Keeping

    earlier = recording.earlier
    parts = earlier.parts() if earlier is not None else None
    return Keeping(parts, earlier.changed if earlier is not None and parts is not None else ())


def _options(paths: tuple[str, ...], flags: Mapping[str, Any]) -> tuple[Options, list[Path]]:
    """The flags as Options and the paths to check, with standard input read where it is asked for."""
    from lintfit.options.config import from_flags

    stated = cli_flags.given(flags, *cli_flags.HARDWARE, "margin", "fail-on", "baseline")
    for name in ("select", "ignore", "exclude"):
        stated[name] = tuple(item.strip() for text in flags[name] for item in text.split(",") if item.strip()) or None
    baseline = flags["write_baseline"]
    if baseline is not None and flags["diff"]:
        raise LintfitError("--write-baseline counts what is left; --diff leaves everything as it is")
    _changes_alone(flags)
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
        staged=flags["staged"],
        changed_since=flags["changed_since"],
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


def _changes_alone(flags: Mapping[str, Any]) -> None:
    """Refuse what asks about a change and cannot be answered from it alone."""
    asked = "--staged" if flags["staged"] else "--changed-since"
    if not flags["staged"] and flags["changed_since"] is None:
        return
    if flags["staged"] and flags["changed_since"] is not None:
        raise LintfitError("--staged and --changed-since are two questions: ask one of them")
    if flags["stdin_filename"]:
        raise LintfitError(f"{asked} asks git which files to check; standard input cannot stand next to it")
    if flags["write_baseline"] is not None:
        raise LintfitError(f"--write-baseline counts all that is left; {asked} looks at a part")


def _reason(text: str | None) -> str | None:
    if text is not None and not all(character.isprintable() for character in text):
        raise LintfitError("--add-ignores: the reason must be one line of text")
    return text.strip() if text is not None else None


def _said(
    result: CheckResult, options: Options, flags: Mapping[str, Any], below: Sequence[Path]
) -> Iterator[tuple[int, str]]:
    """What is printed, each with the number of its stream; files are written in between. The diff and the fixed
    standard input take standard output for themselves."""
    taken = options.diff or result.fixed_stdin is not None
    for error in result.errors:
        yield 2, f"lintfit: {one_line(error)}\n"
    if options.diff:
        yield 1, result.diff
    elif result.fixed_stdin is not None:
        yield 1, result.fixed_stdin
    for output in options.outputs:
        if output.file is not None:
            cli_output.write(output.file, render(output.format, result, cli_output.view(flags, None)), below)
        elif not taken:
            yield 1, render(output.format, result, cli_output.view(flags, sys.stdout))
        else:
            yield 2, render(output.format, result, cli_output.view(flags, sys.stderr))


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


_NAMES_IN_SPECS = {"token_normalize_func": lambda name: name.replace("_", "-")}
"""``--zero_stage`` is ``--zero-stage``: flags may be written as the spec's keys are."""


@help_all
@lintfit.command(cls=Forgiving, short_help="The memory of each run, phase by phase.", context_settings=_NAMES_IN_SPECS)
@click.argument("paths", nargs=-1)
@click.option("--spec", metavar="FILE|-", help="A spec as JSON, or an array of them; - is stdin.")
@click.option("--output-format", type=click.Choice(["text", "json"]), help="text (default), or json (with --spec).")
@click.option("--explain", is_flag=True, help="Print every component's formula with the numbers in it.")
@click.option("--sweep", metavar="SETTINGS", help="A table over one or two: micro-batch,zero=2,3.")
@click.option("--isolated", is_flag=True, help="Read no lintfit.toml and no pyproject.toml.")
@cli_flags.flags({**cli_flags.SPEC, **cli_flags.HARDWARE})
@cli_flags.color_option
def estimate(
    paths: tuple[str, ...], spec: str | None, output_format: str | None, explain: bool, sweep: str | None, **flags: Any
) -> int:
    """The memory of each run of some files, of a JSON spec, or of a run described by flags.

    Flags have the names of a spec's keys, and beside files ask what if: before and after. --lora[=16] and --qlora[=16]
    say how it trains. --model and --gpu alone give a table of the usual ways to train. Exit status: 0, or 2 for bad
    usage, a spec that cannot be estimated, or a named file that is missing or unreadable.
    """
    from lintfit.commands import estimate as estimating
    from lintfit.options.config import from_flags

    plain = {name: value for name, value in _of_a_spec(flags).items() if value is not None}
    standard = "json" if spec is not None and not explain else "text"
    shown = estimating.Shown(output_format or standard, explain, cli_output.view(flags, sys.stdout))
    hardware = cli_flags.given(flags, *cli_flags.HARDWARE)
    if spec is not None:
        _alone([*(f"--{name}" for name in plain), *_given(hardware), *(["--sweep"] if sweep else []), *paths])
        done = estimating.of_specs(spec, shown)
    else:
        with cli_progress.progress("estimating"):
            done = _estimated(paths, plain, from_flags(hardware, isolated=flags["isolated"]), shown, sweep)
    return cli_output.show(done)


def _of_a_spec(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that describe a run, and nothing that files may stand beside."""
    return cli_flags.given(flags, *(name for name in cli_flags.SPEC if name not in cli_flags.HARDWARE))


def _alone(stated: Sequence[str]) -> None:
    """A spec says everything itself: nothing else may be stated beside it."""
    if stated:
        raise LintfitError(f"--spec says everything itself; {stated[0]} cannot stand next to it")


def _given(flags: Mapping[str, Any]) -> list[str]:
    return [f"--{name}" for name, value in flags.items() if value is not None]


def _estimated(
    paths: tuple[str, ...], plain: Mapping[str, str], options: Options, shown: Shown, sweep: str | None
) -> Done:
    """Estimates of files, or of a run that the flags describe where no file is named."""
    from lintfit.commands import estimate as estimating

    if not paths and (options.model or options.model_config):
        return estimating.of_flags(options, plain, shown, sweep)
    return estimating.of_paths([Path(path) for path in paths or (".",)], options, shown, plain, sweep)


@lintfit.command(
    cls=Forgiving, short_help="What would make a run fit; or how far it can go.", context_settings=_NAMES_IN_SPECS
)
@click.argument("paths", nargs=-1)
@click.option("--spec", metavar="FILE|-", help="A spec as JSON, or an array of them; - is stdin.")
@click.option("--maximize", type=click.Choice(["micro-batch", "seq-len"]), help="The most that fits.")
@click.option("--minimize", type=click.Choice(["gpus", "sharding", "step-time"]), help="The least that does.")
@click.option("--margin", metavar="SHARE|SIZE", help="What plans leave free on a GPU: 10%, 2GiB.")
@click.option("--diff", metavar="N", type=int, help="Print what plan N would change; write nothing.")
@click.option("--apply", metavar="N", type=int, help="Write plan N, as it is listed.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="text (default) or json.")
@click.option("--isolated", is_flag=True, help="Read no lintfit.toml and no pyproject.toml.")
@cli_flags.flags({name: row for name, row in cli_flags.SPEC.items() if name not in cli_flags.HARDWARE}, hidden=True)
@cli_flags.flags(cli_flags.HARDWARE)
@cli_flags.color_option
def fit(paths: tuple[str, ...], **flags: Any) -> int:
    """List what would make each run fit, best first: memory, host, step time, and what it changes in the training.

    Plans that change nothing in the training come first, then the faster ones. --maximize and --minimize ask the other
    way round. Without a file, flags describe the run, as those of estimate do. Exit status: 0 where every run fits or
    has a plan, 1 where one has none or cannot be judged, 2 for bad usage, a spec that cannot be estimated, or a named
    file that is missing or unreadable.
    """
    asked, options = _asked(flags), _fit_options(flags)
    from lintfit.commands import fit as fitting

    plain = {name: value for name, value in _of_a_spec(flags).items() if value is not None}
    question = fitting.Asked(**asked, view=cli_output.view(flags, sys.stdout))
    if flags["spec"] is not None:
        stated = (origin for origin in options.origins.values() if origin != "--margin")
        _alone([*(f"--{name}" for name in plain), *stated, *paths])
        done = fitting.of_specs(flags["spec"], options, question)
    elif plain:
        if paths:
            raise LintfitError(f"--{next(iter(plain))} describes a run; lintfit estimate answers what if beside files")
        done = fitting.of_flags(plain, options, question)
    else:
        with cli_progress.progress("looking for plans"):
            done = fitting.of_paths([Path(path) for path in paths or (".",)], options, question)
    return cli_output.show(done, exact=flags["diff"] is not None)


def _asked(flags: Mapping[str, Any]) -> dict[str, Any]:
    if flags["maximize"] and flags["minimize"]:
        raise LintfitError("--maximize and --minimize are two questions: ask one of them")
    if flags["diff"] is not None and flags["apply"] is not None:
        raise LintfitError("--diff shows a plan and --apply writes one: give one of them")
    goal = flags["maximize"] or flags["minimize"]
    return {"goal": goal, "output_format": flags["output_format"], "diff": flags["diff"], "apply": flags["apply"]}


def _fit_options(flags: Mapping[str, Any]) -> Options:
    from lintfit.options.config import from_flags

    stated = cli_flags.given(flags, *cli_flags.HARDWARE, "margin")
    return from_flags(stated, isolated=flags["isolated"])


@lintfit.command(name="explain-oom", cls=Forgiving, short_help="What a log's death by memory was, and what ends it.")
@click.argument("log")
@click.argument("paths", nargs=-1)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="text (default) or json.")
@click.option("--isolated", is_flag=True, help="Read no lintfit.toml and no pyproject.toml.")
@cli_flags.flags(cli_flags.HARDWARE)
@cli_flags.color_option
def explain_oom(log: str, paths: tuple[str, ...], **flags: Any) -> int:
    """Explain the death by memory in a LOG (- reads standard input), held against the run in some files.

    Says which memory ended, in which phase and for what, what was in use beside it, how that compares to what the run
    needs, and what makes it fit. Exit status: 0, 1 where the log has no such death, or 2 for bad usage or a file that
    is missing or unreadable.
    """
    from lintfit.commands import explain_oom as explaining
    from lintfit.options.config import from_flags

    options = from_flags(cli_flags.given(flags, *cli_flags.HARDWARE), isolated=flags["isolated"])
    with cli_progress.progress("explaining"):
        done = explaining.explain(
            log, [Path(path) for path in paths], options, flags["output_format"], cli_output.view(flags, sys.stdout)
        )
    return cli_output.show(done)


@lintfit.command(cls=Grouped, short_help="Explain one rule (by name or code), or list all.")
@click.argument("name", required=False)
@cli_flags.color_option
def rule(name: str | None, color: str) -> int:
    """Explain one rule (by name or code), or list all; [*] stands at those that have a fix."""
    from lintfit.report import rules

    cli_output.echo(rules.page(name, cli_output.view({"color": color}, sys.stdout)) if name else rules.listing())
    return 0


@lintfit.command(cls=Grouped, short_help="Print the JSON Schema of a config.")
@click.argument("name", metavar="|".join(SCHEMAS), type=click.Choice(SCHEMAS))
def schema(name: str) -> int:
    """Print the JSON Schema of a DeepSpeed JSON, an Accelerate YAML or a front end's recipe, for editors."""
    from lintfit.resources import packaged, resource_dir

    file = resource_dir("schemas") / f"{name}.schema.json"
    try:
        text = packaged(file)
    except OSError as error:
        raise LintfitError(f"{file}: cannot be read: {error.strerror}; install lintfit again") from None
    cli_output.echo(text)
    return 0
