"""What a spec's DeepSpeed JSON states of the run, in the words of a spec.

The keys and their old forms are DeepSpeed 0.19.8's (``runtime/config.py``, ``runtime/zero/config.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.memory.reading.keys import READERS
from lintfit.memory.spec import section

AUTO = "auto"

_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "micro_batch_size": ("train_micro_batch_size_per_gpu",),
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "sequence_parallel": ("sequence_parallel_size",),
    "tensor_parallel": ("tensor_parallel", "autotp_size"),
}
"""Where the JSON has the numbers of a spec; 0 and null leave them to the default."""

_OFFLOADS: Mapping[str, str] = {"offload_optimizer": "cpu_offload", "offload_param": "cpu_offload_param"}
"""The sections that offload, and the flags that did so before."""


def stated(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the JSON states and the spec itself does not; nothing where another engine runs.

    Raises :class:`~lintfit.memory.reading.contradictions.SpecError` for a value that is not allowed.
    """
    config = values.get("deepspeed_config")
    if config is None or values.get("engine", "deepspeed") != "deepspeed":
        return {}
    found = {}
    for key, where, value in _stated(config):
        if key not in values and value != AUTO:
            found[key] = READERS[key](f"deepspeed_config.{where}", value)
    return found


def _stated(config: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Keys of a spec with the place of the JSON and the value there."""
    for key, path in _NUMBERS.items():
        value = section(config, path[0]).get(path[1]) if len(path) > 1 else config.get(path[0])
        if value:
            yield key, ".".join(path), value
    for precision, old in (("bf16", "bfloat16"), ("fp16", "")):
        name = old if old in config and precision not in config else precision
        if section(config, name).get("enabled") is True:
            yield "mixed_precision", f"{name}.enabled", precision
    zero = section(config, "zero_optimization")
    if zero.get("stage") is not None:
        yield "zero_stage", "zero_optimization.stage", zero["stage"]
    for key, old in _OFFLOADS.items():
        if zero.get(key) is not None:
            yield key, f"zero_optimization.{key}.device", zero[key].get("device", "none")
        elif zero.get(old) is True:
            yield key, f"zero_optimization.{old}", "cpu"
