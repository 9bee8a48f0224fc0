"""The settings that a launcher's own options state: Accelerate's and Fabric's; torchrun and deepspeed have none. And
Accelerate's variables, which count whatever starts the script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting
from lintfit.sources.launchers import packaged
from lintfit.sources.launchers.command_line import Invocation, Option
from lintfit.sources.launchers.fabric import MIXED, WEIGHTS, engine_precision
from lintfit.sources.launchers.fabric import strategy as strategy_of
from lintfit.sources.launchers.surroundings import Surroundings
from lintfit.sources.values import Reader, coerced_integer, lowered, one_of, truth, word

GPUS: Mapping[str, str] = {
    "torchrun": "nproc_per_node",
    "torch.distributed.launch": "nproc_per_node",
    "deepspeed": "num_gpus",
    "accelerate": "num_processes",
    "fabric": "devices",
}
"""The option that says how many processes start: on each node, for Accelerate in all."""


def _decimal(value: Any) -> Any:
    """A number written as text."""
    if value == "auto":
        return AUTO
    try:
        return float(value)
    except ValueError:
        return UNKNOWN


_device = lowered("none", "cpu", "nvme")
_variable = one_of("none", "cpu", "nvme")

ACCELERATE: Mapping[str, tuple[str, Reader]] = {
    "mixed_precision": ("mixed_precision", one_of("no", "fp16", "bf16", "fp8")),
    "zero_stage": ("zero_stage", coerced_integer),
    "offload_optimizer": ("offload_optimizer_device", _device),
    "offload_param": ("offload_param_device", _device),
    "gradient_accumulation_steps": ("gradient_accumulation_steps", coerced_integer),
    "max_grad_norm": ("gradient_clipping", _decimal),
    "deepspeed_config_file": ("deepspeed_config_file", word),
    "zero3_init_flag": ("zero3_init_flag", truth),
    "accelerate_config": ("config_file", word),
}
"""``accelerate launch``'s options by setting."""

SWITCHES: Mapping[str, Any] = {
    "use_deepspeed": "deepspeed",
    "use_fsdp": "fsdp",
    "multi_gpu": "ddp",
    "use_megatron_lm": UNKNOWN,
    "tpu": UNKNOWN,
}
"""``accelerate launch``'s switches that choose an engine."""


VARIABLES: Mapping[str, tuple[str, Reader]] = {
    "zero_stage": ("ACCELERATE_DEEPSPEED_ZERO_STAGE", coerced_integer),
    "offload_optimizer": ("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", _variable),
    "offload_param": ("ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", _variable),
    "deepspeed_config_file": ("ACCELERATE_DEEPSPEED_CONFIG_FILE", word),
    "zero3_init_flag": ("ACCELERATE_DEEPSPEED_ZERO3_INIT", truth),
}
"""What a ``DeepSpeedPlugin`` reads from the environment, by setting (accelerate 1.15, ``utils/dataclasses.py``)."""


def option_for(launcher: str, name: str) -> str | None:
    """The launcher's own option that states a setting, or None."""
    if launcher not in ("accelerate", "trl"):
        return None
    if name == "nodes":
        return "num_machines"
    found = ACCELERATE.get(name)
    return found[0] if found is not None else None


