"""What the walk through a script carries along: steps left, branch, call stack and the calls seen so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst

from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.steps import Steps
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter.origins import Library
from lintfit.sources.script.interpreter.values import Field, Function, Object, Record, Value

MAX_STEPS = 80_000
"""Expressions and statements that are followed at most. The slowest of the real scripts and launchers that lintfit is
measured with take 22,000; what is generated has no end."""
MAX_STEPS_OF_ALL = 1_500_000
"""Those of all readings of one script together, with other launches and other versions: some sixty of the slowest of
the same scripts."""
MAX_CALLS = 10_000
"""Calls that are followed. Of 930 readings of scripts of ten public repositories the longest comes by 4,300."""
MAX_MADE = 250
"""Calls among them that make what a run consists of. The same readings come by 43 at most."""
MAX_NESTED = 110
"""Expressions within expressions, with the calls that are followed between them: Python's own limit of 1000 calls lies
behind it."""
MAX_DEPTH = 12
"""Calls of the script's own functions that are followed into one another."""

_NOT_CUDA = re.compile(
    r"""(==|\bis\b)\s*(torch\.device\()?["'](cpu|mps)["']|["'](cpu|mps)["']\s+in\b|\bnot\s+torch\.cuda\.is_available"""
    r"""|\bmps\.is_available|(?<!not\s)\b(use_cpu|no_cuda|use_mps|cpu_only|only_cpu|is_cpu)\b|!=\s*(torch\.device\()?["']cuda["']"""
)
_CUDA = re.compile(
    r"""(?<!not\s)torch\.cuda\.is_available|==\s*(torch\.device\()?["']cuda|["']cuda["']\s+in\b"""
    r"""|!=\s*(torch\.device\()?["'](cpu|mps)["']|\bnot\s+\S*\b(use_cpu|no_cuda|use_mps|cpu_only|only_cpu|is_cpu)\b"""
)


@lru_cache(maxsize=4096)
def guards_device(test: str, body: bool) -> bool:
    """Whether a branch of an ``if`` runs only where there is no CUDA; ``body`` False is its ``else``."""
    return bool((_NOT_CUDA if body else _CUDA).search(test))


LENGTHS = ("max_length", "max_seq_length", "max_seq_len", "model_max_length", "cutoff_len", "block_size", "seq_length",
           "sequence_length", "seq_len", "max_len", "context_length", "maxlen", "max_sequence_length")  # fmt: skip
"""What scripts call the length of a sequence in tokens."""


@dataclass(slots=True)
class Branch:
    """The branch that the walk stands in. ``undecided`` counts the open tests with no known answer."""

    taken: bool | None = True
    tests: tuple[cst.BaseExpression, ...] = ()
    guarded: bool = False
    undecided: int = 0

    def into(self, test: cst.BaseExpression, holds: bool | None, guarded: bool) -> Branch:
        """The branch one test further in; ``holds`` says whether it is taken."""
        taken = self.taken if holds else (False if holds is False or self.taken is False else None)
        return Branch(taken, (*self.tests, test), self.guarded or guarded, self.undecided + (holds is None))

    def maybe(self) -> Branch:
        """The same place, but no longer certain to be reached."""
        return Branch(None if self.taken else self.taken, self.tests, self.guarded, self.undecided + 1)


@dataclass(slots=True)
class Frame:
    """One call of a function of the script: what it returned so far."""

    node: cst.CSTNode
    returns: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Gradient:
    """``parameter.requires_grad = value``, mostly within a loop over the parameters of a module (``source``)."""

    node: cst.CSTNode
    source: Record | None
    value: bool | None
    taken: bool | None
    order: int
    """Calls that the walk came by before."""


@dataclass(slots=True)
class Flagged:
    """``model.transformer.gradient_checkpointing = True``: a part of a model that is told to recompute, or the config
    that a model is made by later on; ``order`` are the calls that the walk came by before."""

    node: cst.CSTNode
    taken: bool | None
    config: Value | None = None
    order: int = 0


@dataclass(slots=True)
class Pixels:
    """``processor.image_processor.max_pixels = value``; ``sized``: ``processor.size["longest_edge"] = value``."""

    value: Value
    sized: bool
    taken: bool | None


@dataclass(slots=True)
class Replaced:
    """``LlamaAttention.forward = value``: a method of a class of transformers' that the script replaces."""

    cls: str
    value: Value
    taken: bool | None


INITIALIZERS = frozenset({"init_process_group", "init_distributed", "Accelerator", "PartialState"})
"""Calls after which a process group is there."""


class OutOfBudget(Exception):
    """The script is larger than the walk follows; what was found so far stands."""


_MAKE = ("from_pretrained", "from_config", "get_peft_model", "Trainer", "Config", "Arguments", "prepare", "initialize")
"""How the names of calls end that make a model, its config or what trains it."""


def steps_of(within: Steps | None) -> Steps:
    """The counter of one walk, a part of that of all walks through the same script."""
    return Steps(MAX_STEPS, "expressions of a script", within)


