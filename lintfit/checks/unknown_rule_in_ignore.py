from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents.directives import FILE_IGNORE, IGNORE, Directive, directives
from lintfit.documents.model import Edit, Span
from lintfit.findings.model import Applicability
from lintfit.options.rules_catalog import rule_names
from lintfit.settings.model import Place
from lintfit.suggest import is_typo, nearest

_OTHER_LINTERS = ("noqa", "disable", "enable", "skip", "ignore-file", "disable-file", "disable-line", "nolint", "off")
"""Words by which other tools silence findings (ruff, yamllint, tflint, golangci-lint, actionlint's users ask for)."""

MOST_OF_A_FILE = 200
"""A file may have a thousand comments with hundreds of names each: the first tell how such names are written."""

_MOST_COMPARED = 20
"""Unknown names of a file that are compared with those of all rules, which takes a millisecond each: nobody misspells
more of them, and a file may have thousands that are none."""


def check_file(context: FileContext) -> Iterator[Report]:
    compared: dict[str, str | None] = {}
    for directive in directives(context.document):
        if not directive.silences:
            yield from _word(directive)
        elif not directive.names:
            message = f'"lintfit: {directive.word}" names no rule: it silences nothing'
            advice = f"say which: {directive.word}[rule-name]; `exclude` in lintfit.toml passes over a whole file"
            yield Report(Place(directive.document, directive.word_span), message, help=advice)
        else:
            yield from _names(directive, compared)


def _word(directive: Directive) -> Iterator[Report]:
    meant = nearest(directive.word, (IGNORE, FILE_IGNORE))
    if meant is None and directive.word.casefold() not in _OTHER_LINTERS:
        return
    yield _report(
        directive,
        directive.word_span,
        f'there is no comment "lintfit: {directive.word}": it silences nothing',
        meant,
        "write ignore[rule-name] for a line, file-ignore[rule-name] for the file",
    )


def _names(directive: Directive, compared: dict[str, str | None]) -> Iterator[Report]:
    """``compared``: what the names of the file so far may be meant for."""
    known = rule_names()
    for name, span in directive.names or ():
        if name.casefold() in known:
            continue
        if name not in compared and len(compared) < _MOST_COMPARED:
            compared[name] = nearest(name, known)
        meant = compared.get(name)
        yield _report(
            directive,
            span,
            f'there is no rule "{name}": the comment silences nothing by it',
            meant.upper() if meant is not None and meant not in known.values() else meant,
            "`lintfit rule` lists the rules",
        )


def _report(directive: Directive, span: Span, message: str, meant: str | None, advice: str) -> Report:
    document = directive.document
    if meant is None:
        return Report(Place(document, span), message, help=advice)
    sure = Applicability.SAFE if is_typo(document.slice(span), meant) else Applicability.DISPLAY
    fix = spliced(document, f"did you mean {meant}?", sure, [Edit(span, meant)])
    return Report(Place(document, span), message, fix=fix)
