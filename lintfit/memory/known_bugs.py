"""Bugs of certain versions that cost memory: which versions, when, how much, and where it was reported and mended.

Each was read in the source of the versions on either side of it (the ``source`` of its row). A version counts where it
is stated or pinned; what nobody states is the newest, which has none of these. ``counted`` are those that the moments
of an estimate have already, so that their bytes come on top of the high end of no range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lintfit.memory.engines import merging, resuming
from lintfit.memory.engines.fsdp import flattened
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.saving import reordered
from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.spec import DTYPE_BYTES, GIB, Spec
from lintfit.memory.tensors.lora import flattens_adapters
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.versions import Release, release


class Bug(NamedTuple):
    """One row: a bug of ``library`` from ``since`` on (None: always) and before ``until``."""

    name: str
    library: str
    since: str | None
    until: str
    cost: Callable[[Spec], int | None]
    """Bytes on one GPU; 0 where it costs nothing of a size that is known; None where the run does not meet it."""
    what: str
    """What is wrong, and when it shows."""
    source: str
    counted: bool = False
    instead: str = ""
    """What does without the newer version."""
    stated_by: tuple[str, str] = ("", "")
    """A setting and the argument that must state it in a file, where a spec alone does not say whose way it is."""


class Met(NamedTuple):
    """A bug that a run meets, with its version and what it costs on one GPU."""

    bug: Bug
    version: str
    bytes: int

    @property
    def said(self) -> str:
        """``bitsandbytes 0.38.1 …: 30.2 GiB (bitsandbytes#324); 0.39.1 mends it``"""
        size = f": {self.bytes / GIB:.1f} GiB" if self.bytes else ""
        bug = self.bug
        return f"{bug.library} {self.version} {bug.what}{size} ({bug.source}); {bug.library} {bug.until} mends it"


def _saved_in_rows(spec: Spec) -> int | None:
    return reordered(spec, inventory(spec)) or None if spec.saves else None


def _states_on_gpu(spec: Spec) -> int | None:
    alone = spec.engine == "single" and spec.front_end == "transformers"
    return _states(spec) or None if spec.resumes and alone else None


def _states_copied(spec: Spec) -> int | None:
    unsharded = spec.engine in ("single", "ddp")
    return _states(spec) or None if spec.resumes and unsharded and resuming.reads_on_gpu(spec) else None


def _states(spec: Spec) -> int:
    return states(spec).forward.get("optimizer_states", 0)


def _square_mask(spec: Spec) -> int | None:
    positions = spec.facts.max_positions
    if not spec.facts.code.square_mask or not positions or spec.attention == "flash_attention_2":
        return None
    half = spec.mixed_precision != "no" and spec.engine != "deepspeed" and spec.weights_dtype == "fp32"
    width = DTYPE_BYTES["fp32" if half else spec.weights_dtype]
    size = positions**2 * (1 + spec.micro_batch_size * width)
    return size if size > GIB // 8 else None


def _frozen_upcast(spec: Spec) -> int | None:
    """fp32 in the place of the frozen base's 16 bits, sharded as it is."""
    if spec.engine != "fsdp" or spec.fsdp is None or spec.fsdp.version != 2 or spec.mixed_precision == "no":
        return None
    if spec.method != "lora" or spec.quantization is not None or spec.weights_dtype == "fp32":
        return None
    frozen = sum(weight.numel * weight.copies for weight in inventory(spec).weights if not weight.trainable)
    return (4 - DTYPE_BYTES[spec.weights_dtype]) * frozen // max(1, spec.sharding_ranks) or None


def _merged_wide(spec: Spec) -> int | None:
    return merging.widened(spec) or None if spec.merges else None


def _frozen_gradients(spec: Spec) -> int | None:
    """Gradients of what is frozen, which FSDP 1 has flattened into one parameter with what is trained."""
    if spec.front_end != "litgpt" or not flattens_adapters(spec):
        return None
    held, own = states(spec), inventory(spec)
    most = max(each.get("gradients", 0) for each in (held.forward, held.reduced, held.backward_end))
    flat = flattened(spec, own).trainable
    return most * (flat - own.trainable) // flat or None


def _gathered_on_each_gpu(spec: Spec) -> int | None:
    if spec.engine != "fsdp" or spec.fsdp is None or spec.fsdp.version != 2:
        return None
    held, fp32 = inventory(spec), spec.mixed_precision != "no"
    frozen = held.bytes - held.trainable_bytes
    return frozen + (4 * held.trainable if fp32 else held.trainable_bytes)


def _whole_while_loading(spec: Spec) -> int | None:
    return 0 if spec.engine == "fsdp" and spec.fsdp is not None and spec.fsdp.version == 2 else None


def _masters_on_gpu(spec: Spec) -> int | None:
    config = zero_config(spec) if spec.engine == "deepspeed" else None
    if config is None or config.stage not in (1, 2) or not config.offload_optimizer:
        return None
    return config.master * inventory(spec).trainable // max(1, spec.sharding_ranks)


def _left_gathered(spec: Spec) -> int | None:
    """Adapters alone trained by DPO and its like: the same modules run once more, without adapters and gradients."""
    config = zero_config(spec) if spec.engine == "deepspeed" else None
    if config is None or config.stage != 3 or spec.trainer not in ("dpo", "kto") or spec.method != "lora":
        return None
    return 0 if not spec.reference_model else None


def _leaks_activations(spec: Spec) -> int | None:
    return 0 if spec.activation_offload and spec.front_end == "transformers" else None


BUGS = (
    Bug("bnb-save", "bitsandbytes", "0.38.0", "0.39.1", _saved_in_rows,
        "copies all 8-bit weights on the GPU as the model is saved", "bitsandbytes#324, #503", counted=True),
    Bug("resume-on-gpu", "transformers", None, "4.28.0", _states_on_gpu,
        "reads the optimizer's states on the GPU as it resumes", "transformers#22123, #22159", counted=True),
    Bug("resume-copies", "torch", None, "2.1.0", _states_copied,
        "copies the optimizer's states as a checkpoint's are taken over (load_state_dict)",
        "torch/optim/optimizer.py: deepcopy(state_dict)", counted=True),
    Bug("square-mask", "transformers", "4.38.0", "4.39.0", _square_mask,
        "holds a causal mask of max_position_embeddings squared for each sample, whatever its length",
        "transformers#29484, #30010"),
    Bug("fsdp2-frozen-fp32", "accelerate", "1.6.0", "1.13.0", _frozen_upcast,
        "makes also the frozen weights fp32 under FSDP 2 with mixed precision", "accelerate#3844, #3848"),
    Bug("fsdp2-load", "accelerate", "1.6.0", "1.7.0", _whole_while_loading,
        "has the whole model on each GPU as FSDP 2 loads it (cpu_ram_efficient_loading)", "accelerate#3482"),
    Bug("fsdp2-get-state-dict", "accelerate", "1.7.0", "1.8.0", _gathered_on_each_gpu,
        "gathers the whole model on every GPU in get_state_dict under FSDP 2", "accelerate#3633, accelerator.py",
        instead="accelerator.save_state with SHARDED_STATE_DICT saves each rank's part",
        stated_by=("gathered_state_dict", "get_state_dict")),
    Bug("fsdp1-frozen-gradients", "litgpt", None, "0.5.11", _frozen_gradients,
        "wraps trained adapters and frozen weights as one under FSDP 1: gradients as if nothing was frozen",
        "litgpt#1417, #1538", counted=True),
    Bug("merged-in-fp32", "peft", "0.10.0", "0.12.0", _merged_wide,
        "makes 16-bit weights fp32 as adapters are merged into them", "peft#1939, #1944", counted=True),
    Bug("masters-on-gpu", "deepspeed", "0.14.1", "0.17.0", _masters_on_gpu,
        "puts offloaded fp32 masters on the GPU behind each step of ZeRO-1 and 2, to cast them there",
        "DeepSpeed#7309", counted=True),
    Bug("zero3-left-gathered", "deepspeed", None, "0.16.0", _left_gathered,
        "leaves parameters gathered under ZeRO-3 where a module runs twice in a step, as DPO's reference without "
        "adapters does", "DeepSpeed#6726"),
    Bug("trl-offload-leak", "trl", "0.18.0", "1.5.0", _leaks_activations,
        "keeps tensors of earlier steps with activation_offloading", "trl#5700, #5730",
        stated_by=("activation_offload", "activation_offloading")),
)  # fmt: skip


def met(spec: Spec) -> Iterator[Met]:
    """The bugs that a run meets with the versions that are stated."""
    for bug in BUGS:
        version = spec.versions.get(bug.library)
        if version is None or not affected(bug, release(version)):
            continue
        size = bug.cost(spec)
        if size is not None:
            yield Met(bug, version, size)


def affected(bug: Bug, version: Release | None) -> bool:
    if version is None:
        return False
    since, until = release(bug.since), release(bug.until)
    return (since is None or version >= since) and until is not None and version < until


def on_top(spec: Spec) -> tuple[int, tuple[str, ...]]:
    """Bytes on top of an estimate's moments that these bugs take, and what it says of all; a bug that files have to
    state is left to who reads them."""
    found = [each for each in met(spec) if not each.bug.stated_by[0]]
    size = sum(each.bytes for each in found if not each.bug.counted)
    return size, tuple(f"known bug: {each.said}" for each in found)
