"""The words by which training arguments ask for a dtype, an attention kernel and FSDP, whoever says them.

Read in transformers 5.23 (``TrainingArguments._process_fsdp_args``, ``modeling_utils.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.patterns import lazy_pattern
from lintfit.settings.model import UNKNOWN, Special
from lintfit.settings.values import Fsdp
from lintfit.sources.accelerate import SHARDING_STRATEGIES
from lintfit.versions import Versions, concrete, release

DTYPES = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp16": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "fp32": "fp32",
    "float64": "fp64",
    "double": "fp64",
}
"""torch's and people's names of dtypes in lintfit's spelling."""

TORCH = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""torch's names of the dtypes that a model is loaded in."""

CHECKPOINTING = ("activation_checkpointing", "gradient_checkpointing")
"""The field that asks for checkpointing, by the name that transformers 6 has and by the one before it."""

LIGER = ("use_liger_kernel", "use_liger")
"""The switch of Liger's kernels by its name and by the one that ``SFTConfig`` had (TRL 0.11 to 0.17; from 0.16 on it
is taken in the place of the other, ``SFTConfig.__post_init__``)."""

OFF_BY_DEFAULT = frozenset({*CHECKPOINTING, "use_liger_kernel"})
"""Switches that are False by default, and not None, in every version of ``TrainingArguments`` and of TRL's configs but
those that turn them on."""

COMPILING = ("torch_compile", "torch_compile_backend", "torch_compile_mode")
"""Fields of ``TrainingArguments``; either of the last two switches the first on (``__post_init__``)."""

STRATEGIES = frozenset({"steps", "epoch"})
"""What ``eval_strategy`` says where the Trainer evaluates between its steps."""

_FLASH = lazy_pattern(r"(flash_attention_3|kernels-community/(vllm-)?flash-attn[23]?)(@[\w.]+)?")
"""FlashAttention 2 and 3 by other names: kernels of the hub, which transformers registers under its own code for them
(``modeling_utils.py:_check_and_adjust_attn_implementation``), and which save the same tensors."""

_WRAPS_UNASKED = (5, 9)
"""The last transformers whose Trainer wraps layers only where ``fsdp`` says ``auto_wrap``, and has FSDP 1 where
``fsdp_config`` says no version; the next takes ``TRANSFORMER_BASED_WRAP`` where that has no policy, and FSDP 2
(``TrainingArguments._process_fsdp_args`` of 5.0, 5.9, 5.10 and 5.24)."""

FSDP_2 = f"{_WRAPS_UNASKED[0]}.{_WRAPS_UNASKED[1] + 1}"
"""The first transformers whose Trainer has FSDP 2 unasked."""


def version_numbers(text: str | None) -> tuple[int, ...] | None:
    """``"4.48"`` as ``(4, 48, 0)``, ``"<5"`` as ``(4, 99, 0)``, right before it; None for nothing or nonsense."""
    return release(concrete(text)) if text else None


def at_least(versions: Mapping[str, str], library: str, *numbers: int) -> bool:
    """Whether a library is of this version or newer; where its version is not known, the newest is meant."""
    if isinstance(versions, Versions):
        versions.ask(library, numbers)
    known = version_numbers(versions.get(library))
    return known is None or known >= numbers


def heeds_each_batch(versions: Mapping[str, str]) -> bool:
    """Whether transformers' Trainer heeds ``sync_each_batch`` of its ``accelerator_config``.

    Up to 4.46.1 it runs a micro-batch in ``accelerator.accumulate``, which does, and from 5.2 on it asks for it itself;
    between them it calls ``no_sync`` whatever is asked for (``Trainer._inner_training_loop``, ``_run_epoch``).
    """
    return at_least(versions, "transformers", 5, 2) or not at_least(versions, "transformers", 4, 46, 2)


EACH_BATCH = ("gradient_accumulation_kwargs", "sync_each_batch")
"""Where ``accelerator_config`` says so."""


def dtype_of(word: Any) -> Any:
    """The dtype that a word asks for in lintfit's spelling, ``"auto"``, None for None; anything else is ``UNKNOWN``."""
    if word is None:
        return None
    if not isinstance(word, str):
        return UNKNOWN
    return "auto" if word == "auto" else DTYPES.get(word.removeprefix("torch."), UNKNOWN)


def kernel_of(word: Any) -> Any:
    """The attention kernel that ``attn_implementation`` asks for, FlashAttention by its one name."""
    return "flash_attention_2" if isinstance(word, str) and _FLASH.fullmatch(word) else word


def trainer_fsdp(
    asked: Any, config: Mapping[Any, Any], versions: Mapping[str, str]
) -> tuple[Fsdp | Special, bool | None]:
    """FSDP as ``fsdp="full_shard offload"`` and the keys of ``fsdp_config`` ask the Trainer for it.

    The bool is whether the arguments make units of layers; None where they leave it to Accelerate's. FSDP 2 unasked
    from :data:`FSDP_2` on. Not known of torch_xla's (``xla: true``), other code with units and weights of its own.
    """
    words = asked.split() if isinstance(asked, str) else asked
    options = [str(word).rpartition(".")[2].lower() for word in words] if isinstance(words, list) else []
    said = {str(key).removeprefix("fsdp_"): value for key, value in config.items()}
    unasked = at_least(versions, "transformers", _WRAPS_UNASKED[0], _WRAPS_UNASKED[1] + 1)
    version = 2 if str(said.get("version", 2 if unasked else 1)) == "2" else 1
    reshard = said.get("reshard_after_forward")
    if version == 2:
        partly = str(reshard).lower() == "false" or (reshard is None and "shard_grad_op" in options)
        strategy = "SHARD_GRAD_OP" if partly else "FULL_SHARD"
    else:
        named = [option.upper() for option in [str(reshard), *options] if option.upper() in SHARDING_STRATEGIES]
        strategy = named[0] if named else "FULL_SHARD"
    offload = said.get("cpu_offload") is True or "offload" in options
    by_layer: bool | None = True if "auto_wrap" in options else None
    if unasked:
        policy = said.get("auto_wrap_policy")
        by_layer = not (isinstance(policy, str) and policy.upper() == "NO_WRAP")
    if said.get("xla") is True:
        return UNKNOWN, None
    return Fsdp(2 if version == 2 else 1, strategy, offload), by_layer
