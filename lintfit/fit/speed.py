"""How much slower a step gets: a first-order model, only ever quoted as a ratio of two of its results.

Compute: 6 FLOPs per parameter and token for forward and backward, 8 with full recomputation (Narayanan et al. 2021,
section 5.1). Communication: data parallelism moves 2 P elements a step, ZeRO-3 3 P with a gather in forward and one in
backward at every micro-batch (Rajbhandari et al. 2020, section 7). Offload: gradients go down and updated weights come
back over PCIe, and the host's Adam reads and writes 28 bytes a parameter (Ren et al. 2021, section 5).
Compute and communication are taken as not overlapped, the slower end of the truth.
"""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.memory.parameters import inventory
from lintfit.memory.spec import Spec

TFLOPS: Mapping[str, float] = {
    "B200": 2250, "H200": 989, "H100": 989, "GH200": 989, "H800": 989, "A100": 312, "A800": 312, "A40": 150, "A30": 165,
    "A10G": 70, "A10": 125, "A6000": 155, "A5000": 111, "A4000": 77, "L40S": 362, "L40": 181, "L4": 121,
    "6000 Ada": 364, "5090": 210, "4090": 165, "4080": 97, "3090": 71, "3080": 60, "2080": 54, "V100": 125, "P100": 19,
    "T4": 65,
}  # fmt: skip
"""Dense 16-bit tensor TFLOPS with fp32 accumulation, from the vendors' data sheets, by a part of the card's name."""

_DEFAULT_TFLOPS = 150.0
UTILISATION = 0.4
"""Share of peak FLOPS that fine-tuning reaches; the usual range is 0.3 to 0.5 (Narayanan et al. 2021, table 1)."""

NF4_SLOWDOWN = 1.4
"""Time with nf4 weights over that with bf16 weights: LoRA on one A10G takes 1.39 (Llama-2-7B), 1.44 (Mistral-7B) and
1.37 (Gemma-2B) times as long in LitGPT's own table (``config_hub/finetune/README.md``, 0.5.13)."""

_NVLINK = ("SXM", "H100", "H200", "H800", "B200", "GH200")
NVLINK_BYTES_PER_S = 200e9
"""Bus bandwidth of a ring over NVLink 3 as nccl-tests reach it on eight A100."""
PCIE_BYTES_PER_S = 12e9
"""What one PCIe 3.0 x16 link moves one way."""
HOST_BYTES_PER_S = 100e9
"""Memory bandwidth that DeepSpeedCPUAdam sees on a two-socket host."""
ADAM_BYTES_PER_PARAMETER = 28
"""fp32 master, two moments and gradient read, three of them written back."""


def step_seconds(spec: Spec) -> float:
    """Seconds that one optimizer step of one rank takes, in the model above. Only ratios of it mean anything."""
    compute = _compute(spec)
    gathered = _communication(spec)
    return compute + gathered + _offload(spec)


def relative_step_time(before: Spec, after: Spec) -> float:
    """The ratio of the step times for the same number of tokens."""
    return round(step_seconds(after) / after.seq_len / (step_seconds(before) / before.seq_len), 2)


def _compute(spec: Spec) -> float:
    name = spec.gpu.name if spec.gpu is not None else ""
    tflops = next((value for part, value in TFLOPS.items() if part in name), _DEFAULT_TFLOPS)
    if spec.mixed_precision == "no" and spec.weights_dtype == "fp32":
        tflops /= 4  # fp32 runs on the plain cores (or TF32) of the same cards
    if spec.quantization is not None and spec.quantization.startswith("nf4"):
        tflops /= NF4_SLOWDOWN
    recompute = 2 if spec.gradient_checkpointing else 0
    frozen = spec.facts.parameters - inventory(spec).trainable
    per_token = (6 + recompute) * spec.facts.parameters - 2 * max(0, frozen)
    return per_token * spec.tokens * spec.gradient_accumulation_steps / (tflops * 1e12 * UTILISATION)


def _communication(spec: Spec) -> float:
    ranks = spec.data_parallel
    if ranks < 2:
        return 0.0
    name = spec.gpu.name if spec.gpu is not None else ""
    bandwidth = NVLINK_BYTES_PER_S if any(part in name for part in _NVLINK) else PCIE_BYTES_PER_S
    width = 2 if spec.mixed_precision != "no" or spec.weights_dtype != "fp32" else 4
    trainable = inventory(spec).trainable
    gradients = 2 * trainable
    sharded = spec.zero_stage == 3 or (spec.fsdp is not None and spec.fsdp.strategy == "FULL_SHARD")
    gathers = 2 * spec.facts.parameters * spec.gradient_accumulation_steps if sharded else 0
    if sharded:
        gradients = trainable * spec.gradient_accumulation_steps
    elif spec.zero_stage == 2:
        gradients = trainable * (spec.gradient_accumulation_steps + 1)
    return (gradients + gathers) * width * (ranks - 1) / ranks / bandwidth


def _offload(spec: Spec) -> float:
    if spec.offload_optimizer == "none" and spec.offload_param == "none":
        return 0.0
    trainable = inventory(spec).trainable / spec.data_parallel
    ranks_per_node = max(1, spec.gpus // spec.nodes)
    seconds = 0.0
    if spec.offload_optimizer != "none":
        moved = 2 * trainable * (spec.gradient_accumulation_steps + 1)
        seconds += moved / PCIE_BYTES_PER_S
        seconds += ADAM_BYTES_PER_PARAMETER * trainable * ranks_per_node / HOST_BYTES_PER_S
    if spec.offload_param != "none":
        fetched = 2 * 2 * spec.facts.parameters / spec.data_parallel * spec.gradient_accumulation_steps
        seconds += fetched / PCIE_BYTES_PER_S
    return seconds
