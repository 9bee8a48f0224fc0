"""Finds the modules of rules and runs them, importing only what the files at hand need.

A rule's module has the name of its page with underscores and defines ``check_file``, ``check_run`` or both;
``check_unused`` is asked last, when it is known which comments have silenced something. One about launch lines may
define ``breaks_the_command``: whether what it reports makes a run another than the one that was meant.
``OF_THE_FILES_ALONE = True`` says of a rule that what it reports of such a run holds all the same.

``AFTER_TRAINING = True`` says of a rule that a run with its error trains, and stops when it is done.

``MAY_STOP = True`` says of a rule that a run may well stop with what it reports as information: plans take it for an
error.

``OF_LAUNCHES = True`` says of a rule that what it reports is information where no launch leads to the run, and
``OF_HANDED_ON = True`` where a config is handed to nothing by any launch, recipe or script.

``MOST_OF_A_FILE`` says how many findings on one document are reported, of a rule of which fewer than usual tell all.

``DECIDED_BY`` names the settings that make what a rule reports of a run true. Where a script on its own has one of them
from its parser's default, nobody may ever train with it: what is reported is information.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import tee
from types import ModuleType

from lintfit.boundary import Apart, to_the_end
from lintfit.checks.helpers.context import FileContext, Report, RunContext, UnusedContext
from lintfit.checks.helpers.launched import is_handed_on, is_used, leads_to
from lintfit.checks.helpers.readers import takes_effect
from lintfit.findings.model import Applicability, Finding, Fix, Severity
from lintfit.frozen import replace
from lintfit.options.rules_catalog import Rule, load_rules
from lintfit.run.model import Run
from lintfit.run.stopping import refuses_its_command, takes_no_arguments
from lintfit.sources.base import Source

Enabled = Callable[[Rule], bool]
"""Whether a rule is wanted: ``--select``, ``--ignore`` and the config decide."""


def module_of(name: str) -> ModuleType:
    """The module of the rule with this name. Raises ModuleNotFoundError where there is a page and no module."""
    return import_module(f"lintfit.checks.{name.replace('-', '_')}")


@cache
def _wanted(dialects: frozenset[str]) -> tuple[Rule, ...]:
    return tuple(rule for rule in load_rules().values() if "any" in rule.files or not dialects.isdisjoint(rule.files))


def rules_for(dialects: Collection[str], enabled: Enabled | None = None) -> list[tuple[Rule, ModuleType]]:
    """The rules that concern documents of these dialects, each with its module, in the order of the pages."""
    if enabled is None:
        return [*_with_modules(frozenset(dialects))]
    return [(rule, module_of(rule.name)) for rule in _wanted(frozenset(dialects)) if enabled(rule)]


@cache
def _with_modules(dialects: frozenset[str]) -> tuple[tuple[Rule, ModuleType], ...]:
    return tuple((rule, module_of(rule.name)) for rule in _wanted(dialects))


def run_file_checks(
    context: FileContext, enabled: Enabled | None = None, apart: Apart = to_the_end
) -> Iterator[Finding]:
    """What the rules say of one document on its own.

    What stands in a part of it that takes effect in none of its runs is not spoken of.

    A document whose syntax is broken has no source; the rules of its dialect still see it, by its kind. Where a rule
    fails, ``apart`` says whether the others are still asked.
    """
    dialect = context.source.dialect if context.source else _DIALECT_OF_KIND.get(context.document.kind.value, "")
    for rule, module in rules_for({dialect}, enabled):
        check = getattr(module, "check_file", None)
        if check is not None:
            with apart(context.document.path.as_posix()):
                for report in _first(check(context), _most(module)):
                    if takes_effect(context, report.place):
                        unused = getattr(module, "OF_HANDED_ON", False) and not is_handed_on(context)
                        yield _finding(rule, _as_known(rule, report, _UNUSED) if unused else report, None)


MOST_REPORTS = 2000
"""Findings of one rule on one document that are reported; the last of them says that there are more."""
_LONGEST = 1000
"""Characters of a message: a file may have keys and words of any length."""


def _most(module: ModuleType) -> int:
    most: int = getattr(module, "MOST_OF_A_FILE", MOST_REPORTS)
    return most


def _first(reports: Iterable[Report], most: int) -> Iterator[Report]:
    for index, report in enumerate(reports):
        if index == most:
            yield replace(report, message=f"{report.message} (and more of its kind that are not listed)", fix=None)
            return
        yield report


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_DIALECT_OF_KIND = {"json": "deepspeed", "yaml": "accelerate", "python": "script", "shell": "launcher"}


def run_run_checks(context: RunContext, enabled: Enabled | None = None, apart: Apart = to_the_end) -> Iterator[Finding]:
    """What the rules say of one run: its settings, its estimate and its plan.

    Where a command is not the one that somebody wrote, or its parser refuses what decides it (``breaks_the_command``),
    that is all: the rest would be said of another one than what runs. Where a run stops by another error before it has
    trained, its warnings are information: they are of a training that does not come before the error is mended. So is
    what becomes of the memory of a run whose parser refuses the command, which nobody has run as it stands.

    Where one of them fails, ``apart`` says whether the others are still asked.
    """
    found = list(_asked(context, enabled, apart))
    severe = {each.rule for each in found if each.severity is Severity.ERROR}
    waiting = [each for each in found if _waits(each, context.run)] if severe else []
    stops = severe & _stopping(context.run) if waiting else set()
    yield from (_in_waiting(each, min(stops)) if stops and each in waiting else each for each in found)


def _asked(context: RunContext, enabled: Enabled | None, apart: Apart, *, as_started: bool = True) -> Iterator[Finding]:
    """``as_started``: what counts only for what is started is information where nothing starts the run; else what may
    stop it is an error, too."""
    run = context.run
    rules = rules_for(_dialects(run), enabled)
    with apart(run.id):
        if any(_breaks(module, context) for _, module in rules):
            rules = [(rule, module) for rule, module in rules if _holds_all_the_same(module)]
    yield from _of_run(rules, context, apart, as_started=as_started)


_VERDICT = "does-not-fit"
"""The rule that says that a run's memory does not suffice, which stands beside any error of its files."""


