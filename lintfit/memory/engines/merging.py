"""Adapters that are merged into the model on the host (PEFT ``merge_and_unload``): one matrix after the other.

Beside all weights there are the product of the largest matrix's adapters and its scaled copy, in fp32 on a CPU
(``tuners/lora/layer.py:get_delta_weight``). PEFT 0.10 and 0.11 add it out of place, so that 16-bit weights become fp32
where adapters are (peft#1939, mended by #1944).
"""

from __future__ import annotations

from lintfit.memory.spec import DTYPE_BYTES, GIB, Spec
from lintfit.memory.tensors.lora import adapters
from lintfit.memory.tensors.parameters import loaded_dtype
from lintfit.memory.tensors.weights import adapter_dtype, loaded_parameters
from lintfit.memory.versions import release

OUT_OF_PLACE = ((0, 10, 0), (0, 12, 0))
"""The PEFT from and before which the difference is added out of place (34f3fba2b, 2ce83e05c)."""


def on_host(spec: Spec) -> int:
    """Bytes of a machine's memory while adapters are merged there."""
    if spec.method != "lora":
        return 0
    weights = loaded_parameters(spec) * DTYPE_BYTES[loaded_dtype(spec)]
    return weights + difference(spec) + widened(spec)


def difference(spec: Spec) -> int:
    """Bytes for the difference of the largest matrix: the product of its adapters, and that times the scale."""
    return 2 * 4 * _largest(spec)


def on_gpu(spec: Spec) -> int:
    """The same on a GPU, in the adapters' dtype, where a trainer merges them for a while (``merge_adapter``)."""
    return 2 * DTYPE_BYTES[adapter_dtype(spec)] * _largest(spec)


def _largest(spec: Spec) -> int:
    """Elements of the largest matrix that has adapters."""
    return max((out * into for out, into, _ in _matrices(spec)), default=0)


def widened(spec: Spec) -> int:
    """Bytes more of the merged weights where these become fp32."""
    version = release(spec.versions.get("peft"))
    if version is None or not OUT_OF_PLACE[0] <= version < OUT_OF_PLACE[1] or spec.lora_dtype != "fp32":
        return 0
    return (4 - DTYPE_BYTES[loaded_dtype(spec)]) * sum(out * into * copies for out, into, copies in _matrices(spec))


def _matrices(spec: Spec) -> list[tuple[int, int, int]]:
    """Rows, columns and number of the matrices that have adapters."""
    by_module: dict[str, dict[str, tuple[int, int]]] = {}
    for weight in adapters(spec):
        module, _, part = weight.name.rpartition(".lora_")
        by_module.setdefault(module, {})[part[:1]] = weight.numel // max(1, spec.lora_rank), weight.copies
    return [(parts["B"][0], parts["A"][0], parts["A"][1]) for parts in by_module.values() if {"A", "B"} <= parts.keys()]


def said(spec: Spec) -> str:
    """What merging takes, in words."""
    more = widened(spec)
    wider = f", and {more / GIB:.1f} GiB as 16-bit weights become fp32" if more else ""
    return (
        f"merging: {on_host(spec) / GIB:.1f} GiB of a machine's memory: all weights, with {difference(spec) / GIB:.1f} "
        f"GiB for the difference of the largest matrix{wider}; on a GPU it is as much there"
    )
