"""What each optimizer keeps per parameter and what its step allocates: one table entry per name.

Bytes are per trainable element unless said otherwise. ``alike`` counts state tensors in the parameter's dtype,
``fp32`` those that are fp32 whatever the parameter is. Names are transformers' (``OptimizerNames``) and
DeepSpeed's ``optimizer.type`` in lower case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from lintfit.frozen import frozen, replace
from lintfit.memory.spec import DTYPE_BYTES
from lintfit.memory.tensors import adafactor
from lintfit.memory.tensors.parameters import Weight, rounded
from lintfit.memory.versions import release

Step = Literal["fused", "foreach", "single", "adafactor", "muon"]

FOREACH = (2, 0)
"""The first torch version whose optimizers step through all tensors at once where nobody asks for it
(``_default_to_fused_or_foreach``); before, one after the other."""

ONE_COPY = (2, 1)
"""The first torch version whose AdamW adds epsilon to the roots in place; before, it had them twice
(``adamw.py:_multi_tensor_adamw``: ``denom = torch._foreach_add(exp_avg_sq_sqrt, eps)`` in 2.0.1)."""

MIN_8BIT = 4096
"""Elements below which bitsandbytes keeps a state in 32 bits (``Optimizer8bit.min_8bit_size``)."""
QUANT_BLOCK = 256
"""Elements that share one fp32 absmax in an 8-bit state (bitsandbytes ``blocksize`` since 0.44)."""
MIN_PAGED = 100_000
"""Elements below which a paged optimizer keeps a state on the GPU (bitsandbytes ``get_state_buffer``)."""


@frozen
class Optimizer:
    """One optimizer. ``eight_bit`` counts block-wise 8-bit states, ``paged`` says that they live in unified memory."""

    alike: int = 0
    fp32: int = 0
    bf16: int = 0
    eight_bit: int = 0
    four_bit: int = 0
    factored: bool = False
    step: Step = "fused"
    copies: int = 1
    """Copies that a step makes: of a parameter group in a foreach step, of a tensor in a single one."""
    paged: bool = False
    note: str = ""
    """What is not exact about it; it is reported among what is not modelled."""


ADAMW = Optimizer(alike=2)
ADAMW_FOREACH = Optimizer(alike=2, step="foreach")
ADAM_8BIT = Optimizer(eight_bit=2)

TABLE: dict[str, Optimizer] = {
    "adamw_torch": ADAMW_FOREACH,
    "adamw_torch_fused": ADAMW,
    "adamw_torch_xla": ADAMW_FOREACH,
    "adamw_torch_npu_fused": ADAMW,
    "adamw_apex_fused": Optimizer(fp32=2),
    "adamw_hf": Optimizer(alike=2, note="adamw_hf: the step's temporaries (one tensor at a time)"),
    "adamw_anyprecision": Optimizer(fp32=1, bf16=1),
    "adamw_torch_8bit": Optimizer(eight_bit=2),
    "adamw_torch_4bit": Optimizer(four_bit=2),
    "adam": ADAMW,
    "adamw": ADAMW,
    "adamw_8bit": ADAM_8BIT,
    "adamw_bnb_8bit": ADAM_8BIT,
    "paged_adamw": Optimizer(fp32=2, paged=True),
    "paged_adamw_32bit": Optimizer(fp32=2, paged=True),
    "paged_adamw_8bit": Optimizer(eight_bit=2, paged=True),
    # adam-mini 1.1.1: one second moment a row of a matrix or a head; temporaries of one tensor (adam_mini.py:step).
    "adam_mini": Optimizer(alike=1, step="single", copies=2),
    "ademamix": Optimizer(fp32=3),
    "ademamix_8bit": Optimizer(eight_bit=3),
    "paged_ademamix_32bit": Optimizer(fp32=3, paged=True),
    "paged_ademamix_8bit": Optimizer(eight_bit=3, paged=True),
    "lion": Optimizer(fp32=1),
    "lion_32bit": Optimizer(fp32=1),
    "lion_8bit": Optimizer(eight_bit=1),
    "paged_lion": Optimizer(fp32=1, paged=True),
    "paged_lion_32bit": Optimizer(fp32=1, paged=True),
    "paged_lion_8bit": Optimizer(eight_bit=1, paged=True),
    "adafactor": Optimizer(factored=True, step="adafactor"),
    "sgd": Optimizer(),
    "sgd_momentum": Optimizer(alike=1),
    "adagrad": Optimizer(alike=1, step="foreach", copies=2),
    "rmsprop": Optimizer(alike=1, step="foreach"),
    "rmsprop_bnb": Optimizer(fp32=1),
    "rmsprop_bnb_8bit": Optimizer(eight_bit=1),
    "rmsprop_bnb_32bit": Optimizer(fp32=1),
    "lamb": Optimizer(alike=2, note="lamb: the step's temporaries"),
    "muon": Optimizer(alike=1, step="muon"),
    "stable_adamw": Optimizer(alike=2),
    "schedule_free_radam": Optimizer(alike=2),
    "schedule_free_adamw": Optimizer(alike=2),
    "schedule_free_sgd": Optimizer(alike=1),
    "grokadamw": Optimizer(alike=3, note="grokadamw: the step's temporaries"),
    "lomo": Optimizer(),
    "adalomo": Optimizer(factored=True),
}

PROJECTED = ("galore", "apollo")
"""Prefixes of optimizers with low-rank states: their size depends on a rank that the spec does not carry."""

BLOCKWISE = "badam"
"""Prefix of an optimizer that trains one block after the other: it has gradients and states of that alone (BAdam,
arXiv 2404.02827), whose size the spec does not carry."""


def optimizer(name: str, versions: Mapping[str, str]) -> tuple[Optimizer, tuple[str, ...]]:
    """The entry for a name as torch's version has it, and what it leaves unmodelled."""
    entry, not_modelled = _listed(name)
    torch = release(versions.get("torch"))
    if entry.step == "foreach" and torch is not None and torch < FOREACH:
        entry = replace(entry, step="single")
    elif entry == ADAMW_FOREACH and torch is not None and torch < ONE_COPY:
        entry = replace(entry, copies=2)
    return entry, not_modelled


