from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import distributed, recipe_of, stated
from lintfit.checks.helpers.recipes import is_of_a_part, may_be_a_part, of_a_part, to_fill_in
from lintfit.frozen import frozen
from lintfit.run.model import Run
from lintfit.sources.recipes import llamafactory_engine as engine
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments
from lintfit.sources.recipes.llamafactory_model import by_bitsandbytes, stored


@frozen
class Asked:
    """What a run asks for: its arguments, ZeRO's stage, and whether its processes are distributed."""

    arguments: LlamaFactoryArguments
    stage: Any
    distributed: bool | None

    def on(self, *names: str) -> bool:
        """Whether all of these are known to be true."""
        return all(self.arguments.on(name) for name in names)

    def is_(self, name: str, *values: Any) -> bool:
        return self.arguments.value(name) in values

    def has(self, name: str) -> bool:
        return stated(self.arguments, name) is not None

    def above(self, name: str, bound: float, equal: bool = False) -> bool:
        """Whether a field is known to be a number above this one."""
        found = self.arguments.value(name)
        known = isinstance(found, int | float) and not isinstance(found, bool)
        return known and (found > bound or (equal and found == bound))

    @property
    def full(self) -> bool:
        return self.is_("finetuning_type", "full", "freeze")

    @property
    def sharded(self) -> bool:
        """Whether ZeRO-3 or FSDP splits the weights."""
        return self.stage == 3 or engine.is_fsdp(self.arguments) is True


@frozen
class Refused:
    """Arguments that LLaMA-Factory refuses together: the first release, when, the error, where, and what to do.

    ``fills`` are keys the lack of which is refused: one that a file has without a value is to be filled in.
    """

    since: str
    when: Callable[[Asked], bool]
    error: str
    keys: tuple[str, ...]
    help: str
    fills: tuple[str, ...] = ()
    in_all: bool = False
    """Whether it is refused for want of what every whole recipe has."""


def _packaged(asked: Asked) -> bool:
    return stored(asked.arguments) is not None


def _quantised(asked: Asked) -> bool:
    return asked.has("quantization_bit") and not _packaged(asked)


