"""How changes of an ms-swift run are written in its own words, by the version that takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lintfit.errors import CannotWrite
from lintfit.sources.recipes.swift_arguments import SwiftArguments
from lintfit.sources.recipes.swift_trainer import TUNER

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit

_WORDS = {"bf16": "bfloat16", "fp16": "float16"}


def halve(arguments: SwiftArguments, name: str) -> tuple[FileEdit, ...] | None:
    """Training in 16 bits: the model's dtype, from which mixed precision follows."""
    return arguments.write(("torch_dtype", "dtype"), _WORDS[name] if arguments.since(3) else name)


def adapt(arguments: SwiftArguments, rank: int) -> tuple[FileEdit, ...] | None:
    """The next field that LoRA on all linear layers takes."""
    return arguments.write_next(**{arguments.name_of(*TUNER): "lora", "lora_rank": rank})


def quantize(arguments: SwiftArguments, now: Any, wanted: str) -> tuple[FileEdit, ...] | None:
    """The next field that a base in four bits takes; ms-swift quantises the scales, too, unless it is told not to."""
    if now in ("nf4", "nf4-double"):
        return ()
    if wanted not in ("nf4", "nf4-double") or now is not None:
        raise CannotWrite("the recipe says already how the base is quantized")
    bits = arguments.name_of("quant_bits", "quantization_bit")
    nested = {} if wanted == "nf4-double" else {"bnb_4bit_use_double_quant": False}
    return arguments.write_next(**nested, **{bits: 4, "quant_method": "bnb"})


def attend(arguments: SwiftArguments, kernel: Any) -> tuple[FileEdit, ...] | None:
    """Another attention kernel, by ms-swift's name for it."""
    flash = kernel == "flash_attention_2"
    if not arguments.since(3):
        return arguments.write(("use_flash_attn",), flash)
    return arguments.write(("attn_impl",), "flash_attn" if flash else kernel)
