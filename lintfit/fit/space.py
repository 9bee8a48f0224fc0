"""The changes that the planner may combine: each an axis of alternatives, from "leave it" to the strongest.

An alternative is a set of spec changes with what it takes to make them: how safe it is and how many edits. The axes and
their order follow what costs least in training semantics and speed first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from lintfit.findings import Applicability
from lintfit.memory.spec import Spec
from lintfit.run.model import Run


@dataclass(frozen=True, slots=True)
class Option:
    """One alternative of one axis. ``name`` is how people call it ("ZeRO-3")."""

    name: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    applicability: Applicability = Applicability.SAFE

    @property
    def is_change(self) -> bool:
        return bool(self.changes)


LEAVE = Option()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One alternative of every axis."""

    options: tuple[Option, ...]

    @property
    def changes(self) -> dict[str, Any]:
        """All spec changes of the candidate."""
        merged: dict[str, Any] = {}
        for option in self.options:
            merged.update(option.changes)
        return merged

    @property
    def made(self) -> tuple[Option, ...]:
        """The alternatives that change anything."""
        return tuple(option for option in self.options if option.is_change)

    @property
    def applicability(self) -> Applicability:
        return Applicability.weakest(*(option.applicability for option in self.made))

    @property
    def name(self) -> str:
        return " + ".join(option.name for option in self.made)


def candidates(run: Run) -> Iterator[Candidate]:
    """Every combination of alternatives that makes sense for a run. The first changes nothing.

    A forced float32 copy never stays beside a DeepSpeed that keeps fp32 master weights itself: taking it away is
    then safe and free.
    """
    spec = run.spec
    assert spec is not None
    for options in product(*axes(run)):
        candidate = Candidate(options)
        changes = candidate.changes
        engine, precision = (changes.get(name, getattr(spec, name)) for name in ("engine", "mixed_precision"))
        if engine == "deepspeed" and precision != "no" and forces_float32(run):
            if not options[0].is_change:
                continue
            candidate = Candidate((replace(options[0], applicability=Applicability.SAFE), *options[1:]))
        if "optimizer" in changes and engine == "deepspeed":
            continue
        yield candidate


def forces_float32(run: Run) -> bool:
    """Whether the script casts the trained model to float32 in this run."""
    return run.script is not None and any(upcast.call.taken is True for upcast in run.script.facts.upcasts)


def axes(run: Run) -> tuple[tuple[Option, ...], ...]:
    """The alternatives along each axis for this run, weakest first."""
    spec = run.spec
    assert spec is not None
    every: tuple[tuple[Option, ...], ...] = (
        _float32(run, spec),
        _loading(run, spec),
        _precision(run, spec),
        _checkpointing(spec),
        _micro_batch(run, spec),
        _loss(spec),
        _sharding(run, spec),
        _optimizer(spec),
    )
    if run.recipe is None:
        return every
    adjustable = run.recipe.adjustable
    every = (*every, _quantization(spec), _sequence(spec))
    return tuple(tuple(option for option in axis if option.changes.keys() <= adjustable) for axis in every)


def _float32(run: Run, spec: Spec) -> tuple[Option, ...]:
    """Take a forced float32 copy away. Safe where the engine keeps fp32 master weights of its own."""
    if not forces_float32(run):
        return (LEAVE,)
    safe = spec.engine == "deepspeed" and spec.mixed_precision != "no"
    loaded = _loaded_dtype(run)
    changes: dict[str, Any] = {"weights_dtype": loaded, "full_load_dtype": None, "forced_float32": False}
    return (LEAVE, Option("no forced float32", changes, Applicability.SAFE if safe else Applicability.UNSAFE))


def _loading(run: Run, spec: Spec) -> tuple[Option, ...]:
    """Load a 16-bit checkpoint in 16 bits.

    Safe where nothing trains in these weights: a frozen base, or an engine with fp32 master weights of its own.
    """
    setting = run.settings.get("weights_dtype")
    halved = run.facts is not None and run.facts.checkpoint_dtype in ("bf16", "fp16")
    if spec.weights_dtype != "fp32" or setting is None or not halved or forces_float32(run):
        return (LEAVE,)
    half = spec.mixed_precision if spec.mixed_precision != "no" else _half(run)
    kept = spec.method == "lora" or (spec.engine == "deepspeed" and spec.mixed_precision != "no")
    safe = kept and setting.provenance.kind == "default"
    return (
        LEAVE,
        Option(f"{half} weights", {"weights_dtype": half}, Applicability.SAFE if safe else Applicability.UNSAFE),
    )


def _loaded_dtype(run: Run) -> str:
    """dtype before the upcast: what it overrode, else 16 bits of the kind that the cards can do."""
    setting = run.settings.get("weights_dtype")
    for beaten in setting.overrode if setting is not None else ():
        if beaten.value in ("bf16", "fp16"):
            return str(beaten.value)
    return _half(run)


def _half(run: Run) -> str:
    gpu = run.hardware.gpu
    return "fp16" if gpu is not None and gpu.native_bf16 is False else "bf16"


