"""What lintfit knows of a training script: the calls that decide memory, with the branch each stands in.

``taken`` is True where the call certainly runs in this run (given the launcher's flags), False where it
certainly does not, None where that is not statically known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lintfit.frozen import field, frozen
from lintfit.settings.model import Place, Provenance


@frozen(eq=False)
class Argument:
    """One argument of a call: its value as far as it is known, and where it stands.

    ``value`` is a plain Python value, a dtype as ``"bf16"``/``"fp16"``/``"fp32"``, ``AUTO`` for the string
    "auto", a nested :class:`Call` for a constructor call (``LoraConfig(...)``), or ``UNKNOWN``.
    ``place`` is the value, ``whole`` the argument with its keyword. ``provenance`` is where the value was
    really written: a flag of the launch line, a dataclass default, or this place.
    """

    name: str
    value: Any
    place: Place
    whole: Place
    provenance: Provenance

    @property
    def is_written(self) -> bool:
        """Whether the call names the keyword itself; ``**kwargs`` is only what some caller may hand over."""
        span = self.whole.span
        return self.whole.document.text[span.start : span.end].lstrip().startswith(self.name)


@frozen(eq=False)
class Call:
    """One call. ``function`` is the dotted name as imported (``transformers.TrainingArguments``)."""

    function: str
    place: Place
    order: int
    """Position in the order of execution as far as it is known; calls compare by it."""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    positional: tuple[Argument, ...] = ()
    spreads: bool = False
    """Whether ``*args`` or ``**kwargs`` hand in arguments that could not be followed."""
    assigned_to: str | None = None
    receiver: str | None = None
    """The name that a method was called on (``model`` in ``model.float()``)."""
    taken: bool | None = True
    conditions: tuple[Place, ...] = ()
    """The ``if`` tests that this call stands under, outermost first."""
    device_guarded: bool = False
    """Whether it stands under a test for CPU or MPS, or against CUDA."""

    @property
    def name(self) -> str:
        """The last part of the dotted name."""
        return self.function.rpartition(".")[2]

    def argument(self, name: str, *aliases: str) -> Argument | None:
        for candidate in (name, *aliases):
            if candidate in self.arguments:
                return self.arguments[candidate]
        return None


@frozen(eq=False)
class Statement:
    """A statement that a fix may delete whole: its place covers complete lines.

    Where the call is a part of a longer expression (``from_pretrained(…).to("cuda")``), the place covers that part.
    """

    call: Call
    lines: Place


@frozen(eq=False)
class ScriptFacts:
    """The calls of a script that matter, each in order of execution."""

    trains: bool
    """Whether it trains at all (a Trainer, a backward, an engine) rather than evaluates or converts."""
    batches_out_of_sight: bool = False
    """Whether a loop of its own trains on batches that no ``DataLoader`` in sight makes."""
    loads: tuple[Call, ...] = ()
    """``from_pretrained``/``from_config`` calls of models (not tokenizers, configs, processors)."""
    trained_model: str | None = None
    """The name of the variable that is handed to the trainer or engine."""
    traced_load: Call | None = None
    """The load that the trained model is traced back to, whatever else had the same name before."""
    upcasts: tuple[Statement, ...] = ()
    """``model.float()``, ``.to(torch.float32)``, ``.double()`` on the trained model as a whole."""
    downcasts: tuple[Statement, ...] = ()
    """``model.half()``, ``.bfloat16()``, ``.to(torch.float16)`` on the trained model as a whole."""
    moves: tuple[Statement, ...] = ()
    """``.cuda()``, ``.to(device)`` of the trained model."""
    moves_replaced: tuple[Statement, ...] = ()
    """The same of a model that another load then takes the place of, under its name."""
    training_arguments: Call | None = None
    """The ``TrainingArguments``-like object that the run uses (also one filled by ``HfArgumentParser``)."""
    trainer: Call | None = None
    checkpointing: tuple[Call, ...] = ()
    """``gradient_checkpointing_enable()``, ``prepare_model_for_kbit_training`` and the like."""
    peft_config: Call | None = None
    unused_peft_config: Call | None = None
    """A config of adapters that is built and handed to nothing, where there is no other."""
    quantization_config: Call | None = None
    initialize: Call | None = None
    """``deepspeed.initialize`` or ``accelerator.prepare``."""
    accelerator: Call | None = None
    partitioning: tuple[Call, ...] = ()
    """``HfDeepSpeedConfig(…)`` and ``deepspeed.zero.Init(…)``: from there on loads are partitioned."""
    parse_call: Call | None = None
    """``parser.parse_args_into_dataclasses()`` and the like: where a filled config object comes to be."""

    @property
    def trained_load(self) -> Call | None:
        """The load of the model that is trained: the one of its name, or the only one there is."""
        return self.trained_among([load for load in self.loads if load.taken is not False])

    def trained_among(self, loads: Sequence[Call]) -> Call | None:
        """The one of these loads that the trained model comes from: by its object, by its name, or as the only one."""
        named = [load for load in loads if self.trained_model is not None and load.assigned_to == self.trained_model]
        if self.traced_load in named:
            return self.traced_load
        return min(named, key=lambda load: load.order) if named else loads[0] if len(loads) == 1 else None
