"""``lintfit fit``: from files or a spec to the plans that are printed, shown as a diff or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit import __version__
from lintfit.boundary import Mistakes
from lintfit.checks.helpers.context import RunContext
from lintfit.checks.helpers.registry import breaks_the_command, errors_of
from lintfit.checks.helpers.runs import VISIBLE, starts_too_many, too_few_shown
from lintfit.commands.done import Done
from lintfit.commands.specs import Estimated, estimate_mapping, read_specs
from lintfit.documents.edits import shown_diff
from lintfit.documents.steps import of_tree
from lintfit.documents.workspace import Workspace
from lintfit.errors import LintfitError
from lintfit.findings.model import Plan
from lintfit.findings.results import RunResult
from lintfit.fit.alternatives import Alternatives, alternatives, written
from lintfit.fit.applying import Shown
from lintfit.fit.confirm import text_of, texts_after
from lintfit.fit.extremes import Goal, extremes, limit_of
from lintfit.fit.feasibility import Feasibility
from lintfit.fit.figures import Extreme, Figure
from lintfit.fit.options import Effect, Subject, run_of
from lintfit.fit.search import Search
from lintfit.fit.space import Space
from lintfit.frozen import field, frozen, replace
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.options.model import Options
from lintfit.report import View, shown_path
from lintfit.report.encoding import SCHEMA_VERSION, dumps
from lintfit.report.figures import WORDS
from lintfit.report.json import plain, plan_json, run_json
from lintfit.report.plans import extreme_lines, run_plans
from lintfit.report.styled import show_blocks
from lintfit.settings.model import in_words
from lintfit.verdict.judge import judge


@frozen
class Asked:
    """What to look for and what to do with it. ``diff`` and ``apply`` are numbers of plans as they are listed."""

    goal: Goal | None = None
    diff: int | None = None
    apply: int | None = None
    output_format: str = "text"
    view: View = field(default_factory=View)


@frozen(eq=False)
class Answer:
    """One run with its plans (the first is number ``start``), or the answers to the opposite question."""

    result: RunResult
    start: int
    plans: tuple[Plan, ...] = ()
    found: Alternatives | None = None
    extremes: tuple[Extreme, ...] = ()
    unknown: str = ""


def of_paths(paths: Sequence[Path], options: Options, asked: Asked) -> Done:
    """The plans of the runs in some files."""
    if asked.apply is None:
        return _of_paths(paths, options, asked)
    from lintfit.documents.locks import locked
    from lintfit.options.roots import roots_of

    with locked(roots_of(paths, options)):
        return _of_paths(paths, options, asked)


def _of_paths(paths: Sequence[Path], options: Options, asked: Asked) -> Done:
    from lintfit.commands import check

    workspace = check.new_workspace(paths, options)
    loaded, runs = check.load_runs(paths, options, workspace)
    return _done(runs, options, asked, loaded.errors, workspace)


def of_specs(source: str, options: Options, asked: Asked) -> Done:
    """The plans of the runs that a JSON file describes; nothing of them can be written."""
    mappings, _ = read_specs(source)
    results = [estimate_mapping(mapping) for mapping in mappings]
    errors = tuple(f"spec {n}: {result.error}" for n, result in enumerate(results, 1) if result.spec is None)
    runs = tuple(_judged(result, n, options) for n, result in enumerate(results, 1) if result.spec is not None)
    return _done(runs, options, asked, errors, Workspace())


def of_flags(flags: Mapping[str, str], options: Options, asked: Asked) -> Done:
    """The plans of a run that flags describe. Raises LintfitError in the words of the flags."""
    from lintfit.commands.described import described
    from lintfit.options.config import config_for

    options = config_for(Path(), options)
    result = described(options, flags)
    assert result.spec is not None
    run = replace(run_of(result.spec), options=options)
    return _done((RunResult.of(judge(run)),), options, asked, (), Workspace())


def _judged(result: Estimated, number: int, options: Options) -> RunResult:
    assert result.spec is not None
    return RunResult.of(judge(replace(run_of(result.spec), id=f"spec {number}", options=options)))


def _done(
    runs: Sequence[RunResult], options: Options, asked: Asked, errors: tuple[str, ...], workspace: Workspace
) -> Done:
    answers: list[Answer] = []
    start = 1
    mistakes = Mistakes()
    for result in runs:
        with mistakes.end_at(result.run.id), workspace.apart(of_tree()):
            answers.append(_answer(result, start, workspace, options, asked))
            start += len(answers[-1].plans)
    errors = (*errors, *mistakes.lines)
    status = 2 if errors else int(any(_open(answer) for answer in answers))
    chosen = asked.apply if asked.apply is not None else asked.diff
    if chosen is not None:
        plan = _numbered(answers, chosen)
        return Done(_write(plan, chosen, workspace, asked), errors, 2 if errors else 0)
    if asked.output_format == "json":
        content = [_json(answer, asked) for answer in answers]
        head = {"schema_version": SCHEMA_VERSION, "lintfit_version": __version__}
        return Done(dumps({**head, "runs": content}), errors, status)
    text = show_blocks([_lines(answer, asked.view) for answer in answers], asked.view)
    return Done(text or ("" if errors else "No runs found.\n"), errors, status)


def _answer(result: RunResult, start: int, workspace: Workspace, options: Options, asked: Asked) -> Answer:
    unknown = _unknown(result)
    if unknown:
        return Answer(result, start, unknown=unknown)
    run = result.run
    if asked.goal is None:
        found = alternatives(run, workspace, options, stops=errors_of)
        return Answer(result, start, found.plans, found)
    answers = extremes(run, asked.goal)
    assert run.spec is not None
    search = Search(Space(Subject(run, run.spec), Effect.SAME), run.options.margin)
    fitting = [answer.fitting for answer in answers if answer.fitting is not None]
    pen = Feasibility(run, workspace, options, errors_of)
    plans = tuple(written(run, one, search, pen) for one in fitting)
    return Answer(result, start, plans, extremes=answers)


def _unknown(result: RunResult) -> str:
    """Why no plan can be made for a run; empty where one can."""
    run = result.run
    if run.spec is None:
        return f"memory unknown: add {', '.join(run.unknown) or 'what the run is'}"
    if run.spec.capacity_bytes is None:
        where = "--gpu, or gpu in lintfit.toml" if run.documents else "gpu or gpu_memory_gib in the spec"
        return f"no GPU named: add the GPU ({where})"
    if run.doubtful:
        names = in_words(run.doubtful)
        return f"no plan can be confirmed where it is not known what is set: {names}"
    open_count = run.count_open and result.verdict is not Verdict.FITS
    if result.beyond is not None and not result.beyond.by_settings:
        return f"no change of its settings makes it fit: {result.beyond.reason}"
    if (shown := too_few_shown(run)) is not None:
        return f"it starts more processes than the {shown} GPUs that {VISIBLE} shows: what fits is not known"
    if starts_too_many(run):
        return f"it starts more processes than the {run.hardware.available} GPUs that there are: what fits is not known"
    if breaks_the_command(RunContext(run, result.estimate)):
        return "its command is cut off or refused (lintfit check says where): it gets no plan before that is mended"
    return _no_verdict(result, run.spec) if result.verdict is Verdict.UNKNOWN or open_count else ""


def _no_verdict(result: RunResult, spec: Spec) -> str:
    """What decides about a run whose memory can be counted, and is not said."""
    run = result.run
    if run.unseen_flags and run.launch is not None:
        return "accelerate config on the machine decides the engine: name its file in the launch line (--config_file)"
    if run.unseen_flags:
        names = in_words(run.unseen_flags)
        return f"a command line that is not known decides {names}: name the launch script as well"
    if run.count_open:
        return "add the number of GPUs (--gpus, or gpus in lintfit.toml)"
    return f"nobody says how long the sequences are: add --seq-len, or seq-len in lintfit.toml ({spec.seq_len} assumed)"


def _open(answer: Answer) -> bool:
    """Whether a question stayed without an answer."""
    if answer.unknown:
        return True
    if answer.found is not None:
        return not (answer.found.fits or answer.plans)
    return all(extreme.best is None for extreme in answer.extremes)


def _lines(answer: Answer, view: View) -> list[Any]:
    from lintfit.report.heading import header
    from lintfit.report.styled import wrapped

    run = answer.result.run
    if answer.unknown:
        return [*header(run, view), *wrapped([("  ", "")], answer.unknown, view.width, 4, "note")]
    if answer.found is not None:
        return run_plans(answer.result, answer.found, view, answer.start)
    return extreme_lines(answer.result, answer.extremes, answer.plans, answer.start, view)


def _numbered(answers: Sequence[Answer], number: int) -> Plan:
    plans = [plan for answer in answers for plan in answer.plans]
    if not 1 <= number <= len(plans):
        there = f"there are {len(plans)}" if plans else "there is none"
        raise LintfitError(f"no plan {number}: {there}")
    plan = plans[number - 1]
    if isinstance(plan.by_hand, Shown):  # whoever picks it by its number has said what was for a person to say
        return replace(plan, fix=replace(plan.fix, edits=plan.by_hand.applied.edits))
    if not plan.fix.edits:
        raise LintfitError(f"plan {number} ({plan.name}) is to be carried out by hand: {plan.by_hand}")
    return plan


def _write(plan: Plan, number: int, workspace: Workspace, asked: Asked) -> str:
    """The diff of a plan; with ``--apply`` the files are written, all or none."""
    texts = texts_after(plan.fix.edits, workspace)
    diff = "".join(shown_diff(path, text_of(path, workspace), text) for path, text in texts.items())
    if asked.apply is None:
        return diff
    workspace.write(texts)
    names = ", ".join(shown_path(path) for path in texts)
    peak, capacity = plan.estimate.peak.high / 2**30, (plan.estimate.capacity_bytes or 0) / 2**30
    verdict = WORDS[plan.estimate.verdict]
    return f"Wrote plan {number} ({plan.name}) to {names}: {peak:.1f} of {capacity:.1f} GiB to plan for, {verdict}.\n"


def _json(answer: Answer, asked: Asked) -> dict[str, Any]:
    run = answer.result.run
    content = run_json(answer.result)
    content.pop("plan", None)
    if answer.unknown:
        return {**content, "unknown": answer.unknown}
    assert run.spec is not None
    limit = limit_of(run.spec, run.options.margin)
    plans = [{"number": n, **plan_json(plan)} for n, plan in enumerate(answer.plans, answer.start)]
    content = {**content, "limit_bytes": limit, "plans": plans}
    if answer.found is not None:
        found = answer.found
        return {**content, "fits": found.fits, "combinations": found.combinations, "shortfall": found.shortfall}
    return {**content, "goal": asked.goal, "answers": [_extreme_json(extreme) for extreme in answer.extremes]}


def _extreme_json(extreme: Extreme) -> Mapping[str, Any]:
    return {
        "question": extreme.question,
        "best": _figure_json(extreme.best),
        "beyond": _figure_json(extreme.beyond),
        "remark": extreme.remark,
    }


def _figure_json(figure: Figure | None) -> Mapping[str, Any] | None:
    if figure is None:
        return None
    return {
        "text": figure.text,
        "value": figure.value,
        "changes": plain(figure.changes),
        "estimate": figure.estimate.to_json(),
        "verdict": str(figure.estimate.verdict if figure.estimate.verdict is not Verdict.FITS else _host(figure)),
        "relative_step_time": figure.step_time,
        "effects": list(figure.notes),
    }


def _host(figure: Figure) -> Verdict:
    host = figure.estimate.host_capacity_bytes
    short = host is not None and figure.estimate.host.peak > host
    return Verdict.DOES_NOT_FIT if short else Verdict.FITS
