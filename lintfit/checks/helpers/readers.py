"""Which library reads the files of a run, and in which version."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Literal

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.trees import data_of
from lintfit.documents import door
from lintfit.documents.model import KeyPath, Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.shell_document import ShellDocument
from lintfit.findings.model import Severity
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.run.stopping import asks_for_two_engines, takes_no_arguments
from lintfit.schema.sections import Older, Schema
from lintfit.settings.model import Place
from lintfit.sources.accelerate import ENGINES
from lintfit.sources.script.model import Call
from lintfit.versions import COMMIT, FLOOR, before, library_of

Reader = Literal["transformers", "accelerate", "deepspeed"]
"""Who reads a DeepSpeed JSON: HF's Trainer, accelerate on its own, or ``deepspeed.initialize``."""
_OLD_PPO = frozenset({"ppo_epochs", "init_kl_coef", "adap_kl_ctrl", "log_with", "model_name"})
"""Arguments of the ``PPOConfig`` that TRL had before 0.12, which was no ``TrainingArguments``."""


def reader_of(runs: Iterable[Run]) -> Reader | None:
    """Who reads the DeepSpeed JSON of these runs; None where no script says so, or where they disagree."""
    readers = {run.says("reader", partial(_reader, run)) for run in runs}
    return readers.pop() if len(readers) == 1 else None


def _reader(run: Run) -> Reader | None:
    if run.script is None:
        # An Accelerate YAML is read under a Trainer and under a loop alike.
        return "transformers" if run.training is not None and run.training.uses_trainer else None
    if set_too_late(run):
        return None
    facts = run.script.facts
    arguments = facts.training_arguments
    if arguments is not None and arguments.name == "PPOConfig" and not _OLD_PPO.isdisjoint(arguments.arguments):
        return "accelerate"
    if facts.trainer is not None and facts.trainer.name in _BY_ACCELERATOR:
        return "accelerate"
    if arguments is not None or facts.trainer is not None:
        return "transformers"
    if run.accelerate is None and facts.initialize is not None and facts.initialize.name == "initialize":
        return "deepspeed"  # an Accelerator beside it gathers metrics at most
    if run.accelerate is None and _is_for_arguments(run):
        return None
    return "accelerate" if facts.accelerator is not None or run.accelerate is not None else None


def set_too_late(run: Run) -> bool:
    """Whether a script writes the name of a DeepSpeed JSON into arguments that are made already: only
    ``TrainingArguments.__post_init__`` opens it (transformers 4.46 and 5.23)."""
    made = run.script.reading.found.arguments if run.script is not None else None
    return made is not None and "deepspeed" in made.at_first and made.at_first["deepspeed"] is None


def _is_for_arguments(run: Run) -> bool:
    """Whether a loop with an Accelerator has its DeepSpeed JSON from a flag of ``TrainingArguments``, which fill it in
    and hand it on to no plugin."""
    asked = run.launch is not None and any(flag.name == "deepspeed" for flag in run.launch.flags)
    return asked and run.mentions("TrainingArguments") and not run.mentions("DeepSpeedPlugin", "hf_ds_config")


_BY_ACCELERATOR = frozenset({"PPOTrainer", "PPOv2Trainer"})
"""Trainers of TRL's that leave out the Trainer's own start, and hand the model to an Accelerator of theirs (0.9.6)."""

BY_THE_PLUGIN = "4.31"
"""The first transformers version whose Trainer starts DeepSpeed through accelerate's plugin; before, it handed its own
config to ``deepspeed.initialize``."""


def overwrites(runs: Sequence[Run], schema: Schema, value: object) -> bool:
    """Whether who reads the DeepSpeed JSON puts its own value in place of this one, whatever that is.

    ``DeepSpeedPlugin.__post_init__`` (accelerate 0.20 to 1.15, ``utils/dataclasses.py``) sets ``steps_per_print`` to
    infinity before anything is filled in or refused. A word "auto" in a file that nobody is known to read is meant
    for it.
    """
    owners = schema.get("x-overwritten-by", ())
    reader = reader_of(runs)
    if reader == "transformers" and older(runs, "transformers", BY_THE_PLUGIN) is True:
        return False
    return reader in owners if reader is not None else bool(owners) and value == "auto"


def written_by_script(runs: Sequence[Run], path: KeyPath) -> bool:
    """Whether a script that hands a DeepSpeed config to ``deepspeed.initialize`` puts a value at a key of it, or at a
    section above, or takes one out before (``ds_config["fp16"]["enabled"] = True``, ``del ds_config["optimizer"]``):
    what the file has there is never read."""
    if reader_of(runs) != "deepspeed":
        return False
    written = _written(tuple(step for step in path if isinstance(step, str)))
    scripts = {document for run in runs for document in run.documents if document.kind is Kind.PYTHON}
    return any(written.search(document.text) for document in scripts)