REFUSED: tuple[Refused, ...] = (
    Refused("0.2.0", lambda a: a.has("quantization_bit") and a.full,
            "Quantization is only compatible with the LoRA … method.", ("quantization_bit",),
            "finetuning_type: lora, or take quantization_bit out"),
    Refused("0.8.3", lambda a: _packaged(a) and a.full, "… can only be used for … LoRA …", ("finetuning_type",),
            "finetuning_type: lora, or the checkpoint that is not quantised"),
    Refused("0.8.3", lambda a: a.has("quantization_bit") and a.on("pissa_init"),
            "Please use scripts/pissa_init.py to initialize PiSSA for a quantized model.", ("pissa_init",),
            "take one of them out"),
    Refused("0.7.0", lambda a: a.has("quantization_bit") and a.on("resize_vocab"),
            "Cannot resize embedding layers of a quantized model.", ("resize_vocab",), "take one of them out"),
    Refused("0.8.3", lambda a: _packaged(a) and a.sharded,
            "DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.", ("deepspeed", "fsdp"),
            "ZeRO-2, or quantization_bit: 4 on the checkpoint that is not quantised"),
    Refused("0.8.3", lambda a: _quantised(a) and a.sharded and by_bitsandbytes(a.arguments)
            and a.is_("quantization_bit", 8),
            "Only 4-bit quantized model can use fsdp+qlora or auto device map.", ("quantization_bit",),
            "quantization_bit: 4, or ZeRO-2"),
    Refused("0.8.3", lambda a: _quantised(a) and a.sharded and a.is_("quantization_method", "hqq", "eetq"),
            "… quantization is incompatible with DeepSpeed ZeRO-3 or FSDP.", ("quantization_method",),
            "quantization_method: bnb, or ZeRO-2"),
    Refused("0.8.3", lambda a: a.on("pure_bf16") and a.stage == 3,
            "`pure_bf16` is incompatible with DeepSpeed ZeRO-3.", ("pure_bf16",), "bf16: true in its place, or ZeRO-2"),
    Refused("0.8.0", lambda a: a.on("use_unsloth") and a.stage == 3, "Unsloth is incompatible with DeepSpeed ZeRO-3.",
            ("use_unsloth",), "take one of them out"),
    Refused("0.6.0", lambda a: a.on("use_galore", "galore_layerwise") and a.distributed is True,
            "Distributed training does not support layer-wise GaLore.", ("galore_layerwise",),
            "galore_layerwise: false, or one GPU"),
    Refused("0.9.2", lambda a: a.on("use_apollo", "apollo_layerwise") and a.distributed is True,
            "Distributed training does not support layer-wise APOLLO.", ("apollo_layerwise",),
            "apollo_layerwise: false, or one GPU"),
    Refused("0.8.3", lambda a: a.on("use_badam") and a.is_("badam_mode", "layer") and a.distributed is True
            and a.stage in (None, 0, 1, 2),
            "Layer-wise BAdam only supports DeepSpeed ZeRO-3 training.", ("use_badam",), "ZeRO-3, or one GPU"),
    Refused("0.8.3", lambda a: a.on("use_badam") and a.is_("badam_mode", "ratio") and a.distributed is True,
            "Radio-based BAdam does not yet support distributed training, use layer-wise BAdam.", ("badam_mode",),
            "badam_mode: layer, or one GPU"),
    Refused("0.9.2", lambda a: a.has("deepspeed") and (a.on("use_galore") or a.on("use_apollo")),
            "GaLore and APOLLO are incompatible with DeepSpeed yet.", ("use_galore", "use_apollo"),
            "take deepspeed out"),
    Refused("0.9.2", lambda a: a.is_("finetuning_type", "lora")
            and (a.on("use_galore") or a.on("use_apollo") or a.on("use_badam")),
            "Cannot use LoRA with GaLore, APOLLO or BAdam together.", ("use_galore", "use_apollo", "use_badam"),
            "finetuning_type: full"),
    Refused("0.8.0", lambda a: a.on("use_llama_pro") and a.is_("finetuning_type", "full"),
            "`use_llama_pro` is only valid for Freeze or LoRA training.", ("use_llama_pro",),
            "finetuning_type: freeze"),
    Refused("0.8.3", lambda a: a.on("use_dora") and a.full, "`use_dora` is only valid for LoRA training.",
            ("use_dora",), "finetuning_type: lora"),
    Refused("0.8.3", lambda a: a.on("neat_packing") and a.is_("stage", "pt", "rm", "ppo", "dpo", "kto"),
            "`neat_packing` cannot be set as True except SFT.", ("neat_packing",), "take it out"),
    Refused("0.5.3", lambda a: a.is_("stage", "ppo") and a.is_("reward_model", None),
            "`reward_model` is necessary for PPO training.", ("stage",), "write reward_model", ("reward_model",)),
    Refused("0.2.0", lambda a: a.on("streaming") and a.is_("max_steps", -1, None),
            "Please specify `max_steps` in streaming mode.", ("streaming",), "write max_steps", ("max_steps",)),
    Refused("0.8.3", lambda a: a.on("do_train") and a.is_("dataset", None), "Please specify dataset for training.",
            ("do_train",), "write dataset", ("dataset",), in_all=True),
    Refused("0.8.0", lambda a: a.on("predict_with_generate") and a.stage == 3,
            "`predict_with_generate` is incompatible with DeepSpeed ZeRO-3.", ("predict_with_generate",),
            "take it out, or ZeRO-2"),
    Refused("0.8.3", lambda a: a.on("predict_with_generate", "compute_accuracy"),
            "Cannot use `predict_with_generate` and `compute_accuracy` together.", ("compute_accuracy",),
            "take one of them out"),
    Refused("0.8.3", lambda a: a.on("pissa_init") and a.stage == 3 and not a.has("quantization_bit"),
            "Please use scripts/pissa_init.py to initialize PiSSA in DeepSpeed ZeRO-3.", ("pissa_init",),
            "take it out, or ZeRO-2"),
    Refused("0.5.2", lambda a: a.has("adapter_name_or_path") and a.full,
            "Adapter is only valid for the LoRA method.", ("adapter_name_or_path",),
            "finetuning_type: lora, or take adapter_name_or_path out"),
    Refused("0.5.0", lambda a: a.has("quantization_bit") and a.has("adapter_name_or_path")
            and a.on("create_new_adapter"), "Cannot create new adapter upon a quantized model.",
            ("create_new_adapter",), "take one of them out"),
    Refused("0.9.4", lambda a: a.has("quantization_bit") and a.on("fp8"),
            "FP8 training is not compatible with quantization. Please disable one of them.", ("fp8",),
            "take one of them out"),
    Refused("0.6.3", lambda a: a.on("do_train") and a.is_("quantization_device_map", "auto"),
            "Cannot use device map for quantized models in training.", ("quantization_device_map",), "take it out"),
    Refused("0.6.0", lambda a: a.is_("infer_backend", "vllm"),
            "vLLM… backend is only available for API, CLI and Web.", ("infer_backend",), "take it out"),
    Refused("0.5.0", lambda a: a.is_("stage", "rm", "ppo") and a.on("load_best_model_at_end"),
            "RM and PPO stages do not support `load_best_model_at_end`.", ("load_best_model_at_end",), "take it out"),
    Refused("0.9.4", lambda a: (a.on("do_eval") or a.on("predict_with_generate")
                                or a.is_("eval_strategy", "steps", "epoch"))
            and a.is_("eval_dataset", None) and a.is_("val_size", 0),
            "Please make sure eval_dataset be provided or val_size >1e-6",
            ("do_eval", "eval_strategy", "predict_with_generate"), "write eval_dataset or val_size: 0.1",
            ("eval_dataset", "val_size")),
    Refused("0.8.3", lambda a: a.has("eval_dataset") and a.above("val_size", 1e-6),
            "Cannot specify `val_size` if `eval_dataset` is not None.", ("val_size",), "take one of them out"),
    Refused("0.2.0", lambda a: a.on("streaming") and a.has("max_samples"),
            "`max_samples` is incompatible with `streaming`.", ("max_samples",), "take it out: max_steps ends the run"),
    Refused("0.2.0", lambda a: a.on("streaming") and a.above("val_size", 1e-6) and not a.above("val_size", 1, True),
            "Streaming mode should have an integer val size.", ("val_size",), "write a number of samples"),
)  # fmt: skip
"""The first studied release that has the check, and its words (``hparams/parser.py``, ``hparams/finetuning_args.py``,
``model/model_utils/quantization.py``, ``model/adapter.py``, 0.2.0 to 0.9.6)."""


