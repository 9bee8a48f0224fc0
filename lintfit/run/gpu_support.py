"""What a run asks of its GPUs that they cannot do, however much memory they have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.documents.markdown import is_page
from lintfit.documents.model import Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.weights import kbit_upcast
from lintfit.run.model import Run
from lintfit.settings.model import Place, Setting

_IMPORTED = lazy_pattern(
    r"^(?:if [^\n]{0,120}:[^\n]{0,80}\n(?:[ \t]+[^\n]{0,200}\n){0,4}?[ \t]+)?(?:from|import) flash_attn\b", re.MULTILINE
)
"""A module that takes FlashAttention's functions as it is read, all or where they are installed."""


def unsupported(run: Run) -> Iterator[str]:
    """What of a run the GPUs that it is on do not have, each in words that a reason goes on from.

    FlashAttention 2 and TF32 need a compute capability of 8.0 (transformers refuses both), as bf16 does, which torch
    emulates where nothing refuses it.
    """
    gpu = run.hardware.gpu
    if gpu is None or run.spec is None:
        return
    if gpu.flash_attention_2 is False and (said := _flash_attention(run)) is not None:
        yield f"{said}FlashAttention, which {gpu.name} cannot run"
    if gpu.native_bf16 is False:
        if run.spec.mixed_precision == "bf16":
            yield f"{_where(run.settings.get('mixed_precision'))}bf16, which {gpu.name} does not have"
        elif _trains_in_bf16(run.spec):
            yield f"{_where(run.settings.get('weights_dtype'))}bf16 weights, which {gpu.name} does not have"
        tf32 = run.training.argument("tf32") if run.training is not None else None
        if tf32 is not None and tf32.value is True:
            yield f"{_where(tf32)}TF32, which {gpu.name} does not have"


def _trains_in_bf16(spec: Spec) -> bool:
    """Whether weights are bf16 when they train: DeepSpeed casts them to its own type, the preparation of a base of four
    bits all of it that is not quantised to fp32, and autocast a frozen base for each product."""
    if spec.weights_dtype != "bf16" or spec.engine == "deepspeed" or kbit_upcast(spec) == "all":
        return False
    return spec.method != "lora" or spec.mixed_precision != "fp16"


def _flash_attention(run: Run) -> str | None:
    """Where a run takes FlashAttention from: the kernel that is asked for, or the project's own in its place."""
    stated, own = run.settings.get("attention"), run.settings.get("own_attention")
    if stated is not None:
        return _where(stated) if stated.value == "flash_attention_2" else None
    if (asked := _asked_in_passing(run)) is not None:
        return asked
    patched = own is not None and any(kernel == "flash_attention_2" for kernel, _ in own.value.values())
    return "the project puts in " if patched else None


def _asked_in_passing(run: Run) -> str | None:
    """A word of the launch or of its files for FlashAttention 2 that nothing has been made of: it may well be taken."""
    launch = run.launch
    flag = launch.flag("attn_implementation") or launch.flag("attn_impl") if launch is not None else None
    if flag is not None:
        return f"--{flag.name} asks for " if flag.value == "flash_attention_2" else None
    if run.recipe is not None:
        return None
    # A page around a launch speaks of much that is no part of it.
    own = [each for each in run.documents if not is_page(each.path)]
    for document in own:
        needed = _IMPORTED.search(document.text) if document.kind is Kind.PYTHON else None
        if needed is not None:
            return f"{Place(document, Span(*needed.span()))} imports "
    spoken = next((each for each in own if "flash_attention_2" in each.text), None)
    if spoken is None:
        return None
    at = spoken.text.index("flash_attention_2")
    return f"{Place(spoken, Span(at, at))} speaks of "


def _where(setting: Setting | None) -> str:
    place = setting.provenance.place if setting is not None else None
    return f"{place} has " if place is not None else "it uses "
