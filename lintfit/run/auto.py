"""The DeepSpeed config as DeepSpeed gets to see it, after transformers or accelerate have filled in every "auto"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.facts import ModelFacts
from lintfit.run.resolve import Sources
from lintfit.settings import Setting


def effective_deepspeed_config(
    sources: Sources, settings: Mapping[str, Setting], facts: ModelFacts | None
) -> dict[str, Any]:
    """The ZeRO part of the config with numbers in place of "auto"; other keys as they stand in the file.

    transformers fills bucket sizes from the hidden size (reduce h², prefetch 0.9 h², persistence 10 h:
    ``integrations/deepspeed.py:trainer_config_finalize``); accelerate does the same for models with a config. Without a
    JSON, the plugin's config has stage and offload only, so that the buckets are DeepSpeed's defaults.
    """
    config = dict(sources.deepspeed.config) if sources.deepspeed is not None else {}
    written = config.get("zero_optimization")
    zero = dict(written) if isinstance(written, dict) else {}
    hidden = facts.hidden if facts is not None else None
    for key, value in _bucket_sizes(hidden).items():
        if zero.get(key) == "auto":
            zero[key] = value
    for name, key in (("offload_optimizer", "offload_optimizer"), ("offload_param", "offload_param")):
        device = settings.get(name)
        if (
            device is not None
            and device.known
            and device.value in ("cpu", "nvme")
            and not isinstance(zero.get(key), dict)
        ):
            zero[key] = {"device": device.value}
    stage = settings.get("zero_stage")
    if stage is not None and stage.known:
        zero["stage"] = stage.value
    zero = {key: value for key, value in zero.items() if value != "auto"}
    return {**{key: value for key, value in config.items() if value != "auto"}, "zero_optimization": zero}


def _bucket_sizes(hidden: int | None) -> dict[str, int]:
    if hidden is None:
        return {}
    return {
        "reduce_bucket_size": hidden * hidden,
        "stage3_prefetch_bucket_size": int(0.9 * hidden * hidden),
        "stage3_param_persistence_threshold": 10 * hidden,
    }
