"""Megatron-LM's own loop (``megatron.training.pretrain``), whose settings are its flags.

The flags are those of ``megatron/training/arguments.py`` (Megatron-LM core 0.12), and before it of
``megatron/arguments.py``, which Megatron-DeepSpeed has kept. The package is read nowhere: it builds model,
optimizer and ranks in ways of its own, so that nothing is said of its memory.
"""

from __future__ import annotations

from typing import Any

from lintfit.documents.numerals import natural
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.facts import certain

_FULL = ("checkpoint_activations", "activations_checkpoint_method")
"""Flags of older releases that recompute whole layers."""
_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_SHARDS = ("use_distributed_optimizer", "use_torch_fsdp2", "use_custom_fsdp", "use_megatron_fsdp")
"""Flags that share out the optimizer's states, or more, over the ranks."""


def read(reading: Reading) -> None:
    """Note what the flags say where the script hands over to Megatron's loop."""
    loop = certain(r for r in reading.records if r.name == "pretrain" and r.function.startswith("megatron."))
    if loop is None or not reading.walk.flags:
        return
    reading.found.trains = True
    reading.state("trainer", "megatron", loop.node)
    reading.derive("method", "full", "Megatron trains all of the model")
    _precision(reading)
    _number(reading, "micro_batch_size", "micro_batch_size")
    _number(reading, "seq_len", "seq_length", "encoder_seq_length")
    _accumulation(reading)
    _checkpointing(reading)
    if "deepspeed" not in reading.walk.flags:
        _engine(reading, loop)


def _put(reading: Reading, name: str, value: Any, flag: Flag) -> None:
    reading.settings[name] = Setting(name, value, Provenance("file", "", flag.origin))


def _whole(flag: Flag | None) -> int | None:
    return natural(flag.value) if flag is not None else None


def _number(reading: Reading, name: str, *flags: str) -> None:
    flag = next((reading.walk.flags[each] for each in flags if each in reading.walk.flags), None)
    if flag is not None:
        number = _whole(flag)
        _put(reading, name, UNKNOWN if number is None else number, flag)


def _precision(reading: Reading) -> None:
    """``--bf16`` and ``--fp16`` decide the parameters' dtype and that of the computation."""
    for name in ("bf16", "fp16"):
        if name in reading.walk.flags:
            _put(reading, "weights_dtype", name, reading.walk.flags[name])
            _put(reading, "mixed_precision", name, reading.walk.flags[name])
            return
    reading.default("weights_dtype", "fp32", "Megatron's default")
    reading.default("mixed_precision", "no", "Megatron's default")


def _accumulation(reading: Reading) -> None:
    """The global batch over micro-batch and data-parallel ranks; without a global batch there is one micro-batch."""
    name, total = "gradient_accumulation_steps", reading.walk.flags.get("global_batch_size")
    if total is None:
        reading.default(name, 1, "Megatron's global batch is one micro-batch of each rank by default")
        return
    world, micro = reading.walk.environment.get("WORLD_SIZE", ""), _whole(reading.walk.flags.get("micro_batch_size"))
    sizes = [_whole(reading.walk.flags[size]) for size in _PARALLEL if size in reading.walk.flags]
    samples = _whole(total)
    ranks = 1 if world == "" and "WORLD_SIZE" in reading.walk.environment else natural(world) or 0
    steps: Any = UNKNOWN
    if samples and micro and ranks and all(sizes) and "rampup_batch_size" not in reading.walk.flags:
        for size in sizes:
            ranks //= min(size or 1, ranks)
        steps = samples // (micro * ranks) if samples % (micro * ranks) == 0 else UNKNOWN
    _put(reading, name, steps, total)


def _checkpointing(reading: Reading) -> None:
    """Whole layers are recomputed; a part of each, or of some, is neither on nor off."""
    flags = reading.walk.flags
    granularity, method = flags.get("recompute_granularity"), flags.get("recompute_method")
    full = next((flags[name] for name in _FULL if name in flags), None)
    part = flags.get("recompute_activations") or granularity
    if granularity is not None and granularity.value == "full":
        blocks = method is not None and method.value != "uniform"
        _put(reading, "gradient_checkpointing", UNKNOWN if blocks else True, granularity)
    elif full is not None:
        _put(reading, "gradient_checkpointing", UNKNOWN if full.value == "block" else True, full)
    elif part is not None:
        _put(reading, "gradient_checkpointing", UNKNOWN, part)
    else:
        reading.default("gradient_checkpointing", False, "Megatron's default")


def _engine(reading: Reading, loop: Record) -> None:
    """Megatron's own data parallelism, which is none of the engines that lintfit knows."""
    reading.state("engine", UNKNOWN, loop.node, "Megatron's own engine")
    shards = next((reading.walk.flags[name] for name in _SHARDS if name in reading.walk.flags), None)
    offload = reading.walk.flags.get("optimizer_cpu_offload")
    for name, fallback, flag in (
        ("zero_stage", 0, shards), ("offload_optimizer", "none", offload), ("offload_param", "none", None),
    ):  # fmt: skip
        if flag is not None:
            _put(reading, name, UNKNOWN, flag)
        else:
            reading.default(name, fallback, "Megatron's own engine has no ZeRO")
