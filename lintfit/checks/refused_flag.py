from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lintfit.checks import bare_optional_flag
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.moves import is_nothing
from lintfit.checks.helpers.recipes import left_blank
from lintfit.documents.markdown import is_page
from lintfit.documents.model import DataDocument, Node
from lintfit.findings.model import Severity
from lintfit.run.model import Run
from lintfit.run.stopping import stops_at_import
from lintfit.run.versions import range_of
from lintfit.sources.flag_grammars.model import HUGGING_FACE, Refused


def breaks_the_command(context: RunContext) -> bool:
    return any(each.decides for each in context.run.refused)


def check_run(context: RunContext) -> Iterator[Report]:
    if not context.run.refused:
        return
    stop = stops_at_import(context.run)
    said = {report.place.span for report in bare_optional_flag.check_run(context)}
    for each in context.run.refused:
        if each.blanks:
            yield left_blank(each.place, each.blanks, f"the run stops with “{each.error}”")
        elif each.place.span not in said:
            before = stop if not _is_launchers(each, context.run) else None
            later = before is not None or _is_met_later(each, context.run.refused)
            message = _message(each, context.run.versions, later)
            if each.fork:
                message += f"; the project's own copy of {each.fork} may have it"
            if before is not None:
                message += f" (it stops before that: {before})"
            # With which command a recipe is started that nothing starts is only assumed.
            surely = each.stops and not each.ignored and not each.newer and context.run.usual_command is None
            surely = surely and not _is_of_another(each, context.run)
            idle = later or _is_left_blank(each, context.run) or bool(each.fork) or _is_own_form(context.run)
            lost = Severity.INFO if idle or _costs_nothing(each) else Severity.WARNING
            yield Report(each.place, message, None if surely and not idle else lost, help=_help(each))


_MANY = 2
"""Keys that no front end knows, from which on a recipe that nothing starts is likely in a form of its author's."""


def _is_own_form(run: Run) -> bool:
    """Whether a recipe that nothing starts has several keys that its front end does not know, unlike any that it
    does (``framework: ms-swift``): its author keeps notes in it, or a program of the project's own reads it."""
    if run.usual_command is None:
        return False
    unknown = (each for each in run.refused if each.key and not each.ignored and each.history is None)
    return sum(each.refusal.meant is None for each in unknown) >= _MANY


_TRACKERS = ("comet_", "mlflow_", "swanlab_", "trackio_", "wandb_")
"""How the keys begin that say where a run is logged, and change nothing in its training."""


def _costs_nothing(each: Refused) -> bool:
    """Whether nothing is lost by a key that its parser passes over: it says where the run is logged, asks for nothing,
    for the default in so many words, or another key has its very words (``dataset_name`` beside
    ``dataset_id_or_path``)."""
    if not each.ignored or each.name.startswith(_TRACKERS):
        return each.ignored
    root = each.place.document.root if isinstance(each.place.document, DataDocument) else None
    found = root.get(each.name) if root is not None else None
    if root is None or found is None:
        return False
    if _is_default_by_name(found):
        return True
    if is_nothing(found, {}) or found.value == "auto":
        return each.refusal.meant is None or found.value is None
    others = (entry.value.value for entry in root.entries if entry.key != each.name)
    return isinstance(found.value, str) and "/" in found.value and found.value in others


def _is_default_by_name(value: Node) -> bool:
    """Whether a value is the word "default", or a list of that alone (``dataset_configs: [default]``)."""
    if value.shape == "scalar":
        return bool(value.value == "default")
    words = [item.value for _, item in value.walk() if item.shape == "scalar"] if value.shape == "sequence" else []
    return bool(words) and all(word == "default" for word in words)


def _is_met_later(each: Refused, others: Sequence[Refused]) -> bool:
    """Whether a parser stops at another flag of the command before it comes to this one."""
    of_one = [other for other in others if other.parser == each.parser and not other.key]
    return not each.key and any(_turn(other) < _turn(each) for other in of_one)


