"""What a change of settings does to each part of a GPU's memory, and why it leaves the others as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lintfit.frozen import frozen
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.parameters import inventory

_STATES = ("parameters", "gradients", "optimizer_states", "master_weights")
_SAMPLES = ("activations", "logits")
_TRAINED = ("gradients", "optimizer_states", "master_weights")
_LITTLE = 0.5 * GIB
"""What nobody misses: less of a part is not spoken of."""


@frozen
class Change:
    """The run before and after, with both estimates."""

    before: Spec
    after: Spec
    was: Estimate
    now: Estimate

    def differs(self, *names: str) -> bool:
        """Whether any of these fields of the spec changes."""
        return any(getattr(self.before, name) != getattr(self.after, name) for name in names)

    def saved(self, *parts: str) -> int:
        """Bytes that these parts need less, each at its most; negative where they need more."""
        return sum(_most(self.was, part) - _most(self.now, part) for part in parts)

    def held(self, *parts: str) -> int:
        """Bytes of these parts behind the change, each at its most."""
        return sum(_most(self.now, part) for part in parts)


def effects(before: Spec, after: Spec, was: Estimate, now: Estimate) -> tuple[str, ...]:
    """A sentence for each thing that the change does or does not do, and what nvidia-smi shows beside the tensors."""
    change = Change(before, after, was, now)
    said = [sentence for explain in _EXPLAINED for sentence in explain(change)]
    beside = _most(now, "framework")
    said.append(
        f"nvidia-smi shows {_gib(beside)} more than torch counts: the CUDA context, NCCL, kernels' workspaces and what "
        "the allocator keeps"
    )
    return tuple(said)


def _most(estimate: Estimate, part: str) -> int:
    return max(moment.components.get(part, 0) for moment in estimate.moments)


def _gib(size: int) -> str:
    return f"{abs(size) / GIB:.1f} GiB"


def _by(size: int) -> str:
    """``−38.0 GiB``: a change of memory with its sign."""
    return "about as much as before" if abs(size) < 0.05 * GIB else f"{'−' if size > 0 else '+'}{_gib(size)}"


def _sharding(change: Change) -> Iterator[str]:
    """What the engine divides over the GPUs, and what it cannot."""
    if not change.differs("engine", "zero_stage", "fsdp"):
        return
    after = change.after
    what, parts = _shards(after)
    if after.data_parallel == 1:
        yield f"{what} on one GPU shares with nobody: nothing is divided"
        return
    if parts:
        yield f"{what} shards {_listed(parts)} over {after.data_parallel} GPUs: {_by(change.saved(*_STATES))}"
    else:
        yield f"{what} keeps parameters, gradients and optimizer states whole on every GPU"
    whole = [part for part in ("parameters", "gradients") if part not in parts and change.held(part) > _LITTLE]
    if parts and whole:
        yield f"{_listed(whole)} stay whole on every GPU ({_gib(change.held(*whole))}): only {_next(after)} shards them"
    if after.method == "lora":
        trained = sum(weight.numel * weight.copies for weight in inventory(after).weights if weight.trainable) / 1e9
        yield (
            f"adapters alone are trained ({trained:.2g} B): their gradients and optimizer states are "
            f"{_gib(change.held(*_TRAINED))}, so there is little of them to shard"
        )
    yield from _samples_stay(change, "every GPU has those of its own micro-batch")
    buffers = -change.saved("communication_buffers", "temporaries")
    if buffers > _LITTLE:
        yield f"buffers to gather and reduce in: +{_gib(buffers)}"


def _shards(spec: Spec) -> tuple[str, tuple[str, ...]]:
    """The engine by its name, and what of the model's states it divides."""
    if spec.engine == "deepspeed":
        parts = {0: (), 1: ("optimizer_states",), 2: ("gradients", "optimizer_states")}
        return f"ZeRO-{spec.zero_stage}", parts.get(spec.zero_stage, ("parameters", "gradients", "optimizer_states"))
    if spec.engine == "fsdp" and spec.fsdp is not None:
        whole = spec.fsdp.strategy == "NO_SHARD"
        grad_op = spec.fsdp.strategy in ("SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2")
        parts_of = ("gradients", "optimizer_states") if grad_op else ("parameters", "gradients", "optimizer_states")
        return f"FSDP {spec.fsdp.strategy}", () if whole else parts_of
    return ("DDP" if spec.engine == "ddp" else "one process"), ()


def _next(spec: Spec) -> str:
    return "FULL_SHARD" if spec.engine == "fsdp" else "ZeRO-2 and 3" if spec.zero_stage == 1 else "ZeRO-3"