def breaks_the_command(context: RunContext) -> bool:
    """What is only a part of a recipe is not judged either: the rest of it says what memory it takes."""
    return any(report.severity is None or is_of_a_part(report) for report in check_run(context))


def refuses_stage_3(run: Run) -> bool:
    """Whether LLaMA-Factory refuses under ZeRO-3, on several GPUs, what it takes as the run is."""
    recipe = recipe_of(run)
    if recipe is None:
        return False
    arguments = recipe.arguments
    now, then = Asked(arguments, engine.zero_stage(arguments), True), Asked(arguments, 3, True)
    return any(arguments.since(each.since) and each.when(then) and not each.when(now) for each in REFUSED)


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None:
        return
    arguments = recipe.arguments
    asked = Asked(arguments, engine.zero_stage(arguments), distributed(context, recipe))
    for each in REFUSED:
        place = stated(arguments, *each.keys) if arguments.since(each.since) and each.when(asked) else None
        if place is None:
            continue
        empty = [(name, found) for name in each.fills if (found := arguments.stated(name)) and found.value is None]
        if empty:
            yield to_fill_in(empty, f"LLaMA-Factory stops with “{each.error}”")
        elif each.in_all and may_be_a_part(context.run):
            yield of_a_part(place, f"LLaMA-Factory stops with “{each.error}”")
        else:
            key = next(key for key in each.keys if stated(arguments, key) is not None)
            yield Report(place, f"{key}: LLaMA-Factory stops with “{each.error}”", help=each.help)
