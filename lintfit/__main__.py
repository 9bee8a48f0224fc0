"""The program: runs a command and turns whatever goes wrong into one line and an exit status."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] != __file__.rsplit(os.sep, 2)[0]:
    # ``python -m lintfit`` puts the working directory first: the checked tree's inspect.py would stand in for Python's.
    del sys.path[0]

import gc
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lintfit.errors import LintfitError, internal_error, one_line

if TYPE_CHECKING:
    from click.exceptions import ClickException


NEW_OBJECTS = 500_000
"""New objects between two collections. Nearly all that a run makes, syntax trees above all, stays to its end: looking
through it for garbage every 700 objects, Python's default, finds none and takes a tenth of the time."""
OF_NEW_ONES = 100
"""Collections that look through new objects alone, before one looks through those that these have left as well."""


def main() -> NoReturn:
    """Run ``lintfit`` with the arguments of the process and exit with 0, 1 or 2."""
    gc.set_threshold(NEW_OBJECTS, OF_NEW_ONES)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    _leave(run(fresh=True))


def run(*, fresh: bool = False) -> int:
    """Run one command and give its exit status; every error is one line on standard error.

    ``fresh``: in a process that has read no file yet, so that all that a report comes from can be noted.
    """
    try:
        Path.cwd()
    except OSError as error:
        return _say(f"the working directory: {(error.strerror or str(error)).lower()}; change to one that exists")
    try:
        return _run(fresh)
    except LintfitError as error:
        return _say(str(error))
    except BrokenPipeError:
        _close_stdout()
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("LINTFIT_DEBUG"):
            raise
        return _say(internal_error(error))


def _run(fresh: bool) -> int:
    match sys.argv[1:]:
        case ["estimate", "--spec", source]:
            return _estimate(source)
        case ["check", *arguments] if fresh:
            from lintfit.cli import cache

            kept = cache.find(arguments)
            if kept is not None:
                return kept
    from click.exceptions import Abort, ClickException, NoArgsIsHelpError

    from lintfit.cli.main import lintfit

    try:
        status = lintfit.main(prog_name="lintfit", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except Abort:  # click's word for Ctrl-C
        return 130
    except NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return 2
    except ClickException as error:
        return _say(_usage(error))


def _estimate(source: str) -> int:
    """``estimate --spec FILE`` as :mod:`.cli` runs it, for programs that ask again and again.

    There are no flags to read here: what reads them takes a third of the time to the first estimate.
    """
    from lintfit.cli import output as cli_output
    from lintfit.commands import estimate
    from lintfit.report import View

    return cli_output.show(estimate.of_specs(source, estimate.Shown("json", explain=False, view=View())))


def _usage(error: ClickException) -> str:
    from click.exceptions import UsageError

    message = " ".join(error.format_message().split())
    if isinstance(error, UsageError) and error.ctx is not None:
        return f"{message.rstrip('.')} (see `{error.ctx.command_path} --help`)"
    return message


def _leave(status: int) -> NoReturn:
    """End the process as it stands: to take apart all that a run has made takes up to a tenth of its time."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # None, a full disk or a closed pipe, closed by hand
            stream.flush()
    os._exit(status)


def _say(message: str) -> int:
    with suppress(OSError):
        # print writes to standard output where there is no standard error.
        if sys.stderr is not None:
            print(f"lintfit: {one_line(message)}", file=sys.stderr)
    return 2


def _close_stdout() -> None:
    """Keep the interpreter from complaining, at exit, of the pipe that nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