def _is_left_blank(each: Refused, run: Run) -> bool:
    """Whether a flag has no value in a command in which others have an empty one (``--model ' '``), which who hands it
    on has taken out for its reader to fill in."""
    flags = run.launch.flags if run.launch is not None and not each.key else ()
    blank = (flag.value is not None and not flag.value.strip() for flag in flags)
    return each.refusal.lacks_value and any(blank)


def _is_of_another(each: Refused, run: Run) -> bool:
    """Whether a page's command has several flags that its script does not know, and none like one that it does: the
    page tells of another state of the script, planned or past."""
    if each.key or not is_page(each.place.document.path) or not each.refusal.unrecognized or _is_launchers(each, run):
        return False
    unknown = [other for other in run.refused if other.parser == each.parser and other.refusal.unrecognized]
    return run.script is not None and len(unknown) > 1 and all(other.refusal.meant is None for other in unknown)


def _is_launchers(each: Refused, run: Run) -> bool:
    """Whether the launcher refuses it, before there is a script."""
    return run.launch is not None and each.parser.startswith(run.launch.launcher)


def _turn(each: Refused) -> tuple[int, int]:
    """When argparse complains of a flag (Python 3.13, ``_parse_known_args``): it looks up all options before it takes
    the words of one after the other, and those that it does not know are one error in the end."""
    if each.refusal.unrecognized:
        return 2, 0
    return int(each.refusal.by_value), each.place.span.start


def _message(each: Refused, versions: Mapping[str, str], later: bool) -> str:
    if each.until is not None:
        whose = f"{each.parser} of TRL {each.until} and later"
        return f"{whose} refuses {each.name}: the run stops with “{each.error}”{_meant(each)}"
    if each.ignored:
        why = f"no dataclass of {each.parser} has" if each.parser in HUGGING_FACE else f"{each.parser} does not read"
        return f'{why} "{each.name}": the key is ignored, and the default stands{_meant(each)}'
    if each.unmade:
        return f"add_argument takes no {each.unmade} for {each.name}: the run stops with TypeError “{each.error}”"
    if each.twice and each.parser not in HUGGING_FACE:
        return f"the parser has {each.name} already: the run stops with ArgumentError “{each.error}”"
    if each.twice:
        return f"two dataclasses of {each.parser} have {each.name}: the run stops with ArgumentError “{each.error}”"
    if each.newer:
        by = " and ".join(f"{library} {range_of(versions, library)}" for library in each.newer)
        return f"newer releases of {by} refuse {each.name}: the run stops with “{each.error}”"
    by = " and ".join(f"{library} {range_of(versions, library)}" for library in each.decided_by)
    added = f", which {each.added_by} adds" if each.added_by is not None else ""
    whose = f"{each.parser}{f' of {by}' if by else ''} refuses {each.name}{added}"
    stops = "then stops with" if later else "stops with"
    ends = stops if each.stops else "goes on without it, and then ends with"
    return f"{whose}: the run {ends} “{each.error}”{_meant(each)}"


def _meant(each: Refused) -> str:
    """What was meant, or which release takes what is written."""
    if each.history is not None:
        return f"; {each.history}"
    return f"; did you mean {each.refusal.meant}?" if each.refusal.meant is not None else ""


def _help(each: Refused) -> str:
    if each.unmade:
        return f"take {each.unmade} out"
    if each.twice:
        return f"declare {each.name} {'in one of them alone' if each.parser in HUGGING_FACE else 'once'}"
    if each.refusal.unrecognized and each.lacking:
        return f"take {each.name} out, or declare it, and give {' and '.join(each.lacking)}"
    if each.added_by is not None:
        return f"declare {each.name}, or give {each.added_by} --no_local_rank"
    if each.history is not None:
        return f"take {each.name} out, or install that release"
    if each.refusal.meant is not None:
        return f"write {each.refusal.meant}"
    if each.until is not None:
        return f"take {each.name} out, declare it, or pass fail_with_unknown_args=False"
    if each.refusal.ambiguous:
        return "write the flag in full"
    return "give it a value that it takes" if each.refusal.by_value else f"take {each.name} out, or declare it"