def _listed(name: str) -> tuple[Optimizer, tuple[str, ...]]:
    """The table's entry for a name, and what it leaves unmodelled.

    A name that is not in the table counts as AdamW with a foreach step. For low-rank states that is an upper bound; for
    an optimizer that nobody knows it is a guess, and no verdict is built on it.
    """
    found = TABLE.get(name.lower())
    if found is not None:
        return found, (found.note,) if found.note else ()
    if name.lower().startswith(BLOCKWISE):
        return ADAMW_FOREACH, (
            f"optimizer {name}: one block's gradients and states; AdamW's of all are counted instead",
        )
    if name.lower().startswith(PROJECTED):
        full = ADAM_8BIT if "8bit" in name.lower() else ADAMW_FOREACH
        return full, (f"optimizer {name}: low-rank states; AdamW's full states are counted instead",)
    return ADAMW_FOREACH, (f"optimizer {name}: unknown; AdamW's states and step are counted instead",)


def counted(name: str) -> bool:
    """Whether the states of an optimizer are those that are counted for it."""
    return name.lower() in TABLE


def updates_in_backward(name: str) -> bool:
    """Whether hooks update each parameter as soon as its gradient is made, which goes then.

    LOMO's (``lomo_optim/lomo.py:fuse_update``, which accelerate's ``lomo_backward`` runs) and transformers' layerwise
    ones (``trainer_optimizer.py:_setup_low_rank_optimizer``), on one process only.
    """
    return name.lower() in ("lomo", "adalomo") or name.lower().endswith("_layerwise")


def bounded(name: str) -> bool:
    """Whether it has at least no more states than are counted for it."""
    return counted(name) or name.lower().startswith((*PROJECTED, BLOCKWISE))


def _factored(shape: tuple[int, ...]) -> int:
    """Elements of Adafactor's row and column averages; a vector keeps a full second moment."""
    if len(shape) < 2:
        return math.prod(shape)
    return math.prod(shape[:-1]) + math.prod(shape[:-2]) * shape[-1]


