"""Whether anything of the tree starts a run, or hands a config to one."""

from __future__ import annotations

from lintfit.checks.helpers.context import FileContext
from lintfit.documents.markdown import is_page
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.run.model import Run


def leads_to(run: Run) -> bool:
    """Whether a launch line leads to a run; the cells of a notebook, and files that the user puts together, are one."""
    return run.says("a launch leads to it", lambda: run.launch is not None or _is_put_together(run))


def is_used(run: Run) -> bool:
    """Whether a launch, a recipe or a script has the run's config by what it says, and not by where it lies alone."""
    return run.says("its config is used", lambda: _is_put_together(run) or _has_config(run))


def _is_put_together(run: Run) -> bool:
    return run.origin.in_notebook or bool(run.origin.partners)


def _has_config(run: Run) -> bool:
    return run.origin.kind != "config" and run.joined is None


def starts_as_it_is(run: Run) -> bool:
    """Whether a launch line that is no page's starts a run, or its script starts without more being said: nothing that
    its parser asks for is left out, and no name of a model is left to be filled in."""
    if run.launch is not None and not is_page(run.launch.document.path):
        return True
    if run.script is None or run.origin.named or _is_put_together(run):
        return True
    return run.says("it starts as it is", lambda: not _lacks_words(run) and not _model_to_fill_in(run))


def _lacks_words(run: Run) -> bool:
    """Whether the parser of a script asks for flags that are not given, or nobody can tell."""
    assert run.script is not None
    walk = run.script.walk
    if not walk.parses:
        return False
    from lintfit.sources.flag_grammars.model import given_flags
    from lintfit.sources.flag_grammars.scripts import parsers_of

    parsers = [*parsers_of(walk, run.versions)]
    given = [each for _, each in given_flags(run.launch)] if run.launch is not None else []
    return not parsers or any(each.grammar.lacking(given) for each in parsers)


def _model_to_fill_in(run: Run) -> bool:
    model = run.settings.get("model")
    return run.launch is None and model is not None and isinstance(model.value, str) and is_to_fill_in(model.value)


def is_handed_on(context: FileContext) -> bool:
    """Whether anything hands a document on to a run (:func:`is_used`), or the user asks about it by its name."""
    return context.named or any(map(is_used, context.runs))
