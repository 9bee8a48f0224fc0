"""What a run says to those who put the runs of a tree together: each a plain value, which is kept with the run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lintfit.documents.model import DataDocument, Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.frozen import word_set
from lintfit.run.model import Run
from lintfit.sources.recipes.front_ends import is_front_end
from lintfit.sources.script.prefilter import may_train

_TRAINS = lazy_pattern(
    r"(?<!model)\.train\b|\.train\([^)\s]|\.(?:fit|learn|inner_training_loop|hyperparameter_search)\b"
)
_ASKS = lazy_pattern(r"\.(?:evaluate|predict)\(")
"""What a script does with a Trainer, and what it does with one that is to train nothing; ``model.train()`` is the mode
of an ``nn.Module``."""


def trains(run: Run) -> bool:
    """Whether a launch line's run is a training: where the line does not tell, the script or the recipe does."""
    return run.says("trains", lambda: _is_training(run))


def _is_training(run: Run) -> bool:
    if run.recipe is not None and not run.recipe.trains and not run.broken:
        return False
    if run.launch is None or run.broken:
        return True
    if run.launch.sure:
        return not (_only_runs_a_model(run) or _only_asks_trainer(run) or _is_commented_out(run))
    if run.recipe is not None and is_front_end(run.recipe.dialect):
        return True
    return run.script is not None and run.script.facts.trains and not _only_evaluates(run)


def _only_runs_a_model(run: Run) -> bool:
    """Whether a script that is read loads a model and does nothing that a training does, in any of its files."""
    if run.script is None or run.script.facts.trains or not run.script.facts.loads:
        return False
    return not any(may_train(document.text) for document in run.documents if document.kind is Kind.PYTHON)


def _only_asks_trainer(run: Run) -> bool:
    """Whether a script makes a Trainer, has it evaluate or predict, and nothing in any of its files has one train."""
    if run.script is None or run.script.facts.trainer is None or not _ASKS.search(run.script.document.text):
        return False
    return not any(_TRAINS.search(document.text) for document in run.documents if document.kind is Kind.PYTHON)


_COMMENT = lazy_pattern(r"^[ \t]*#.*$", re.MULTILINE)
_OUT = lazy_pattern(r"^[ \t]*#[# \t]*(?:[\w.]*trainer\w*\.train\(|\w+[ \t]*=[ \t]*[\w.]*Trainer\()", re.MULTILINE)
_STEPS = lazy_pattern(
    r"Trainer\w*\(|(?<!model)\.train\b|\.train\([^)\s]|\.backward\b|\.(?:step|fit|learn|train_batch)\("
    r"|\.(?:inner_training_loop|hyperparameter_search)\b|\brun_(?:exp|training)\b"
)
_ASKED = lazy_pattern(
    r"(?<!def )\b((?!train_test_split)(?:(?:run|do|start|launch)_)?_?(?:pre)?(?:train|fine_?tune|sft)(?:ing|_\w+)?)\("
)
"""A function by whose name it trains: one that the run's own files define is read there."""


def _is_commented_out(run: Run) -> bool:
    """Whether all that trains in a script is commented out (``# trainer.train()``), and no file of the run trains."""
    if run.script is None or run.script.facts.trains or not _OUT.search(run.script.document.text):
        return False
    texts = [_COMMENT.sub("", document.text) for document in run.documents if document.kind is Kind.PYTHON]
    if any(_STEPS.search(text) for text in texts):
        return False
    asked = {name for text in texts for name in _ASKED.findall(text)}
    return all(any(re.search(rf"\bdef {name}\(", text) for text in texts) for name in asked)


def _only_evaluates(run: Run) -> bool:
    """Whether a script that trains where ``do_train`` is set is started for an evaluation alone."""
    from lintfit.sources.launchers.training_commands import only_evaluates

    if run.launch is None or not only_evaluates(run.launch.invocation):
        return False
    return any(".do_train" in document.text for document in run.documents if document.kind is Kind.PYTHON)


_HANDBOOK = word_set("""
    auto_insert_empty_system_msg base_model_revision chat_template dataset_configs dataset_mixer dataset_mixture
    dataset_splits decontaminate model_code_revision preprocessing_num_workers text_column torch_dtype truncation_side
    use_flash_attention_2
    """)
"""Keys of alignment-handbook's own dataclasses (``src/alignment/configs.py``), whose scripts train as TRL's command."""


_AS_TRL = frozenset({"alignment", "open_r1"})
"""Packages whose scripts hand what they declare beside TRL's classes to its trainers (alignment-handbook, open-r1)."""


def is_for_the_tree(run: Run, workspace: Workspace) -> bool:
    """Whether a recipe without a launch line has mostly keys that its front end refuses, or is taken for TRL's and is
    for a trainer of the tree's own, or has keys that only a dataclass of the tree has: what its script trains by them,
    TRL's command does not."""
    if run.says("keys of another program", lambda: _is_mostly_refused(run)):
        return True
    asks = run.says("keys for a trainer of the tree's own", lambda: _not_of_trl(run))
    if asks is None:
        return False
    from lintfit.run.key_reads import key_reads

    name, keys = asks
    reads, path = key_reads(workspace), Path(name)
    if reads.trained_otherwise(path):
        return True
    found = (reads.declared(path, key) for key in keys if key not in _HANDBOOK)
    return any(places and all(_AS_TRL.isdisjoint(place.parts) for place in places) for places in found)


def _is_mostly_refused(run: Run) -> bool:
    """Whether a recipe that is only assumed to be a front end's has more keys that no release of it knows than others
    (``stage: prune`` beside ``sparsity``): another program reads it."""
    document = run.recipe.document if run.recipe is not None and run.usual_command is not None else None
    if run.recipe is None or not isinstance(document, DataDocument) or document.root is None:
        return False
    unknown = [each for each in run.recipe.refused if each.key and each.refusal.unrecognized and each.history is None]
    return 2 * len(unknown) > len(document.root.entries)


def _not_of_trl(run: Run) -> tuple[str, Sequence[str]] | None:
    """The path of a recipe that is taken for TRL's, with its keys that are none of TRL's; None for another run."""
    recipe = run.recipe
    if recipe is None or recipe.dialect != "trl" or not isinstance(recipe.document, DataDocument):
        return None
    from lintfit.sources.recipes.trl_recipe import TrlRecipe

    return str(recipe.document.path), [*(recipe.not_of_trl if isinstance(recipe, TrlRecipe) else ())]


def has_script_that_trains(run: Run) -> bool:
    """Whether a script is read, and trains."""
    return run.says("script trains", lambda: run.script is not None and run.script.facts.trains)


def is_read(run: Run) -> bool:
    """Whether there is a script or a recipe that says how it trains."""
    return run.says("is read", lambda: run.training is not None)


def trainings(run: Run) -> int:
    """How many trainings its script has, one after the other."""
    return run.says("trainings", lambda: run.script.trainings if run.script is not None else 0)


def starts_own_script(run: Run) -> bool:
    """Whether a command of a docstring trains with the script that it stands in, and all that it names is there."""
    return run.says("starts own script", lambda: _starts_own_script(run))


def _starts_own_script(run: Run) -> bool:
    if run.script is None or run.broken or any(each.certainty != "open" for each in run.missing):
        return False
    own = run.script.document.path == run.origin.path and run.script.facts.trains
    return own and not _is_usage(run) and not _only_evaluates(run)


def _is_usage(run: Run) -> bool:
    """Whether a command shows how a script is called and not what it is given: its flags are all to be filled in."""
    flags = run.launch.flags if run.launch is not None else ()
    return bool(flags) and all((flag.value or "").startswith("$") for flag in flags)
