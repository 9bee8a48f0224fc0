"""Terms of FSDP."""

from __future__ import annotations

from lintfit.memory.engines import fsdp
from lintfit.memory.explain import tensors
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.explain.unsharded import load, tied
from lintfit.memory.spec import Fsdp, Spec
from lintfit.memory.tensors.optimizers import Optimizer, optimizer
from lintfit.memory.tensors.parameters import Inventory

ONE = "torch/distributed/fsdp/_flat_param.py"
TWO = "torch/distributed/fsdp/_fully_shard"


class _Case:
    """A run under FSDP with its units."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.settings = spec.fsdp or Fsdp()
        self.strategy = self.settings.strategy
        self.count = fsdp.sharers(spec)
        self.ranks: Factor = (self.count, "ranks")
        self.held: Inventory = fsdp.stored(spec)
        self.shard: Inventory = fsdp.sharded(self.held, self.count)
        self.stepped: Inventory = fsdp.optimized(spec, self.shard)
        self.layer, self.root = fsdp.units(spec, self.held)
        self.source = ONE if self.settings.version == 1 else TWO

    @property
    def entry(self) -> Optimizer:
        return optimizer(self.spec.optimizer, self.spec.versions)[0]


def terms(spec: Spec, state: str) -> list[Term]:
    """What one rank holds at a moment."""
    case = _Case(spec)
    if state == "load":
        return _load(case)
    steady = [] if case.settings.cpu_offload else [*_shards(case), *_states(case)]
    if state == "initialize":
        size = max(case.layer.gathered, case.root.gathered)
        what = "the largest unit while it is wrapped"
        return [*steady, term("communication_buffers", what, size, source=case.source)]
    if state in ("forward", "backward_start"):
        return [*steady, *_kept(case), *_at_turn(case, in_forward=state == "forward")]
    if state == "evaluate":
        return [*steady, *_at_turn(case, in_forward=True)]
    if state in ("first_gradient", "layer_end"):
        inside = _in_layer(case, ended=state == "layer_end")
        return [*steady, *_kept(case), *inside, *_pieces(case, case.layer.gradient, "a layer's")]
    if state == "backward_end" and fsdp.one_unit(spec):
        return [*steady, *_kept(case), *_unreduced(case), *_at_turn(case), *tied(spec, case.stepped)]
    if state == "backward_end":
        root = _gathered(case, case.root.gathered, "the root unit (embeddings, head, last norm)")
        late = [*_pieces(case, case.root.gradient, "the root unit's"), *tied(spec, case.stepped)]
        return [*steady, *_gradients(case), *(root if case.count > 1 else []), *late]
    if state == "save":
        kept = _gradients(case) if case.settings.version == 1 else []
        what = "the largest unit gathered for a full state dict"
        if fsdp.copies_to_save(case.spec):
            what += ", and the copies of all, which stay on the GPU"
        return [*steady, *kept, term("temporaries", what, fsdp.saved(case.spec, case.held), source=case.source)]
    stepping = [] if case.settings.cpu_offload else tensors.step(spec.optimizer, case.entry, case.stepped.weights)
    return [*steady, *_gradients(case), *stepping]


def _shards(case: _Case) -> list[Term]:
    found = []
    for weights in (case.held.trainables, tuple(w for w in case.held.weights if not w.trainable)):
        if any(weight.quantised for weight in weights):
            shard = fsdp.sharded(Inventory.of(weights), case.count)
            found.append(
                term("parameters", f"frozen weights over {case.count} ranks, block constants whole", shard.bytes)
            )
        else:
            found += tensors.parameters(weights, over=case.ranks, source=case.source)
    return found


def _states(case: _Case) -> list[Term]:
    each = "trained parameters of a shard"
    return tensors.optimizer_states(case.spec.optimizer, case.entry, case.stepped.weights, whole=each)


def _gradients(case: _Case) -> list[Term]:
    if case.settings.cpu_offload:
        return []
    return tensors.gradients(case.held.weights, over=case.ranks, what="reduced gradients", source=case.source)


def _kept(case: _Case) -> list[Term]:
    numel = case.held.trainable
    if case.spec.gradient_accumulation_steps < 2 or not numel:
        return []
    if fsdp.reduces_each(case.spec):
        return _gradients(case)
    size = fsdp.accumulated(case.spec, case.held, case.shard)
    what = "whole gradients of earlier micro-batches (no_sync)"
    factors = ((size / numel, "bytes"), (numel, "trained parameters"))
    return [term("gradients", what, size, *factors, source="accelerate no_sync")]


def _gathered(case: _Case, size: int, what: str, copies: int = 1) -> list[Term]:
    factors: tuple[Factor, ...] = ((copies, "units"), (size, "bytes gathered")) if copies > 1 else ()
    return [term("communication_buffers", what, copies * size, *factors, source=case.source)]


def _unreduced(case: _Case) -> list[Term]:
    """The gradients of one unit for all, and the flat one that FSDP 1 makes of them."""
    size, flat = fsdp.whole_gradient(case.spec, case.held), fsdp.flat_gradient(case.spec, case.held)
    numel = case.held.trainable
    if not size:
        return []
    factors = ((size / numel, "bytes"), (numel, "trained parameters"))
    pieces = term(
        "gradients", "whole gradients, none reduced before the last is made", size, *factors, source=case.source
    )
    copy = term("communication_buffers", "the same as one flat gradient", flat, source=case.source)
    return [pieces, copy] if flat else [pieces]


def _everything(case: _Case) -> list[Term] | None:
    if case.count == 1:
        return []
    if fsdp.one_unit(case.spec):
        return _gathered(case, case.root.gathered, "the whole model, which is one unit")
    if case.settings.gathers == 1:
        whole = sum(fsdp.gathered_bytes(case.spec, weight) for weight in case.held.weights)
        return _gathered(case, whole, f"all parameters gathered ({case.strategy})")
    return None


def _at_turn(case: _Case, in_forward: bool = False) -> list[Term]:
    if in_forward and fsdp.one_unit(case.spec) and fsdp.forward_copies(case.spec) > 1:
        return _gathered(case, case.root.gathered, "the whole model, and the buffer that it was gathered in", 2)
    everything = _everything(case)
    if everything is not None:
        return everything
    return _gathered(case, case.root.gathered, "the root unit (embeddings, head, last norm)")


def _in_layer(case: _Case, ended: bool) -> list[Term]:
    everything = _everything(case)
    if everything is not None:
        return everything
    root = _gathered(case, case.root.gathered, "the root unit (embeddings, head, last norm)")
    if fsdp.wraps_adapters(case.spec) and not ended:
        return [*root, *_gathered(case, case.layer.gathered, "a layer; the unit ahead is one adapter matrix")]
    return [*root, *_gathered(case, case.layer.gathered, "a layer and the next, fetched ahead", 2)]


def _pieces(case: _Case, size: int, whose: str) -> list[Term]:
    if case.count == 1 or not size:
        return []
    factors = ((2, "copies"), (size, "bytes"))
    what = f"{whose} gradient in pieces and as one flat tensor"
    return [term("temporaries", what, 2 * size, *factors, source=case.source)]


def _load(case: _Case) -> list[Term]:
    if case.spec.loaded_on_gpu:
        return load(case.spec, case.held)
    unit = term("temporaries", "the largest unit before it is sharded", fsdp.unit_stored(case.spec, case.held))
    late = [item for item in load(case.spec, case.held) if item.component == "temporaries"]
    return [*([] if case.settings.cpu_offload else _shards(case)), unit, *late]