def tensor_state(entry: Optimizer, weight: Weight) -> int:
    """Bytes of the states of one copy of one tensor, every state an own allocation."""
    n, itemsize = weight.numel, DTYPE_BYTES[weight.dtype]
    size = entry.alike * rounded(itemsize * n) + entry.fp32 * rounded(4 * n) + entry.bf16 * rounded(2 * n)
    if entry.eight_bit:
        # HF's Trainer registers embeddings for 32-bit states with bitsandbytes.
        if n < MIN_8BIT or weight.role == "embedding":
            size += entry.eight_bit * rounded(4 * n)
        else:
            size += entry.eight_bit * (rounded(n) + rounded(4 * -(-n // QUANT_BLOCK)))
    if entry.four_bit:
        size += entry.four_bit * (rounded(4 * n) if n < MIN_8BIT else rounded(n // 2) + rounded(4 * -(-n // 128)))
    if entry.factored:
        size += rounded(4 * _factored(weight.shape))
    if entry.step == "muon" and (weight.role != "linear" or len(weight.shape) != 2):
        size += rounded(itemsize * n)
    if entry.step == "fused" and entry.alike == 2:
        size += rounded(4)
    return size


def state_bytes(entry: Optimizer, weights: Iterable[Weight]) -> int:
    """Bytes of all states for separate trainable tensors, wherever they live."""
    return sum(tensor_state(entry, weight) * weight.copies for weight in weights if weight.trainable)


def resident_bytes(entry: Optimizer, weights: Iterable[Weight]) -> int:
    """Bytes of the states that must be on the GPU: paged ones of large tensors may be evicted."""
    trainable = [weight for weight in weights if weight.trainable]
    if entry.paged:
        small = [weight for weight in trainable if weight.numel < MIN_PAGED]
        scales = sum(
            entry.eight_bit * rounded(4 * -(-weight.numel // QUANT_BLOCK)) * weight.copies
            for weight in trainable
            if entry.eight_bit and weight.numel >= MIN_PAGED and weight.role != "embedding"
        )
        return state_bytes(entry, small) + scales
    return state_bytes(entry, trainable)


def flat_state_bytes(entry: Optimizer, numel: int, itemsize: int = 4) -> int:
    """Bytes of the states for a flat partition of ``numel`` elements of ``itemsize`` bytes (ZeRO's masters)."""
    size = numel * (entry.alike * itemsize + entry.fp32 * 4 + entry.bf16 * 2)
    if entry.eight_bit:
        size += entry.eight_bit * (numel + 4 * -(-numel // QUANT_BLOCK))
    if entry.four_bit:
        size += entry.four_bit * (numel // 2 + 4 * -(-numel // 128))
    if entry.factored:
        # A flat partition is one-dimensional, so Adafactor keeps a full second moment of it.
        size += 4 * numel
    return size


def step_temporaries(entry: Optimizer, weights: Iterable[Weight]) -> int:
    """Bytes that the optimizer step allocates beside parameters, gradients and states, at its largest point.

    foreach: ``_foreach_sqrt`` of the second moments of a whole parameter group (torch ``_multi_tensor_adamw``);
    measured as 1.0 x parameter bytes on an A100. Adagrad has the scaled gradients beside it
    (``_multi_tensor_adagrad``). The larger of the Trainer's two groups counts. Fused: none. Single: the root of one
    tensor's second moments, and Adam's quotient of it (``_single_tensor_adamw``: ``denom``).
    Adafactor: :func:`.adafactor.worst`. Muon: three half-precision matrices of the Newton-Schulz iteration.
    """
    trainable = [weight for weight in weights if weight.trainable]
    match entry.step:
        case "foreach":
            decayed = sum(weight.bytes for weight in trainable if weight.decays)
            return entry.copies * max(decayed, sum(weight.bytes for weight in trainable) - decayed)
        case "single":
            return _roots(entry) * max([rounded(weight.storage) for weight in trainable], default=0)
        case "adafactor":
            turn = adafactor.worst(trainable)
            return turn.total if turn is not None else 0
        case "muon":
            return max((6 * weight.numel for weight in trainable if weight.role == "linear"), default=0)
    return 0


def flat_step_temporaries(entry: Optimizer, numel: int, itemsize: int = 4) -> int:
    """Bytes of the step's temporaries for one flat tensor of ``numel`` elements."""
    match entry.step:
        case "foreach":
            return entry.copies * itemsize * numel
        case "single":
            return _roots(entry) * itemsize * numel
        case "adafactor":
            return (8 if itemsize == 4 else 16) * numel
        case "muon":
            return 0
    return 0


def _roots(entry: Optimizer) -> int:
    """Temporaries of a tensor's size in a step that takes one tensor after the other."""
    return max(entry.copies, 2 if entry.alike > 1 else 1)