def _written(path: Sequence[str]) -> re.Pattern[str]:
    """An assignment or a ``del`` of a key, or of a section above, by a name of the config or of one of its sections;
    ``config["csv_monitor"]["enabled"]`` is none of ``fp16.enabled``."""
    quoted = [rf"""\[["']{re.escape(step)}["']\]""" for step in path]
    ends = range(1, len(quoted) + 1)
    chains = "|".join("".join(quoted[start:end]) for end in ends for start in range(end))
    owner = r"""(?:\w|[^"']\])"""
    return re.compile(rf"{owner}(?:{chains})[ \t]*=(?!=)|\bdel[ \t]+[\w.]*{owner}(?:{chains})[ \t]*$", re.MULTILINE)


_CHECKPOINTS = lazy_pattern(r"checkpointing\.(?:configure|checkpoint)\b|deepspeed\.checkpointing\b|\bmpu\b|megatron")
"""What code has that calls DeepSpeed's own checkpointing."""


def may_checkpoint_by_deepspeed(run: Run) -> bool:
    """Whether code of a run may call DeepSpeed's own checkpointing, which alone reads ``activation_checkpointing``."""
    return any(_CHECKPOINTS.search(document.text) for document in run.documents)


COMPARES = "4.6"
"""The first transformers version that compares a DeepSpeed config with its own arguments (``fill_match``); before, it
kept what the config states."""


MISMATCH = "ValueError (DeepSpeed config values that mismatch TrainingArguments values)"


def mismatch_stops(run: Run) -> tuple[str, Severity]:
    """What the Trainer does about a config that says otherwise than its arguments, and how bad that is."""
    error = MISMATCH
    if _of_another_checkout(run) and older((run,), "transformers", COMPARES) is None:
        return f"transformers {COMPARES} and later stop with {error}", Severity.WARNING
    if asks_for_two_engines(run) is not None:
        return f"the Trainer would stop with {error}, if it took FSDP beside DeepSpeed", Severity.WARNING
    if takes_no_arguments(run) is not None:
        return f"the Trainer would stop with {error}, if it came to that", Severity.WARNING
    return f"the Trainer stops with {error}", Severity.ERROR


def _of_another_checkout(run: Run) -> bool:
    """Whether the launch takes its libraries from sources that are not here (``PYTHONPATH=../../src``): of which
    release they are nobody knows."""
    if run.launch is None:
        return False
    here = run.launch.document.path.parent
    parts = run.launch.environment.get("PYTHONPATH", "").split(":")
    sources = [here / part for part in parts if part.startswith("..") and PurePosixPath(part).name == "src"]
    return any(not door.is_folder(folder) for folder in sources)


def older(runs: Iterable[Run], library: str, bound: str) -> bool | None:
    """Whether a library is older than a version in all of these runs; None where that is not known or differs."""
    answers = {_older(run, library, bound) for run in runs}
    return answers.pop() if len(answers) == 1 else None


def _older(run: Run, library: str, bound: str) -> bool | None:
    """By the version that the project pins; where it pins none, by the oldest that it takes."""
    pinned = before(run.versions.get(library), bound)
    if pinned is not None:
        return pinned
    return False if before(run.versions.get(library + FLOOR), bound) is False else None


def from_commit(runs: Iterable[Run], library: str) -> bool:
    """Whether a project takes a library from one commit of its repository: whatever that is, it is not the newest."""
    return any(library + COMMIT in run.versions for run in runs)


def milder(severity: Severity) -> Severity:
    """One step down: what a finding is worth where the version that would settle it is not known."""
    return Severity(max(severity - 1, Severity.INFO))


def installed(runs: Iterable[Run], library: str) -> Older:
    """Whether a library is older than a version, as the walks over a schema ask."""
    taken = tuple(runs)
    return lambda bound: older(taken, library, bound)


def older_elsewhere(context: FileContext, library: str, bound: str) -> str:
    """What the tree pins of a library, in words, where nothing near a file's runs states it, or states an older one,
    and every file of the tree that pins it pins one before a version: then the runs hardly have a newer. Else empty."""
    versions = [run.versions for run in context.runs]
    near = (each for each in versions if any(library_of(key) == library for key in each))
    if context.workspace is None or any(before(each.get(library), bound) is not True for each in near):
        return ""
    from lintfit.run.requirements import asked_anywhere

    found = [(path, asked) for path, asked in asked_anywhere(context.workspace) if _asks_for(asked, library)]
    if not found or any(before(asked.get(library), bound) is not True for _, asked in found):
        return ""
    path, asked = min(found, key=lambda each: (len(each[0].parts), each[0]))
    said = asked[library]
    return f"{library} {f'before {said[1:]}' if said[:1] == '<' else said} ({os.path.relpath(path)})"