def spelled(value: Any) -> str:
    """A value as a command line has it."""
    if value is AUTO:
        return "auto"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def read(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    """What Accelerate's variables state, and the launcher's own options, which count before them."""
    if invocation.action is None:
        yield from _by_variables(around)
    if invocation.launcher in ("accelerate", "trl"):
        yield from packaged.read(invocation.options.get("accelerate_config"), around)
        yield from _accelerate(invocation, around)
    elif invocation.launcher == "fabric":
        yield from _fabric(invocation, around)


def _by_variables(around: Surroundings) -> Iterator[Setting]:
    """``ACCELERATE_USE_DEEPSPEED=true`` or ``ACCELERATE_USE_FSDP=true`` in front of a command.

    Accelerate and the Trainer go by them without a plugin of the script's (accelerate 1.15, ``Accelerator.__init__``
    and ``AcceleratorState``; transformers 4.57, ``TrainingArguments.__post_init__``), and ``accelerate launch`` leaves
    them as they are unless it is asked for an engine itself (``utils/launch.py:prepare_multi_gpu_env``).
    """

    def on(name: str) -> bool:
        return (around.environment.get(name) or "").lower() == "true"

    def at(name: str) -> Provenance:
        return around.at(around.environment_places.get(name, around.command))

    if on("ACCELERATE_USE_DEEPSPEED"):
        yield Setting("engine", "deepspeed", at("ACCELERATE_USE_DEEPSPEED"))
        for name, (variable, reader) in VARIABLES.items():
            if variable in around.environment:
                text = around.environment[variable]
                yield Setting(name, UNKNOWN if text is None else reader(text), at(variable))
    elif on("ACCELERATE_USE_FSDP"):
        yield Setting("engine", "fsdp", at("ACCELERATE_USE_FSDP"))
        yield Setting("fsdp", UNKNOWN, at("ACCELERATE_USE_FSDP"))  # a dozen FSDP_… variables say how


def _value(option: Option, reader: Reader) -> Any:
    return UNKNOWN if option.value is None else reader(option.value)


def _accelerate(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    for flag, engine in SWITCHES.items():
        option = invocation.options.get(flag)
        if option is not None:
            yield Setting("engine", engine, around.at(option.flag.span))
    for name, (flag, reader) in ACCELERATE.items():
        option = invocation.options.get(flag)
        if option is not None:
            yield Setting(name, _value(option, reader), around.of(option))
    yield from _fsdp(invocation, around)


def _fsdp(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    """FSDP's flags one by one, for they override a file's keys one by one, and what they come to without a file."""
    from lintfit.settings.values import Fsdp
    from lintfit.sources.accelerate import sharding_strategy

    def said(name: str) -> str | None:
        option = invocation.options.get(name)
        return option.value if option is not None else None

    version: Literal[1, 2] = 2 if said("fsdp_version") == "2" else 1
    if version == 2:
        strategy = "SHARD_GRAD_OP" if truth(said("fsdp_reshard_after_forward")) is False else "FULL_SHARD"
        shards = "fsdp_reshard_after_forward"
    else:
        strategy, shards = sharding_strategy(said("fsdp_sharding_strategy")), "fsdp_sharding_strategy"
    offload = truth(said("fsdp_offload_params") or "false") is True
    for name, flag, value in (
        ("fsdp_version", "fsdp_version", version),
        ("fsdp_strategy", shards, strategy),
        ("fsdp_cpu_offload", "fsdp_offload_params", offload),
    ):
        if flag in invocation.options:
            yield Setting(name, value, around.of(invocation.options[flag]))
    if "use_fsdp" in invocation.options:
        place = around.at(invocation.options["use_fsdp"].flag.span)
        yield Setting("fsdp", Fsdp(version, strategy, offload), place)
    checkpointing = invocation.options.get("fsdp_activation_checkpointing")
    if checkpointing is not None:
        yield Setting("gradient_checkpointing", _value(checkpointing, truth), around.of(checkpointing))


def _fabric(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    precision, strategy = invocation.options.get("precision"), invocation.options.get("strategy")
    if precision is not None:
        name = precision.value or ""
        sharded = strategy is not None and (strategy.value or "").startswith("deepspeed")
        mixed = engine_precision(name) or UNKNOWN if sharded else MIXED.get(name, UNKNOWN)
        yield Setting("mixed_precision", mixed, around.of(precision))
        if name in WEIGHTS:
            yield Setting("weights_dtype", WEIGHTS[name], around.of(precision))
    if strategy is None:
        return
    known = strategy_of(strategy.value) if strategy.value is not None else {"engine": UNKNOWN}
    for name, value in known.items():
        yield Setting(name, value, around.of(strategy))
