from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.attention import CHOOSES, has_flash, has_sdpa
from lintfit.catalog.facts import Gpu
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change
from lintfit.checks.helpers.wording import capability
from lintfit.findings.model import Applicability
from lintfit.memory.versions import release, transformers_versions
from lintfit.run.called import model_name
from lintfit.run.model import Run


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    attention = run.settings.get("attention")
    if attention is None or attention.value != "flash_attention_2" or attention.provenance.place is None:
        return
    reason = _card(run.hardware.gpu) or _model(run) or _precision(run)
    if reason is None:
        return
    message, other, decided_by = reason
    yield Report(
        attention.provenance.place,
        message,
        fix=change(run, f"use {other}", Applicability.UNSAFE, {"attention": other}) if other else None,
        help=f'pass attn_implementation="{other}"' if other else _halves(run),
        decided_by=("attention", *decided_by),
    )


def _halves(run: Run) -> str:
    return "write bf16: true or fp16: true" if run.recipe is not None else "train with bf16=True or fp16=True"


def breaks_the_command(context: RunContext) -> bool:
    """Whether the first step stops for the precision: what then trains, and in how much memory, is said by whoever
    turns one on."""
    attention = context.run.settings.get("attention")
    asked = attention is not None and attention.value == "flash_attention_2" and attention.provenance.place is not None
    return asked and _card(context.run.hardware.gpu) is None and _precision(context.run) is not None


Reason = tuple[str, str, tuple[str, ...]]
"""What stops the run, the kernel that runs instead (none where the kernel is not what has to change), and the settings
beside it that decide."""


def _card(gpu: Gpu | None) -> Reason | None:
    if gpu is None or gpu.flash_attention_2 is not False or gpu.compute_capability is None:
        return None
    return (
        f"{gpu.name} has compute capability {capability(gpu)}, FlashAttention 2 needs 8.0: the run stops with "
        '"FlashAttention only supports Ampere GPUs or newer"',
        "sdpa",
        (),
    )


def _model(run: Run) -> Reason | None:
    """A model whose class has no FlashAttention 2 in the version that is stated, or in any."""
    spec = run.spec
    if spec is None:
        return None
    code, versions = spec.facts.code, transformers_versions(spec, CHOOSES)
    torch = release(spec.versions.get("torch"))
    if code.flash_by_another_kernel or any(has_flash(code, version) for version in versions):
        return None
    name = model_name(run) or spec.facts.model_type
    return (
        f'{name} has no FlashAttention 2 in transformers: loading stops with "does not support Flash Attention 2"',
        "sdpa" if all(has_sdpa(code, version, torch) for version in versions) else "eager",
        ("model",),
    )


def _precision(run: Run) -> Reason | None:
    """fp32 tensors, which nothing casts before they reach the kernel."""
    spec = run.spec
    if spec is None or spec.weights_dtype != "fp32" or spec.mixed_precision != "no":
        return None
    if spec.quantization is not None and not _computes_in_fp32(run, spec.quantization):
        return None
    if not {"weights_dtype", "mixed_precision"}.isdisjoint(run.doubtful) or "weights_dtype" not in run.settings:
        return None
    what = "fp32 weights" if spec.quantization is None else "4-bit weights that are computed with in fp32"
    return (
        f"{what} without mixed precision reach FlashAttention 2 as they are: the first step stops with "
        '"FlashAttention only support fp16 and bf16 data type"',
        "",
        ("weights_dtype", "mixed_precision"),
    )


def _computes_in_fp32(run: Run, quantization: str) -> bool:
    """Whether fp32 is what 4-bit weights are computed with: axolotl's one ``torch_dtype`` is that of the model, of the
    matrix products and of what it converts for the kernel (0.19.0, ``resolve_dtype`` and ``loaders/model.py``)."""
    return run.recipe is not None and run.recipe.dialect == "axolotl" and quantization.startswith(("nf4", "fp4"))
