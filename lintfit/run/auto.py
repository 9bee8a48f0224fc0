"""The DeepSpeed config as DeepSpeed gets to see it, after transformers or accelerate have filled in every "auto"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.facts import ModelFacts
from lintfit.run.precedence import Sources
from lintfit.settings.model import Setting


def effective_deepspeed_config(
    sources: Sources, settings: Mapping[str, Setting], facts: ModelFacts | None
) -> dict[str, Any]:
    """The config of a run with numbers in place of "auto"; other keys as they stand in the file.

    Without a JSON, Accelerate's plugin writes one with stage and offload only, so that the buckets are DeepSpeed's
    defaults.
    """
    inline = settings_of_script(sources)
    config = dict(sources.deepspeed.config) if sources.deepspeed is not None else dict(inline)
    zero = _zero(config)
    for name in ("offload_optimizer", "offload_param"):
        device = settings.get(name)
        if device is not None and device.value in ("cpu", "nvme") and not isinstance(zero.get(name), dict):
            zero[name] = {"device": device.value}
    stage = settings.get("zero_stage")
    if stage is not None and stage.known:
        zero["stage"] = stage.value
    return filled({**config, "zero_optimization": zero}, facts)


def settings_of_script(sources: Sources) -> Mapping[str, Any]:
    """The dict that the script hands to DeepSpeed itself; empty where it does not."""
    handed = sources.said("script", "deepspeed")
    return handed.value if handed is not None and isinstance(handed.value, Mapping) else {}


def filled(config: Mapping[str, Any], facts: ModelFacts | None) -> dict[str, Any]:
    """A config with its ZeRO buckets filled and every other "auto" left out.

    transformers fills bucket sizes from the hidden size (reduce h², prefetch 0.9 h², persistence 10 h:
    ``integrations/deepspeed.py:trainer_config_finalize``); accelerate does the same for models with a config.
    """
    sizes = _bucket_sizes(facts.hidden) if facts is not None else {}
    zero = {key: sizes.get(key, value) if value == "auto" else value for key, value in _zero(config).items()}
    kept = {key: value for key, value in config.items() if value != "auto"}
    return {**kept, "zero_optimization": {key: value for key, value in zero.items() if value != "auto"}}


def _zero(config: Mapping[str, Any]) -> dict[str, Any]:
    written = config.get("zero_optimization")
    return dict(written) if isinstance(written, dict) else {}


def _bucket_sizes(hidden: int) -> dict[str, int]:
    """What transformers puts for "auto" (``HfTrainerDeepSpeedConfig.trainer_config_finalize``)."""
    return {
        "reduce_bucket_size": hidden * hidden,
        "stage3_prefetch_bucket_size": int(0.9 * hidden * hidden),
        "stage3_param_persistence_threshold": 10 * hidden,
    }
