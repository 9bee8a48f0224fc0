"""``--help`` by headings, two screens of 40 lines at most.

Options stand under the heading that names them here. Keys of a spec that few state take no line each: their names stand
together, and ``--help-all`` tells them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "What is asked": ("spec", "sweep", "explain", "maximize", "minimize"),
    "Which files and rules": (
        "select",
        "ignore",
        "exclude",
        "no-ignores",
        "baseline",
        "write-baseline",
        "stdin-filename",
        "as-found",
        "staged",
        "changed-since",
    ),
    "What is written": ("fix", "unsafe-fixes", "diff", "apply", "add-ignores"),
    "What is shown": (
        "output-format",
        "verbose",
        "quiet",
        "statistics",
        "show-fixes",
        "show-plans",
        "margin",
        "color",
        "isolated",
        "no-cache",
    ),
    "Exit status": ("fail-on", "exit-zero", "exit-non-zero-on-fix"),
    "The machine": ("gpu", "gpus", "nodes", "gpu-memory", "host-memory", "nvme-path", "versions"),
    "The model and its samples": ("model", "model-config", "seq-len", "images", "micro-batch-size"),
    "How it trains": (
        "method",
        "lora-rank",
        "lora-targets",
        "quantization",
        "weights-dtype",
        "mixed-precision",
        "optimizer",
        "gradient-checkpointing",
        "attention",
        "loss",
        "trainer",
    ),
    "How it is spread": ("engine", "zero-stage", "offload-optimizer", "offload-param", "deepspeed-config", "fsdp"),
}
"""The options below each heading, without their dashes, in this order."""
_OTHERS = "Keys of a spec that few state, as flags (a line for each with --help-all)"
_FEW = 12
"""An option that no heading names has a line in the help of a command with no more options than that."""


class Grouped(click.Command):
    """A command whose help has its options by headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        rows = {_name(each): row for each in options if (row := each.get_help_record(ctx)) is not None}
        help_rows = [rows.pop(name) for name in ("help-all", "help") if name in rows]
        whole = ctx.meta.get(_ALL, False) or len(rows) <= _FEW
        for heading, names in HEADINGS.items():
            found = [rows.pop(name) for name in names if name in rows]
            if found:
                _section(formatter, heading, found)
        if rows and whole:
            _section(formatter, _OTHERS.partition(",")[0], list(rows.values()))
        elif rows:
            with formatter.section(_OTHERS):
                formatter.write_text(", ".join(rows))
        _section(formatter, "Help", help_rows)


_ALL = "lintfit.help-all"


def help_all(command: click.Command) -> click.Command:
    """Give a command ``--help-all``: its help with a line for every option."""

    def show(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
        if asked and not ctx.resilient_parsing:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    text = "This with a line for every key."
    option = click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show, help=text)
    command.params.append(option)
    return command


def _section(formatter: click.HelpFormatter, heading: str, rows: list[tuple[str, str]]) -> None:
    with formatter.section(heading):
        formatter.write_dl(rows, col_max=28)


def _name(parameter: click.Parameter) -> str:
    return next(_long(parameter), parameter.name or "")


def _long(parameter: click.Parameter) -> Iterator[str]:
    return (each.removeprefix("--") for each in parameter.opts if each.startswith("--"))