def _waits(finding: Finding, run: Run) -> bool:
    """Whether a finding is a warning of a training, or the verdict of its memory where its parser refuses the command;
    what ``--fix`` mends along with the error is no reason to wait, but it mends no command."""
    if finding.rule == _VERDICT:
        return finding.severity is not Severity.INFO and refuses_its_command(run)
    if finding.severity is not Severity.WARNING:
        return False
    mended = finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    return not mended or refuses_its_command(run)


def _stopping(run: Run) -> set[str]:
    """The rules with errors that a run stops with before it has trained."""
    return {name for name in errors_of(run) if not getattr(module_of(name), "AFTER_TRAINING", False)}


def _in_waiting(finding: Finding, stop: str) -> Finding:
    message = f"{finding.message} (the run stops before that: {stop})"
    return replace(finding, severity=Severity.INFO, message=message, fix=_of_weight(finding.fix, Severity.INFO))


def breaks_the_command(context: RunContext) -> bool:
    """Whether a run's command is not the one that somebody wrote, or its parser refuses it, or the trainer a keyword:
    it gets no plan."""
    stops = refuses_its_command(context.run) or takes_no_arguments(context.run) is not None
    return stops or any(_breaks(module, context) for _, module in rules_for(_dialects(context.run)))


def errors_of(run: Run) -> dict[str, Finding]:
    """The errors that a run stops with, or may well stop with, whatever its memory and however it is started: what each
    rule says of it first."""
    said = _asked(RunContext(run, None), None, to_the_end, as_started=False)
    found = [each for each in said if each.severity is Severity.ERROR]
    return {each.rule: each for each in reversed(found)}