def milder_by_the_tree(context: FileContext, report: Report, since: str) -> Report:
    """Information where only DeepSpeed from a version on refuses what every file of the tree pins an older one for."""
    pinned = older_elsewhere(context, "deepspeed", since)
    if not pinned:
        return report
    return replace(report, message=f"{report.message}; the tree has {pinned}", severity=Severity.INFO)


def _asks_for(asked: Mapping[str, str], library: str) -> bool:
    return any(library_of(key) == library for key in asked)


def one_load(run: Run) -> Call | None:
    """The one load of a model that the script may come by; None where there are none or several."""
    loads = [load for load in run.script.facts.loads if load.taken is not False] if run.script is not None else []
    return loads[0] if len(loads) == 1 else None


def only_load(run: Run) -> Call | None:
    """The one load of a model that the run surely does, by transformers itself."""
    load = one_load(run)
    return load if load is not None and load.taken and load.function.startswith("transformers.") else None


_OF_ENGINES = (("deepspeed_config", "deepspeed"), ("fsdp_config", "fsdp"))
"""Sections of an Accelerate file, and the engine for which they are handed on."""


def takes_effect(context: FileContext, place: Place) -> bool:
    """Whether a place of an Accelerate file is not in the section of an engine that all its runs do without.

    ``--multi_gpu`` on the launch line leaves DEEPSPEED in the file unread, and only DeepSpeed's launcher hands its
    section on (1.15 ``commands/launch.py:_validate_launch_command``, ``utils/launch.py:prepare_deepspeed_cmd_env``).
    """
    found = data_of(context, "accelerate")
    if found is None or place.document is not found[0]:
        return True
    for name, engine in _OF_ENGINES:
        section = found[1].get(name)
        if section is not None and section.span.start <= place.span.start < section.span.end:
            chosen = {run.accelerate.engine for run in context.runs if run.accelerate is not None}
            return not chosen or engine in chosen or not chosen.issubset(ENGINES.values())
    return True


def init_is_off(run: Run) -> bool:
    """Whether accelerate was told not to tell transformers of ZeRO-3: heeded up to 0.34, not since 1.0.

    ``DeepSpeedPlugin.set_deepspeed_weakref`` then publishes the config whatever ``zero3_init_flag`` says. The
    Trainer's own config is published always.
    """
    flag = run.accelerate.settings.get("zero3_init_flag") if run.accelerate is not None else None
    own = run.training.settings.get("deepspeed") if run.training is not None else None
    off = flag is not None and flag.value is not True and own is None
    return off and older((run,), "accelerate", "1.0") is True


def handed_over(runs: Iterable[Run], what: Literal["optimizer", "lr_scheduler"]) -> bool:
    """Whether a script gives ``deepspeed.initialize`` one of its own, so that the JSON's is not built."""
    return any(run.says(f"hands over its {what}", partial(_hands_over, run, what)) for run in runs)


def _hands_over(run: Run, what: str) -> bool:
    call = run.script.facts.initialize if run.script is not None else None
    return call is not None and call.name == "initialize" and (call.spreads or what in call.arguments)


def severity_by_reader(runs: Sequence[Run]) -> Severity:
    """An error where a script is known to have the JSON's built, a warning where none is."""
    return Severity.ERROR if reader_of(runs) is not None else milder(Severity.ERROR)


def flag_given(context: FileContext, name: str) -> bool | None:
    """Whether a command gives this flag to ``accelerate launch``; None where no command is known."""
    launches = [run.launch for run in context.runs if run.launch is not None and run.launch.launcher == "accelerate"]
    if not launches:
        return None
    return any(flag.name == name for launch in launches for flag in launch.launcher_flags)


_IN_PLACE = frozenset({"perl", "sed", "yq"})
"""Programs that change files in place, when told to."""
_TOLD = lazy_pattern(r"-[a-z]*i\S*|--in-?place\S*")


def changed_by_script(context: FileContext) -> bool:
    """Whether a script that launches with this file writes into it before: what it lacks may come from there."""
    launches = {run.launch.document for run in context.runs if run.launch is not None}
    return any(_writes(script, context.document.path.name) for script in launches)


def _writes(script: ShellDocument, name: str) -> bool:
    if any(PurePosixPath(written).name == name for written in script.redirected):
        return True
    commands = (command.words for command in script.commands)
    edits = (words for words in commands if PurePosixPath(words[0].text).name in _IN_PLACE)
    told = (words for words in edits if any(_TOLD.fullmatch(word.text) for word in words))
    return any(PurePosixPath(word.text).name == name for words in told for word in words)
