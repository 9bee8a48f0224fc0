from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents.markdown import is_page
from lintfit.documents.model import Document, Edit, Span
from lintfit.findings.model import Applicability, Severity
from lintfit.settings.model import Place

_CUT = re.compile(r"[ \t]++(\\)([ \t]++)(?=\r?\n[ \t]*+(--?[A-Za-z][\w.-]*))")
"""A backslash that escapes a blank instead of the end of its line, and the flag that the next line begins with."""
_CUT_IN_PAGE = re.compile(r"(?<![ \t])" + _CUT.pattern.replace(r"\n[ \t]*", r"\n[ \t>]*"))
"""The same in a page, where it may stand in a quotation."""
_COMMENT = re.compile(r"[ \t]++\\\r?\n([ \t]*+(?:#[^\n]*\n[ \t]*+)++)(?=--?[A-Za-z])")
"""Comments between the lines of a command, and a flag behind them: the first one ends the command."""
_GOES_ON = re.compile(r"\\[ \t]*$")


def breaks_the_command(context: RunContext) -> bool:
    launch = context.run.launch
    return launch is not None and not is_page(launch.document.path) and any(check_run(context))


def check_run(context: RunContext) -> Iterator[Report]:
    launch = context.run.launch
    if launch is None:
        return
    document = launch.document
    if is_page(document.path):
        yield from _in_page(document, launch.place.span)
        return
    cut = _CUT.match(document.text, launch.place.span.end)
    if cut is None:
        yield from _by_comment(document, launch.place.span.end)
        return
    yield Report(
        Place(document, Span(*cut.span(1))),
        f"a blank behind this backslash ends the command here: {_lost(document, cut.end())} do not reach it, "
        "and the shell runs them as a command of their own",
        fix=spliced(document, "take the blank away", Applicability.UNSAFE, [Edit(Span(*cut.span(2)), "")]),
        help="nothing may stand between a backslash and the end of its line",
    )


def _in_page(document: Document, command: Span) -> Iterator[Report]:
    """A command of a page is read as it is meant; who copies it gets less."""
    cut = _CUT_IN_PAGE.search(document.text, command.start, command.end)
    if cut is not None:
        yield Report(
            Place(document, Span(*cut.span(1))),
            f"a blank behind this backslash ends the command for whoever copies it: {_lost(document, cut.end())} do "
            "not reach it",
            severity=Severity.WARNING,
            fix=spliced(document, "take the blank away", Applicability.SAFE, [Edit(Span(*cut.span(2)), "")]),
            help="nothing may stand between a backslash and the end of its line",
        )


def _by_comment(document: Document, end: int) -> Iterator[Report]:
    cut = _COMMENT.match(document.text, end)
    if cut is None:
        return
    text = cut[1]
    start = cut.start(1) + len(text) - len(text.lstrip(" \t"))
    line = text.lstrip(" \t").splitlines()[0].rstrip()
    yield Report(
        Place(document, Span(start, start + len(line))),
        f"this comment ends the command: {_lost(document, cut.end())} do not reach it, and the shell runs them as a "
        "command of their own",
        help="put comments above the command, not between its lines",
    )


def _lost(document: Document, end: int) -> str:
    """The flags below, as far as the lines go on."""
    flags = []
    for line in document.text[end:].lstrip("\r\n").splitlines():
        if line.lstrip().startswith("#"):
            continue
        flags += re.findall(r"(?<!\S)(--?[A-Za-z][\w.-]*)", line)
        if _GOES_ON.search(line) is None:
            break
    more = len(flags) - 1
    return flags[0] if not more else f"{flags[0]} and {more} more {'flag' if more == 1 else 'flags'}"
