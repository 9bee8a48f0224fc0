"""A training script as a source of settings: what it says, with the launch line's flags, and how to change it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import DataDocument, Document, FileEdit, Kind, Span
from lintfit.documents.python_imports import imported, relative_import
from lintfit.documents.python_walk import walk
from lintfit.documents.steps import Steps
from lintfit.settings.model import BY_SCRIPT, UNKNOWN, Place, Provenance, Setting
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter import defaults, models
from lintfit.sources.script.interpreter.interpreter import Interpreter
from lintfit.sources.script.interpreter.modules import Modules
from lintfit.sources.script.interpreter.parsers import Parser
from lintfit.sources.script.interpreter.state import Walk, steps_of
from lintfit.sources.script.interpreter.values import Const, Record, plain
from lintfit.sources.script.model import Call, ScriptFacts, Statement
from lintfit.sources.script.reading import facts, launched, megatron, modelling, patching, splitting, stopping, training
from lintfit.sources.script.reading.calls import Calls
from lintfit.sources.script.reading.collector import Reading, sure_none
from lintfit.sources.script.writing import edits, file_edits
from lintfit.sources.script.writing import settings as writing
from lintfit.sources.training_words import OFF_BY_DEFAULT

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument


_GLUED = re.compile(r"--?[\w.-]+=")
_PUTS_WORDS = re.compile(r"\bsys\.argv(?:\.(?:append|extend|insert)\(|(?:\[[^\]\n]{0,40}\])?[ \t]*\+?=(?!=))")
_COUNTS = re.compile(r"\baccumulate\(|\bno_sync\(|\bsync_gradients\b")
"""What tells Accelerate when to step, or asks it."""

AddFlag = Callable[[str, str | None], tuple[FileEdit, ...] | None]


@dataclass(frozen=True, slots=True, eq=False)
class ScriptSource:
    """A training script, read under the flags of one launch."""

    document: PythonDocument
    facts: ScriptFacts
    settings: Mapping[str, Setting]
    reading: Reading = field(repr=False)
    add_flag: AddFlag | None = field(default=None, repr=False)

    @property
    def walk(self) -> Walk:
        """The walk that it was read by."""
        return self.reading.walk

    @property
    def not_followed(self) -> str:
        """Why a part of it was not followed, as a clause; empty where all of it was."""
        return self.walk.steps.reason

    @property
    def dialect(self) -> str:
        return "script"

    @property
    def trains(self) -> bool:
        """Whether the script trains a model, by a trainer or in a loop of its own."""
        return self.facts.trains

    @property
    def uses_trainer(self) -> bool:
        """Whether transformers' Trainer, or a child of it, runs the loop."""
        return self.facts.training_arguments is not None

    @property
    def uses_trl(self) -> bool:
        """Whether TRL runs the loop, which sets some of transformers' arguments itself."""
        calls = [call for call in (self.facts.training_arguments, self.facts.trainer) if call is not None]
        return any(call.function.startswith("trl.") or call.name.endswith("Config") for call in calls)

    @property
    def adjustable(self) -> None:
        """None: what can be changed in Python is found by trying."""
        return None

    @property
    def arguments_place(self) -> Place | None:
        """The call that makes the trainer's arguments, where the script itself does, else the trainer."""
        made = self.facts.training_arguments or self.facts.trainer
        return made.place if made is not None and self.facts.parse_call is None else None

    def makes_as_it_is(self, call: Call) -> bool:
        """Whether a call makes a library's own class, and no ``try`` around it has an answer to an error."""
        record = self.reading.calls.records.get(id(call))
        if record is None or record.classes:
            return False
        module = self.reading.calls.document_of(record.node).module
        tries = (node for node in walk(module) if isinstance(node, cst.Try)) if module is not None else ()
        return not any(record.node is node for one in tries if one.handlers for node in walk(one.body))

    def spelled(self, argument: str, value: Any) -> str:
        """An argument as Python says it: ``bf16=True``."""
        return f'{argument}="{value}"' if isinstance(value, str) else f"{argument}={value!r}"

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the run say ``name = value`` where the setting lives; None where it cannot.

        That is the flag on the launch line, the keyword in the script, a new keyword of the arguments object, or
        a dataclass default: the first of these that decides now.
        """
        return writing.write(self, name, value)

    @property
    def zero_in_dict(self) -> bool:
        """Whether the script makes the ``zero_optimization`` of a DeepSpeed config itself, all of it known."""
        return self.reading.zero is not None and not self.reading.zero.open

    @property
    def zero_of_dict(self) -> object:
        """The ``zero_optimization`` of a DeepSpeed dict in the script, as far as it is known; None without one."""
        return plain(self.reading.zero) if self.reading.zero is not None else None

    @property
    def spreads_over_cards(self) -> bool:
        """Whether several processes cannot each have a model: a ``device_map`` of the load, or Unsloth, on one GPU."""
        load = self.reading.found.trained_load
        mapped = load is not None and not sure_none(load.keyword("device_map"))
        return mapped or any(r.function.startswith("unsloth") and r.taken is not False for r in self.reading.records)

    @property
    def told_by_parsers(self) -> tuple[Call, ...]:
        """The calls by which a parser makes arguments that tell transformers of a DeepSpeed config."""
        return tuple(map(self.reading.calls.call, models.told_by_parsers(self.walk)))

    @property
    def sets_visible_gpus(self) -> bool:
        """Whether it sets ``CUDA_VISIBLE_DEVICES`` itself, to what is not surely several GPUs."""
        shown = self.reading.constants.get("os.environ[CUDA_VISIBLE_DEVICES]")
        return shown is not None and not (isinstance(shown, Const) and "," in str(shown.value))

    @property
    def trains_on_tpu(self) -> bool:
        """Whether it tells torch_xla itself that there is a TPU (``os.environ["PJRT_DEVICE"] = "TPU"``)."""
        told = self.reading.constants.get("os.environ[PJRT_DEVICE]")
        return isinstance(told, Const) and str(told.value).upper() == "TPU"

    @property
    def evaluates_nothing(self) -> Call | None:
        """The trainer that is to evaluate between its steps and has no data for that, if it surely has none."""
        trainer = stopping.without_data(self.reading)
        return self.reading.calls.call(trainer) if trainer is not None else None

    @property
    def stops_at_import(self) -> tuple[str, str] | None:
        """A module of the repository and the name that the script takes from it and that it has not: ImportError."""
        taken = imported(self.document)
        return next(((module, name) for module, name in taken if self.reading.calls.lacks(module, name)), None)

    @property
    def stops_at_field(self) -> tuple[str, str] | None:
        """A dataclass of a parser, and the field at which the class stops with TypeError as it is made."""
        return stopping.without_mapping(self.reading)

    @property
    def relative_import(self) -> Place | None:
        """Where it imports from its own package before anything else of that comes, which only a module can."""
        found = relative_import(self.document)
        return Place(self.document, self.document.span(found)) if found is not None else None

    @property
    def lacks_a_key(self) -> Place | None:
        """Where the script stops with KeyError before it loads the model, if it surely does."""
        return self.reading.place_of(stopping.without_key(self.reading))

    @property
    def loads_on_current_gpu(self) -> tuple[Call, ...]:
        """The load of the trained model, and such as are like it, that go to GPU 0 in every process where the weights
        are quantized."""
        return tuple(map(self.reading.calls.call, stopping.on_current_gpu(self.reading)))

    @property
    def steps_every_batch(self) -> bool:
        """Whether the optimizer steps after every batch, whatever number of steps Accelerate is told to accumulate.

        It only counts in ``accelerator.accumulate``; a loop that divides by a number of its own counts itself.
        """
        found, home = self.reading.found, self.reading.homes.get("gradient_accumulation_steps")
        if found.accelerator is None or found.trainer is not None or found.arguments is not None or not found.trains:
            return False
        by_accelerator = ("Accelerator", "GradientAccumulationPlugin")
        told = home is None or (home.record is not None and home.record.name in by_accelerator)
        return told and not self.reading.calls.say(_COUNTS)

    def argument(self, *names: str) -> Setting | None:
        """A field of the trainer's arguments under the first of these names that it has: as passed, else the default.

        None where there is no such object, or where neither is known; the value is ``UNKNOWN`` where something is
        passed that is not statically known.
        """
        made = self.reading.found.arguments
        value = self.reading.attribute(made, *names) if made is not None else None
        if made is None or value is None:
            return None
        node = made.call.node if made.call is not None else None
        return Setting(names[0], plain(value), self.reading.calls.provenance(value.origin, node))

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make a field of the trainer's arguments say ``value``; None where it cannot be written."""
        return edits.Writer(self).argument((name,), value)

    def calls(self, *names: str) -> tuple[Call, ...]:
        """The calls of functions and methods with one of these last names, in order of execution.

        Each place once, with what is surest of it; calls that this run certainly does not make are left out.
        """
        best: dict[int, Record] = {}
        for record in self.reading.records:
            if record.name in names and record.taken is not False:
                known = best.get(id(record.node))
                if known is None or (record.taken and not known.taken):
                    best[id(record.node)] = record
        return tuple(self.reading.calls.call(record) for record in sorted(best.values(), key=lambda each: each.order))

    @property
    def trainings(self) -> int:
        """How many trainers it makes and trains, one after the other."""
        return len(facts.trainers(self.reading.records))

    def starts_training(self) -> Place:
        """Where the training starts that was read: what launches it, its trainer's ``train``, the trainer itself, or
        the backward pass of a loop."""
        trainer = self.facts.trainer
        launched = self.calls("notebook_launcher")
        trained = [
            call
            for call in self.calls("train")
            if trainer is not None and call.receiver == trainer.assigned_to and call.order > trainer.order
        ]
        made = (trainer, *self.calls("backward"), self.facts.initialize, self.facts.accelerator)
        found = next((call for call in (*launched, *trained, *made) if call is not None), None)
        return found.place if found is not None else Place(self.document, Span(0, 0))

    def remove_statement(self, statement: Statement) -> tuple[FileEdit, ...]:
        """The edits that drop a statement of the facts (a cast, a move) and leave valid Python."""
        record = self.reading.calls.records.get(id(statement.call))
        return file_edits.remove_statement(self, record) if record is not None else ()

    def remove_argument(self, call: Call, name: str) -> tuple[FileEdit, ...]:
        """The edits that take a keyword out of a call of the facts; empty where it is not written there."""
        calls, record = self.reading.calls, self.reading.calls.records.get(id(call))
        return file_edits.edited(calls, record.node, python_edits.remove_keyword, name) if record is not None else ()

    def set_argument(self, call: Call, name: str, code: str) -> tuple[FileEdit, ...]:
        """The edits that make a call of the facts say ``name=code``."""
        calls, record = self.reading.calls, self.reading.calls.records.get(id(call))
        return file_edits.edited(calls, record.node, python_edits.set_keyword, name, code) if record is not None else ()

    def new_flag(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that add a flag to the launch line; None where no launch line can be edited.

        ``name`` is the field's; the flag is spelled as the script declares it.
        """
        if self.add_flag is None:
            return None
        spelled, switch = self.walk.spelling.get(name, name), name in self.walk.switches
        if switch and value is not True:
            return None
        return self.add_flag(spelled, None if switch or (value is True and self._stands_alone(name)) else str(value))

    def _stands_alone(self, name: str) -> bool:
        """Whether a switch of the Trainer's arguments that is off by default is given without a word, as the launch
        gives its others: ``HfArgumentParser`` takes it so (``nargs="?"``, ``const=True``)."""
        walk = self.reading.walk
        values = [(flag.value or "").lower() for flag in walk.flags.values()]
        if name not in OFF_BY_DEFAULT or "" not in values or not _BOOLEANS.isdisjoint(values):
            return False
        parsers = (each.call.receiver for each in walk.parsed if each.call is not None)
        return any(isinstance(parser, Parser) and models.is_dataclass_parser(parser.kind) for parser in parsers)


_BOOLEANS = frozenset({"true", "false"})


def read_script(
    document: PythonDocument,
    flags: Sequence[Flag] = (),
    env: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
    has_launch: bool = False,
    add_flag: AddFlag | None = None,
    positional: Sequence[str] = (),
    open_file: Callable[[Path], Document | None] | None = None,
    open_data: Callable[[str, Kind], DataDocument | None] | None = None,
    overrides: Sequence[Flag] = (),
    open_arguments: Callable[[str], Document | None] | None = None,
    which: int = 0,
    more_flags: bool = False,
    within: Steps | None = None,
    capability: tuple[int, int] | None = None,
    followed: bool = True,
) -> ScriptSource:
    """Read a script without running it.

    ``flags`` are those of the launch line, ``overrides`` its ``key=value`` words, ``env`` its environment, ``versions``
    the libraries' versions where they are known. ``open_data`` opens the config files that the script reads,
    ``open_arguments`` files of words that add to its command line. Without a launch, what the command line would
    decide stays open in the facts (``taken`` is None), and the settings take the script's own defaults, marked as
    assumed; ``more_flags`` says that the launch has some beside ``flags`` that nobody sees. ``which`` of several
    trainings is meant, one after the other. ``within`` is what all readings of the script draw from.
    ``capability`` is the compute capability of its GPUs. One that is not ``followed`` has no facts.
    """
    known = (has_launch or bool(flags)) and not more_flags
    library = defaults.CatalogDefaults({} if versions is None else versions)
    modules = Modules(document, open_file)
    calls = Calls(modules.documents, modules.unread, modules.lacks)

    def read(assume: bool) -> Reading:
        walk = Walk(
            flags={flag.name: flag for flag in flags},
            words=[*positional, *_words(flags)],
            environment=env or {},
            defaults=library,
            capability=capability,
            open_data=open_data,
            open_arguments=open_arguments,
            overrides=overrides,
            positional=positional,
            puts_words=_PUTS_WORDS.search(document.text) is not None,
            assume=assume,
            steps=steps_of(within),
        )
        interpreter = Interpreter(document.module or cst.Module([]), walk, modules, document.path.as_posix())
        if followed:
            interpreter.run()
        reading = Reading(
            facts.find(walk.records, calls, which),
            walk,
            calls,
            {} if versions is None else versions,
            interpreter.globals.names,
        )
        for part in (modelling, patching, training, splitting, megatron, launched):
            part.read(reading)
        return reading

    reading = read(known)
    settings = reading.settings
    if reading.walk.parses and not known and not reading.walk.steps.spent:
        guess = read(True)
        settings = _assumed(settings, guess.settings)
        reading.homes = guess.homes
    found = facts.facts(reading.found, calls)
    if reading.walk.steps.reason:
        found = replace(found, trains=True)  # it looks like one that does, and where it ends nobody has seen
    return ScriptSource(document, found, settings, reading, add_flag)


def _words(flags: Sequence[Flag]) -> list[str]:
    """``sys.argv[1:]`` as the flags make it up."""
    words: list[str] = []
    for flag in flags:
        written = flag.document.text[flag.place.span.start : flag.place.span.end]
        if flag.value is not None and _GLUED.match(written):
            words.append(f"--{flag.name}={flag.value}")
            continue
        words.append("--" + flag.name)
        words += flag.words or (() if flag.value is None else (flag.value,))
    return words


_KEPT_OPEN = ("method", "bf16", "fp16")
"""What stays unknown where the defaults do not decide it: without it the whole model would train, or all in fp32."""


def _assumed(known: Mapping[str, Setting], guess: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings of a script whose launch line is not known: what only its defaults say is marked as assumed."""
    settings: dict[str, Setting] = {}
    for name, setting in guess.items():
        sure = known.get(name)
        if setting.value is UNKNOWN and name not in _KEPT_OPEN:
            continue
        if sure is not None and sure.value == setting.value:
            settings[name] = sure
        else:
            settings[name] = replace(setting, provenance=_guessed(setting))
    for name in ("deepspeed", "fsdp"):
        if name in known and name not in settings:
            settings[name] = replace(known[name], value=None, provenance=_guessed(known[name]))
    return settings


def _guessed(setting: Setting) -> Provenance:
    return Provenance("assumed", BY_SCRIPT, setting.provenance.place)
