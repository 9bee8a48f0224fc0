from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents.cut_commands import Cut
from lintfit.documents.markdown import is_page
from lintfit.documents.model import Document, Edit, Span
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_elsewhere import is_workflow
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.settings.model import Place

_CUT_IN_PAGE = re.compile(r"(?<![ \t])[ \t]++(\\)([ \t]++(#[^\r\n]*+)?)(?=\r?\n[ \t>]*+(--?[A-Za-z][\w.-]*))")
"""A backslash that escapes a blank instead of the end of its line, a comment behind it, and the flag that the next line
begins with, which may stand in a quotation."""
_WHY = {
    "blank": "a blank behind this backslash ends the command here",
    "comment": "this comment ends the command",
    "empty": "this empty line ends the command",
    "line": "no backslash at the end of this line: the command ends here",
}
_HELP = {
    "blank": "nothing may stand between a backslash and the end of its line",
    "comment": "put comments above the command, not between its lines",
    "empty": "take the empty line out of the command",
    "line": "end the line with a backslash",
}


def breaks_the_command(context: RunContext) -> bool:
    """In a page a blank is a slip that no reader sees; a comment behind a backslash makes it a sketch of a command."""
    launch = context.run.launch
    if launch is None:
        return False
    if not is_page(launch.document.path):
        cuts = _cuts(launch.document, launch.place.span)
        return bool(cuts) and not _leftovers(launch.document, launch.place.span, cuts[0])
    cut = _cut_in_page(launch.document, launch.place.span)
    return cut is not None and cut[3] is not None


def check_run(context: RunContext) -> Iterator[Report]:
    launch = context.run.launch
    if launch is None:
        return
    document, span = launch.document, launch.place.span
    if is_page(document.path):
        yield from _in_page(document, span)
        return
    cuts = _cuts(document, span)
    if cuts:
        first = cuts[0]
        if _leftovers(document, span, first):
            yield _of_leftovers(document, span, first)
            return
        yield Report(
            Place(document, first.span),
            f"{_WHY[first.kind]}: {_lost(document, first.joint.end, span.end)} not reach it, and the shell takes what "
            "follows for a command of its own",
            fix=_joined(document, cuts),
            help=_HELP[first.kind],
        )


def _cuts(document: ShellDocument, span: Span) -> list[Cut]:
    return [cut for cut in document.cuts if span.start < cut.span.start < span.end and not _folded(document, cut)]


def _leftovers(document: Document, command: Span, cut: Cut) -> bool:
    """Whether all flags behind a cut are given before it: an edit left them there, and the command lacks none."""
    before = {flag.replace("_", "-") for flag in _flags(document, command.start, cut.span.start)}
    lost = _flags(document, cut.joint.end, command.end)
    return bool(lost) and all(flag.replace("_", "-") in before for flag in lost)


def _of_leftovers(document: Document, command: Span, cut: Cut) -> Report:
    return Report(
        Place(document, cut.span),
        f"{_WHY[cut.kind]}: {_lost(document, cut.joint.end, command.end)} not reach it, and the shell takes what "
        "follows for a command of its own; the command has all of them before, so it is what an edit left over",
        severity=Severity.INFO,
        help="delete the lines below, or take out what stands above",
    )


def _folded(document: Document, cut: Cut) -> bool:
    """Whether a line may go on without a backslash: YAML folds some of its texts."""
    return cut.kind == "line" and is_workflow(document.path)


def _joined(document: Document, cuts: Sequence[Cut]) -> Fix | None:
    """The fix that joins the lines; none where a comment parts some of them, which is not for a tool to take out."""
    if any(cut.kind == "comment" for cut in cuts):
        return None
    joints = {"blank": f"\\{document.file.newline}", "empty": "", "line": f" \\{document.file.newline}"}
    edits = [Edit(cut.joint, joints[cut.kind]) for cut in cuts]
    return spliced(document, "join the lines", Applicability.UNSAFE, edits)


def _cut_in_page(document: Document, command: Span) -> re.Match[str] | None:
    return _CUT_IN_PAGE.search(document.text, command.start, command.end)


def _in_page(document: Document, command: Span) -> Iterator[Report]:
    """A command of a page is read as it is meant; who copies it gets less."""
    cut = _cut_in_page(document, command)
    if cut is not None:
        blank = [Edit(Span(*cut.span(2)), "")]
        yield Report(
            Place(document, Span(*cut.span(1))),
            f"a blank behind this backslash ends the command for whoever copies it: "
            f"{_lost(document, cut.end(), command.end)} not reach it",
            severity=Severity.WARNING,
            fix=spliced(document, "take the blank away", Applicability.SAFE, blank) if cut[3] is None else None,
            help=_HELP["blank" if cut[3] is None else "comment"],
        )


def _flags(document: Document, start: int, end: int) -> list[str]:
    """The flags of a stretch of a command, without those in comments."""
    flags = []
    for line in document.text[start:end].splitlines():
        if not line.lstrip().startswith("#"):
            flags += re.findall(r"(?<!\S)(--?[A-Za-z][\w.-]*)", line)
    return flags


def _lost(document: Document, start: int, end: int) -> str:
    """The flags behind a cut, as far as the command goes on."""
    flags = _flags(document, start, end)
    more = len(flags) - 1
    if more < 1:
        return f"{flags[0] if flags else 'its last words'} does"
    return f"{flags[0]} and {more} more {'flag' if more == 1 else 'flags'} do"