@dataclass(slots=True)
class Walk:
    """The state of one walk."""

    flags: Mapping[str, Flag]
    words: Sequence[str] | None
    """``sys.argv[1:]``; None where there is a launch whose words are not known."""
    environment: Mapping[str, str]
    defaults: Defaults
    capability: tuple[int, int] | None = None
    """The compute capability of the GPUs that it runs on; None where that is not known."""
    open_data: Callable[[str, Kind], DataDocument | None] | None = None
    """Opens a JSON or YAML file that the script reads, by the name that it gives."""
    open_arguments: Callable[[str], Document | None] | None = None
    """Opens a file of command-line words."""
    overrides: Sequence[Flag] = ()
    """The ``key=value`` words of the command line."""
    positional: Sequence[str] = ()
    """The words of the command line in front of its first flag."""
    iterated: list[Record | None] = field(default_factory=list)
    """The ``model.parameters()`` that each open loop goes through; None where it goes through something else."""
    gradients: list[Gradient] = field(default_factory=list)
    """Where ``requires_grad`` of parameters is set in a loop."""
    recomputing: list[Flagged] = field(default_factory=list)
    pixels: list[Pixels] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    divisors: dict[int, Value] = field(default_factory=dict)
    """Right sides of ``%``, by the id of the expression: how often a loop steps is told by one."""
    accumulations: list[Value] = field(default_factory=list)
    """Those of them that are named like an accumulation."""
    lacking: list[tuple[cst.Subscript, int]] = field(default_factory=list)
    """Where a dict is surely asked for a key that it has not, and the calls that the walk came by before."""
    tries: int = 0
    """Open ``try`` blocks with an answer to an error."""
    strides: dict[int, Value] = field(default_factory=dict)
    """Strides of ``for i in range(0, n, stride)``, by the id of the loop: slices are taken by it."""
    unread: list[Value] = field(default_factory=list)
    """Names of config files that are read and are not at hand."""
    puts_words: bool = False
    """Whether the script puts words into ``sys.argv`` itself: those of a config may stand before or behind the rest."""
    assume: bool = False
    """Whether command-line fields without a flag take their defaults (else they are not known)."""
    parses: bool = False
    """Whether anything was read from the command line."""
    parsed: list[Object] = field(default_factory=list)
    """The objects that it filled."""
    namespaces: list[Object] = field(default_factory=list)
    """Those that a mapping is spread into, a config file mostly: ``argparse.Namespace(**json.load(file))``."""
    read: dict[int, set[str]] = field(default_factory=dict)
    """Their fields that the script asks for, by the object's id."""
    lengths: list[Value] = field(default_factory=list)
    """Whole numbers that variables named like a sequence length are computed to."""
    spelling: dict[str, str] = field(default_factory=dict)
    """How the script declares a flag whose name has dashes, by the field's name."""
    switches: set[str] = field(default_factory=set)
    """Fields that a bare flag switches on and that take no value (``store_true``)."""
    steps: Steps = field(default_factory=lambda: steps_of(None))
    """What everything that the walk starts draws from."""
    branch: Branch = field(default_factory=Branch)
    loops: int = 0
    """Open loops that run more than once, or nobody knows how often."""
    depth: int = 0
    """Open loops of any kind."""
    frames: list[Frame] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    initializers: list[Record] = field(default_factory=list)
    """Those of them after which a process group is there."""
    entered: set[int] = field(default_factory=set)
    """Ids of the function nodes that were followed."""
    ran: set[int] = field(default_factory=set)
    """Those of them that may run: not only in a branch that is surely not taken."""
    statement: cst.SimpleStatementLine | None = None
    assigned_to: str | None = None
    commands: dict[int, dict[str, Function]] = field(default_factory=dict)
    """The functions that each ``typer.Typer()`` runs, by the command's name; by the id of that object."""
    options: dict[int, dict[str, Field]] = field(default_factory=dict)
    """Click options by the id of the function that they decorate."""
    hydra: dict[int, dict[str, Value]] = field(default_factory=dict)
    """What ``@hydra.main`` is told, by the id of the function that it decorates."""

    calls: Steps | None = None
    made: Steps | None = None
    nested: int = 0
    """Expressions that are being evaluated."""

    def note(self, record: Record) -> None:
        """Note a call. Raises :class:`OutOfBudget` where there are more than anybody writes."""
        self.records.append(record)
        self.calls = self.calls or self.steps.within(MAX_CALLS, "calls of a script")
        self.made = self.made or self.steps.within(MAX_MADE, "models, configs and trainers of a script")
        if not self.calls.take() or (record.name.endswith(_MAKE) and not self.made.take()):
            raise OutOfBudget

    def step(self, count: int = 1) -> None:
        """Take steps from the counter. Raises :class:`OutOfBudget` where there are not that many left."""
        if not self.steps.take(count):
            raise OutOfBudget


class Defaults:
    """What a library fills in where nobody says anything; this one knows nothing."""

    def get(self, cls: str, name: str) -> tuple[object, Library] | None:
        """The default of a field of a library's class, by the class's dotted name, and whose it is."""
        return None

    def names(self, cls: str) -> frozenset[str]:
        """The fields that a library's class accepts in any version; empty for a class that is not known."""
        return frozenset()
