from __future__ import annotations

from collections.abc import Callable, Iterator

from lintfit.checks.helpers.axolotl import place, recipe_of
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.recipes import is_of_a_part, may_be_a_part, of_a_part, to_fill_in
from lintfit.frozen import frozen
from lintfit.settings.model import UNKNOWN
from lintfit.sources.recipes.axolotl_config import ATTENTIONS, KERNELS, Config

_STEPS = ("micro_batch_size", "gradient_accumulation_steps", "batch_size")


@frozen
class Refused:
    """Keys that axolotl refuses together: since which release, when, with which error, where it stands, what to do.

    ``fills`` are keys the lack of which is refused: one that a file has without a value is to be filled in.
    """

    since: str
    when: Callable[[Config], bool]
    error: str
    keys: tuple[str, ...]
    help: str
    fills: tuple[str, ...] = ()
    in_all: bool = False
    """Whether it is refused for want of what every whole recipe has."""


def _on(config: Config, *keys: str) -> bool:
    """Whether all of these keys are written with a value that is more than nothing."""
    return all(config.states(key) for key in keys)


def _lacks(config: Config, key: str) -> bool:
    return config.get(key).value in (None, False, "", 0) or key not in config.keys


def _fsdp_2(config: Config) -> bool:
    stated = config.get("fsdp_version").value
    inside = config.inner("fsdp_config", "fsdp_version", "version")
    return str(stated if stated is not None else inside.value if inside is not None else 1) == "2"


def _batch(config: Config) -> bool:
    known = [config.get(key).value for key in _STEPS if key in config.keys]
    return UNKNOWN not in known and sum(bool(value) for value in known) < 2


def _no_data(config: Config) -> bool:
    """Whether there is no data, nor a plugin that may bring it (``register``)."""
    return _lacks(config, "plugins") and all(
        key not in config.keys or config.get(key).value is None for key in ("datasets", "pretraining_dataset")
    )


def _eight_bits_offloaded(config: Config) -> bool:
    moved = config.inner("fsdp_config", "offload_params", "fsdp_offload_params")
    named = "8bit" in str(config.get("optimizer").value)
    return named and moved is not None and moved.value is True and not _fsdp_2(config)


def _eight_bits_of_bitsandbytes(config: Config) -> bool:
    named = config.get("optimizer").value in ("adamw_8bit", "adamw_bnb_8bit")
    return named and _on(config, "fsdp_config") and _fsdp_2(config)


def _kernels(config: Config) -> bool:
    return any(config.states(key) for key in KERNELS[:3])


def _switches(config: Config) -> bool:
    return _on(config, "attn_implementation") and any(_on(config, key) for key in ATTENTIONS)


REFUSED: tuple[Refused, ...] = (
    Refused("0.5", lambda c: _on(c, "deepspeed", "fsdp"), "deepspeed and fsdp cannot be used together.",
            ("deepspeed",), "take one of them out"),
    Refused("0.5", _batch, f"At least two of {', '.join(_STEPS)} must be set", _STEPS, "write the second of them",
            ("micro_batch_size", "gradient_accumulation_steps"), in_all=True),
    Refused("0.5", lambda c: _on(c, "gradient_accumulation_steps", "batch_size"),
            "please set only one of gradient_accumulation_steps or batch_size", ("batch_size",), "take batch_size out"),
    Refused("0.5", _no_data, "either datasets or pretraining_dataset is required", ("base_model",), "write datasets",
            ("datasets", "pretraining_dataset"), in_all=True),
    Refused("0.5", lambda c: _on(c, "sample_packing", "rl"),
            "`sample_packing: true` does not work with RLHF training", ("sample_packing",), "sample_packing: false"),
    Refused("0.6", lambda c: c.get("rl").value == "kto" and c.get("remove_unused_columns").value is not False,
            "Set `remove_unused_columns: False` when using kto", ("rl",), "remove_unused_columns: false"),
    Refused("0.5", lambda c: _on(c, "test_datasets", "val_set_size"),
            "non-zero val_set_size should not be used with test_datasets configuration", ("val_set_size",),
            "val_set_size: 0"),
    Refused("0.5", lambda c: _on(c, "pretraining_dataset") and _lacks(c, "max_steps"),
            "max_steps must be set when using iterable pretraining_dataset, Trainer can't infer length and schedule "
            "optimizer/learning rate without it!", ("pretraining_dataset",), "write max_steps"),
    Refused("0.13", lambda c: _on(c, "pretraining_dataset", "val_set_size"),
            "val_set_size is not supported with pretraining_dataset.", ("val_set_size",), "val_set_size: 0"),
    Refused("0.5", lambda c: _on(c, "warmup_steps", "warmup_ratio"),
            "warmup_steps and warmup_ratio are mutually exclusive", ("warmup_ratio",), "take one of them out"),
    Refused("0.12", lambda c: _on(c, "activation_offloading") and _lacks(c, "gradient_checkpointing"),
            "activation_offloading requires gradient_checkpointing", ("activation_offloading",),
            "gradient_checkpointing: true"),
    Refused("0.5", _eight_bits_offloaded, "FSDP Offload not compatible with …", ("optimizer", "fsdp_config"),
            "adamw_torch_fused, or fsdp_version: 2"),
    Refused("0.12", _eight_bits_of_bitsandbytes, "FSDP2 not compatible with …, use `adamw_torch_8bit` instead",
            ("optimizer",), "optimizer: adamw_torch_8bit"),
    Refused("0.8", lambda c: c.get("optimizer").value == "muon" and _on(c, "deepspeed"),
            "Muon optimizer is currently incompatible with DeepSpeed", ("optimizer",), "FSDP 2, or another optimizer"),
    Refused("0.12", lambda c: _on(c, "load_in_8bit") and c.adapter == "lora" and _kernels(c),
            "lora_mlp_kernel, lora_qkv_kernel, and lora_o_kernel are not compatible with 8-bit LoRA a the moment.",
            KERNELS, "take the kernels out, or make it qlora"),
    Refused("0.15", lambda c: _on(c, "trust_remote_code") and _kernels(c),
            "lora_mlp_kernel, lora_qkv_kernel, and lora_o_kernel are not compatible with trust_remote_code.",
            KERNELS, "take the kernels out"),
    Refused("0.17", _switches, "attn_implementation=… cannot be combined with legacy attention flags",
            ("attn_implementation",), "write attn_implementation alone"),
)  # fmt: skip
"""The first release that has the check, and its words (``axolotl/utils/schemas/validation.py``, 0.5.0 to 0.18.0)."""


def breaks_the_command(context: RunContext) -> bool:
    """What is only a part of a recipe is not judged either: the rest of it says what memory it takes."""
    return any(report.severity is None or is_of_a_part(report) for report in check_run(context))


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None or recipe.config.range.open:
        return
    config = recipe.config
    for each in REFUSED:
        if not config.range.all_since(each.since) or not each.when(config):
            continue
        empty = [(key, found) for key in each.fills if (found := config.keys.get(key)) and found.value is None]
        if empty:
            yield to_fill_in(empty, f"axolotl stops with “{each.error}”")
        elif each.in_all and may_be_a_part(context.run):
            yield of_a_part(place(context), f"axolotl stops with “{each.error}”")
        else:
            at = [config.get(key) for key in each.keys if key in config.keys]
            names = " and ".join(key for key in each.keys if key in config.keys) or each.keys[0]
            yield Report(place(context, *at), f"{names}: axolotl stops with “{each.error}”", help=each.help)
