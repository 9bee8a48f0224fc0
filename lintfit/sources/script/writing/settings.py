"""Writes a setting back where it lives: the launch line's flag, the script's keyword, a dataclass default."""

from __future__ import annotations

from typing import Any

from lintfit.settings.values import AS_LOADED, Adapters, FourBits
from lintfit.sources.deepspeed import ZERO_SIZES
from lintfit.sources.script.writing import attention, deleting_outputs, lora, moving, moving_zero_grad, state_dict
from lintfit.sources.script.writing.edits import Writer
from lintfit.sources.script.writing.file_edits import Edits, Script
from lintfit.sources.training_arguments import EVALUATION, TRAINING
from lintfit.sources.training_words import LIGER, TORCH


def write(source: Script, name: str, value: Any) -> Edits | None:
    """The edits that make the run say ``name = value``; None where this script and its launch line cannot."""
    writer = Writer(source)
    match name:
        case "weights_dtype" if value == AS_LOADED:
            return writer.drop_casts("fp32")
        case "weights_dtype" if value in TORCH:
            return writer.weights(value)
        case "attention":
            return attention.attend(writer, value)
        case "gradient_checkpointing":
            return writer.checkpointing(value)
        case "loss" if value == "liger":
            return writer.argument(LIGER, True)
        case "loss" if value == "chunked":
            return writer.argument(("loss_type",), "chunked_nll")
        case "use_liger_kernel" | "gradient_checkpointing_kwargs" | "use_cache" | "ddp_find_unused_parameters":
            return writer.argument((name,), value)
        case "zero_stage" | "offload_optimizer" | "offload_param":
            return writer.zero(name, value)
        case _ if name in ZERO_SIZES:
            return writer.zero_size(ZERO_SIZES[name], value)
        case "seq_len":
            return writer.length(value)
        case "fsdp":
            return writer.fsdp(value)
        case "method" if isinstance(value, Adapters):
            return lora.adapt(writer, value.rank, value.engine)
        case "quantization" if isinstance(value, FourBits):
            return lora.quantize(writer, value.name, value.ranks)
        case "kbit_upcast" if value == "all":
            return lora.prepare(writer)
        case "whole_state_dict" if value is False:
            return state_dict.from_host(source)
        case "loop_outputs" if value == "dropped":
            return deleting_outputs.let_go(source.reading)
        case "zero3_init" if value is True:
            return moving.configured_first(source.reading)
        case "zero_grad" if value == "step":
            return moving_zero_grad.behind_the_step(source.reading)
        case "prediction_loss_only":
            return writer.argument((name,), value)
        case "eval_batch_size" if source.reading.found.arguments is None:
            return writer.setting(name, value)
        case _ if name in EVALUATION:
            return writer.argument(EVALUATION[name], value)
        case _ if name in TRAINING:
            return writer.setting(name, value)
    return None