def _precision(run: Run, spec: Spec) -> tuple[Option, ...]:
    if spec.mixed_precision != "no" or spec.weights_dtype != "fp32":
        return (LEAVE,)
    half = _half(run)
    return (LEAVE, Option(f"{half} training", {"mixed_precision": half}, Applicability.UNSAFE))


def _checkpointing(spec: Spec) -> tuple[Option, ...]:
    if spec.gradient_checkpointing:
        return (LEAVE,)
    return (LEAVE, Option("gradient checkpointing", {"gradient_checkpointing": True}))


def _micro_batch(run: Run, spec: Spec) -> tuple[Option, ...]:
    """Smaller micro-batches with more accumulation; the product stays.

    GRPO's groups must divide the generation batch, which this leaves as it is, too.
    """
    micro, steps = spec.micro_batch_size, spec.gradient_accumulation_steps
    smaller = [size for size in range(micro - 1, 0, -1) if micro % size == 0]
    return (
        LEAVE,
        *(
            Option(
                f"micro-batch {size}",
                {"micro_batch_size": size, "gradient_accumulation_steps": steps * micro // size},
            )
            for size in smaller
        ),
    )


def _loss(spec: Spec) -> tuple[Option, ...]:
    if spec.loss != "full" or spec.trainer != "causal-lm":
        return (LEAVE,)
    return (LEAVE, Option("Liger's fused loss", {"loss": "liger"}, Applicability.UNSAFE))


def _sharding(run: Run, spec: Spec) -> tuple[Option, ...]:
    """DeepSpeed's ladder from where the run stands. A run without DeepSpeed gets one, which is never safe."""
    if spec.engine == "fsdp" or not _can_shard(run, spec):
        return (LEAVE,)
    here = (spec.zero_stage, spec.offload_optimizer, spec.offload_param) if spec.engine == "deepspeed" else None
    safety = Applicability.SAFE if here is not None else Applicability.UNSAFE
    ladder = [
        (name, stage, optimizer, param)
        for name, stage, optimizer, param in LADDER
        if (spec.data_parallel > 1 or optimizer != "none") and _stronger((stage, optimizer, param), here)
    ]
    extra = {} if here is not None else {"mixed_precision": _engine_precision(run, spec)}
    return (
        LEAVE,
        *(
            Option(
                name,
                {"engine": "deepspeed", "zero_stage": stage, "offload_optimizer": optimizer, "offload_param": param}
                | extra,
                safety,
            )
            for name, stage, optimizer, param in ladder
        ),
    )


LADDER = (
    ("ZeRO-2", 2, "none", "none"),
    ("ZeRO-3", 3, "none", "none"),
    ("ZeRO-2 with the optimizer offloaded", 2, "cpu", "none"),
    ("ZeRO-3 with the optimizer offloaded", 3, "cpu", "none"),
    ("ZeRO-3 with optimizer and parameters offloaded", 3, "cpu", "cpu"),
)
"""Name, stage, optimizer's and parameters' device, from the least to the most memory saved and time spent."""


def _stronger(rung: tuple[int, str, str], here: tuple[int, str, str] | None) -> bool:
    """Whether a rung saves something over where the run stands, and takes nothing back that it has."""
    if here is None:
        return True
    stage, optimizer, param = rung
    keeps = stage >= here[0] and (here[1] == "none" or optimizer != "none") and (here[2] == "none" or param != "none")
    return keeps and rung != here


def _engine_precision(run: Run, spec: Spec) -> str:
    return spec.mixed_precision if spec.mixed_precision != "no" else _half(run)


def _can_shard(run: Run, spec: Spec) -> bool:
    """DeepSpeed needs a launcher that starts ranks, and does not shard a bitsandbytes base."""
    if spec.quantization is not None:
        return spec.engine == "deepspeed"
    if spec.engine == "deepspeed":
        return True
    launcher = run.launch.launcher if run.launch is not None else None
    return launcher in ("torchrun", "deepspeed", "accelerate") or (launcher is None and spec.gpus > 1)


def _quantization(spec: Spec) -> tuple[Option, ...]:
    """A frozen base in four bits: it is not the same model any more, which only evaluation can judge."""
    if spec.method != "lora" or spec.quantization is not None:
        return (LEAVE,)
    return (LEAVE, Option("nf4 weights", {"quantization": "nf4"}, Applicability.UNSAFE))


SHORTEST = 256
"""Tokens: no plan cuts sequences below this."""


def _sequence(spec: Spec) -> tuple[Option, ...]:
    """Half the tokens, a quarter, …: what is cut off is not trained on."""
    lengths = []
    length = spec.seq_len // 2
    while length >= SHORTEST and "seq_len" in spec.stated:
        lengths.append(length)
        length //= 2
    return (LEAVE, *(Option(f"{one} tokens", {"seq_len": one}, Applicability.UNSAFE) for one in lengths))


def _optimizer(spec: Spec) -> tuple[Option, ...]:
    """bitsandbytes keeps 8-bit states of whole tensors, which ZeRO's flat partitions are not."""
    if spec.method != "full" or spec.engine == "deepspeed" or not spec.optimizer.startswith("adamw_torch"):
        return (LEAVE,)
    return (LEAVE, Option("8-bit AdamW", {"optimizer": "paged_adamw_8bit"}, Applicability.UNSAFE))