def _offload(change: Change) -> Iterator[str]:
    for name, what, parts in (
        ("offload_optimizer", "the optimizer", ("optimizer_states", "master_weights")),
        ("offload_param", "the parameters", ("parameters",)),
    ):
        if change.differs(name):
            device = getattr(change.after, name)
            place = {"cpu": "goes to the host", "nvme": "goes to NVMe", "none": "comes back to the GPU"}[device]
            place = place.replace("goes", "go").replace("comes", "come") if what == "the parameters" else place
            host = change.now.host.steady
            more = f"; a machine's host then holds {_gib(host)}" if device != "none" else ""
            yield f"{what} {place}: {_by(change.saved(*parts))} on the GPU{more}"
            if name == "offload_optimizer" and change.held("gradients") > _LITTLE and device != "none":
                yield f"gradients are still made on the GPU: {_gib(change.held('gradients'))} at the most"
    if change.differs("offload_optimizer", "offload_param") and not change.differs("engine", "zero_stage"):
        yield from _samples_stay(change, "nothing of a micro-batch is offloaded")


def _method(change: Change) -> Iterator[str]:
    if not change.differs("method"):
        return
    if change.after.method != "lora":
        yield f"all weights have gradients and optimizer states: {_by(change.saved(*_TRAINED))}"
        return
    yield f"adapters alone have gradients and optimizer states: {_by(change.saved(*_TRAINED))}"
    if not change.differs("quantization"):
        yield f"the frozen weights stay in memory: {_gib(change.held('parameters'))}"
    if change.held("activations") > _LITTLE and not change.differs("gradient_checkpointing"):
        yield (
            f"backward still goes through every layer to reach the adapters: activations "
            f"{_was(change, 'activations')}, logits {_was(change, 'logits')}"
        )
    more, same = -change.saved("activations"), not change.differs("micro_batch_size", "seq_len")
    if more > _LITTLE and same and not change.after.gradient_checkpointing:
        yield (f"every adapter keeps an input of its own for the backward: +{_gib(more)}; checkpointing frees them")


def _quantization(change: Change) -> Iterator[str]:
    if not change.differs("quantization"):
        return
    bits = {"nf4": "four bits", "nf4-double": "four bits", "int8": "eight bits"}.get(change.after.quantization or "")
    where = f"in {bits}" if bits else "in other types"
    yield f"the frozen weights are stored {where}: {_by(change.saved('parameters'))}"
    yield from _samples_stay(change, "products are computed in 16 bits or more, whatever the weights are stored in")


def _checkpointing(change: Change) -> Iterator[str]:
    if not change.differs("gradient_checkpointing", "activation_offload"):
        return
    verb = "are computed again in backward" if change.after.gradient_checkpointing else "keep all that backward needs"
    yield f"layers {verb}: activations {_was(change, 'activations')}"
    logits = change.held("logits")
    if logits > _LITTLE and abs(change.saved("logits")) < _LITTLE:
        yield f"logits ({_gib(logits)}) stand outside the layers: tokens of a micro-batch times the vocabulary"


def _samples(change: Change) -> Iterator[str]:
    if not change.differs("micro_batch_size", "seq_len"):
        return
    was, now = (spec.micro_batch_size * spec.seq_len for spec in (change.before, change.after))
    yield (
        f"activations and logits go with the tokens of a micro-batch ({was:,} → {now:,}): "
        f"{_by(change.saved(*_SAMPLES))}"
    )
    if change.held(*_STATES) > _LITTLE:
        yield (f"parameters, gradients and optimizer states are the same for any batch: {_gib(change.held(*_STATES))}")


def _rest(change: Change) -> Iterator[str]:
    """What changes by settings without a sentence of their own."""
    if change.differs("gradient_accumulation_steps") and not change.differs("micro_batch_size"):
        yield "accumulation changes how often the optimizer steps, not what a micro-batch takes"
    if change.differs("weights_dtype") and not change.differs("quantization"):
        saved = _by(change.saved(*_STATES))
        yield f"weights in {change.after.weights_dtype}: parameters and all that has their dtype {saved}"
    if change.differs("optimizer"):
        yield f"{change.after.optimizer}: optimizer states {_was(change, 'optimizer_states')}"
    if change.differs("loss"):
        yield f"the loss ({change.after.loss}): logits {_was(change, 'logits')}"
    if change.differs("attention"):
        yield f"attention ({change.after.attention}): activations {_was(change, 'activations')}"


def _samples_stay(change: Change, reason: str) -> Iterator[str]:
    """That activations and logits stay, where they do and are worth a word."""
    if change.differs("micro_batch_size", "seq_len", "gradient_checkpointing", "loss", "attention"):
        return
    held, saved = change.held(*_SAMPLES), change.saved(*_SAMPLES)
    if held > _LITTLE and abs(saved) < 0.2 * held:
        yield f"activations and logits ({_gib(held)}) do not shrink: {reason}"


def _was(change: Change, part: str) -> str:
    return f"{_most(change.was, part) / GIB:.1f} → {_most(change.now, part) / GIB:.1f} GiB"


def _listed(parts: tuple[str, ...] | list[str]) -> str:
    words = [part.replace("_", " ") for part in parts]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


_EXPLAINED: tuple[Callable[[Change], Iterator[str]], ...] = (
    _sharding,
    _offload,
    _method,
    _quantization,
    _checkpointing,
    _samples,
    _rest,
)