def _dialects(run: Run) -> set[str]:
    """What must be there of a run for rules to be asked."""
    present: dict[str, Source | None] = {
        "deepspeed": run.deepspeed,
        "accelerate": run.accelerate,
        "training": run.training,
        "script": run.script,
        "launcher": run.launch,
    }
    if run.recipe is not None:
        present[run.recipe.dialect] = run.recipe
    return {name for name, source in present.items() if source is not None}


def _breaks(module: ModuleType, context: RunContext) -> bool:
    breaks = getattr(module, "breaks_the_command", None)
    return breaks is not None and breaks(context)


def _holds_all_the_same(module: ModuleType) -> bool:
    return hasattr(module, "breaks_the_command") or getattr(module, "OF_THE_FILES_ALONE", False)


def _of_run(
    rules: Iterable[tuple[Rule, ModuleType]], context: RunContext, apart: Apart, *, as_started: bool
) -> Iterator[Finding]:
    for rule, module in rules:
        check = getattr(module, "check_run", None)
        if check is not None:
            with apart(context.run.id):
                for report in check(context):
                    names = report.decided_by or getattr(module, "DECIDED_BY", ())
                    told = _of_defaults(report, context.run, names)
                    if as_started:
                        told = _of_start(rule, module, told, context.run)
                    elif getattr(module, "MAY_STOP", False) and told.severity is not Severity.INFO:
                        told = replace(told, severity=Severity.ERROR)
                    yield _finding(rule, told, context.run.id)


def _of_defaults(report: Report, run: Run, names: Collection[str]) -> Report:
    """A report as information where a default of the script makes it, which a command line may take the place of."""
    if not any(run.by_default(name) for name in names):
        return report
    return replace(report, severity=Severity.INFO, message=f"{report.message} ({_UNSEEN})")


_UNSEEN = "by the script's defaults: no launch line is known"
_NOT_LED_TO = "no launch line leads to it"
_UNUSED = "nothing is seen to be started with this config"


def _of_start(rule: Rule, module: ModuleType, report: Report, run: Run) -> Report:
    """A report as information where it counts only for what is started, and nothing starts it."""
    if getattr(module, "OF_LAUNCHES", False) and not leads_to(run):
        return _as_known(rule, report, _NOT_LED_TO)
    if getattr(module, "OF_HANDED_ON", False) and not is_used(run):
        return _as_known(rule, report, _UNUSED)
    return report


def _as_known(rule: Rule, report: Report, why: str) -> Report:
    severity = rule.severity if report.severity is None else report.severity
    if severity is Severity.INFO:
        return report
    return replace(report, severity=Severity.INFO, message=f"{report.message} ({why})")


def run_unused_checks(contexts: Iterable[UnusedContext], enabled: Enabled | None = None) -> Iterator[Finding]:
    """What the rules say of the comments of one document that silence nothing."""
    asked = [(rule, module) for rule, module in rules_for((), enabled) if hasattr(module, "check_unused")]
    for (rule, module), own in zip(asked, tee(contexts, len(asked)), strict=True):
        for report in _first((report for context in own for report in module.check_unused(context)), _most(module)):
            yield _finding(rule, report, None)


def _finding(rule: Rule, report: Report, run: str | None) -> Finding:
    severity = rule.severity if report.severity is None else report.severity
    return Finding(
        rule=rule.name,
        code=rule.code,
        severity=severity,
        message=_bounded(report.message),
        place=report.place,
        related=report.related,
        run=run,
        fix=_of_weight(report.fix, severity),
        help=_bounded(report.help),
    )


def _of_weight(fix: Fix | None, severity: Severity) -> Fix | None:
    """The fix of a finding of this severity, whatever the user makes of that: information rewrites no file unasked."""
    if fix is None or severity is not Severity.INFO or fix.applicability is not Applicability.SAFE:
        return fix
    return replace(fix, applicability=Applicability.UNSAFE, caution="nothing here has to be mended")
