"""Which of the things that the files say really holds, following the libraries' own precedence.

Each function resolves one setting or one group: here the batch, the accumulation and the optimizer; the processes,
the engine with its sharding and the precision have modules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.frozen import replace
from lintfit.run.engines import checkpointed_by_fsdp, engine, fsdp, split_over_ranks, without_stage_3, zero
from lintfit.run.precedence import Sources, default, derived, first
from lintfit.run.precision import mixed_precision
from lintfit.run.processes import kind_of_gpu, number_of_gpus, number_of_nodes
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.registry import named


def resolve(sources: Sources) -> dict[str, Setting]:
    """The effective settings of a run by name."""
    settings: dict[str, Setting] = {}

    def put(setting: Setting | None) -> None:
        if setting is not None:
            settings[setting.name] = setting

    for name in ("model", "seq_len", "images"):
        put(first(name, sources.flag(name), sources.said("script", name), sources.config(name)))
    for name in named(by="script"):
        put(sources.said("script", name))
    put(_rollout_length(settings))
    put(_cast_by_launcher(sources))
    put(sources.said("script", "kbit_upcast"))
    for name in ("kbit_upcast", "quantized_experts"):
        put(sources.said("recipe", name))
    put(number_of_gpus(sources, sources.said("recipe", "gpus")))
    put(number_of_nodes(sources, settings.get("gpus")))
    put(kind_of_gpu(sources))
    put(engine(sources, settings))
    if settings["engine"].value == "fsdp":
        put(checkpointed_by_fsdp(sources))
    for setting in zero(sources, settings):
        put(setting)
    put(without_stage_3(settings))
    put(mixed_precision(sources, settings))
    put(_micro_batch_size(sources, settings))
    put(_accumulation(sources, settings))
    put(_optimizer(sources, settings))
    put(first("max_grad_norm", *_config_then_script(sources, "max_grad_norm")))
    put(sources.said("deepspeed", "train_batch_size"))
    for setting in split_over_ranks(sources, settings):
        put(setting)
    put(fsdp(sources, settings))
    for name in named(by="script-or-deepspeed"):
        put(sources.first(name, "script", "deepspeed"))
    return settings


def _rollout_length(settings: Mapping[str, Setting]) -> Setting | None:
    """The tokens of a prompt and its completion, where both are bounded and nothing else bounds a sequence."""
    trainer, bounds = settings.get("trainer"), [settings.get(f"max_{part}_length") for part in ("prompt", "completion")]
    if "seq_len" in settings or trainer is None or trainer.value not in ("grpo", "rloo"):
        return None
    prompt, completion = (_whole(each) for each in bounds)
    if prompt is None or completion is None:
        return None
    return derived("seq_len", prompt + completion, "a prompt and its completion", *bounds)


def _cast_by_launcher(sources: Sources) -> Setting | None:
    """``fabric run --precision bf16-true`` casts the module, whatever it was loaded in."""
    cast = sources.said("launch", "weights_dtype")
    return cast.over(sources.said("script", "weights_dtype")) if cast is not None else None


def _config_then_script(sources: Sources, name: str) -> tuple[Setting | None, ...]:
    """Trainer's arguments fill "auto" and must equal a literal; without a Trainer the JSON decides."""
    script, config = sources.said("script", name), sources.said("deepspeed", name)
    yaml = sources.first(name, "launch", "accelerate")
    return (script, config, yaml) if sources.uses_trainer else (config, yaml, script)


def _micro_batch_size(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    stated = sources.first("micro_batch_size", "script", "deepspeed")
    if stated is not None:
        return _unless_changed(sources, stated)
    return _share_of_batch(sources, settings) or _out_of_sight(sources)


def _out_of_sight(sources: Sources) -> Setting | None:
    """A loop of the script's own whose batches come from elsewhere: one sample is the least that they can have."""
    if sources.script is None or sources.recipe is not None or not sources.script.facts.batches_out_of_sight:
        return None
    return derived("micro_batch_size", UNKNOWN, "no DataLoader in sight says how large a batch is")


def _share_of_batch(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    """``deepspeed.initialize`` with a ``train_batch_size`` alone: the micro-batch is what a rank gets of it."""
    total, steps = (sources.said("deepspeed", name) for name in ("train_batch_size", "gradient_accumulation_steps"))
    started = sources.script.facts.initialize if total is not None and sources.script is not None else None
    if total is None or total.value is AUTO or started is None or started.function != "deepspeed.initialize":
        return None
    samples, gpus = _whole(total), _whole(settings.get("gpus"))
    accumulated = 1 if steps is None else _whole(steps)
    if samples is None or gpus is None or accumulated is None or samples % (gpus * accumulated):
        return derived("micro_batch_size", UNKNOWN, "what a rank gets of train_batch_size is not known", total)
    share = samples // gpus // accumulated
    return derived("micro_batch_size", share, "train_batch_size / ranks / accumulation", total)


def _unless_changed(sources: Sources, setting: Setting | None) -> Setting | None:
    """A number of DeepSpeed's file where the script that reads the file is not at hand: it may put in another."""
    unread = sources.launch is not None and sources.script is None and sources.recipe is None
    if setting is None or not unread or setting.provenance.kind != "file":
        return setting
    why = "the script that reads this file is not at hand and may change it"
    return replace(setting, provenance=Provenance("assumed", why, setting.provenance.place))


def _accumulation(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    name = "gradient_accumulation_steps"
    plugin = sources.said("script", "plugin_accumulation")
    if plugin is not None and plugin.value is not AUTO and sources.said("deepspeed", name) is None:
        return first(name, plugin, *_config_then_script(sources, name)[:-1])
    found = first(name, *_config_then_script(sources, name))
    by_engine = sources.missing_yaml if sources.deepspeed is None and not sources.uses_trainer else None
    if by_engine is not None and found is not None and found.provenance.kind in ("derived", "default"):
        # An engine that the YAML sets up accumulates by itself.
        return Setting(name, UNKNOWN, by_engine.provenance, (found,))
    if not sources.uses_trainer and sources.deepspeed is not None and sources.said("deepspeed", name) is None:
        inferred = _inferred_accumulation(settings, sources.said("deepspeed", "train_batch_size"))
        return inferred or default(name, 1, "DeepSpeed's default").over(found)
    if not sources.uses_trainer and sources.deepspeed is None and found is None:
        return _inferred_accumulation(settings, sources.said("script", "train_batch_size"))
    return _unless_changed(sources, found)


def _inferred_accumulation(settings: Mapping[str, Setting], total: Setting | None) -> Setting | None:
    """DeepSpeed works the third of the batch triple out from the other two."""
    samples, micro, gpus = (_whole(s) for s in (total, settings.get("micro_batch_size"), settings.get("gpus")))
    if samples is None or micro is None or gpus is None:
        return None
    steps, rest = divmod(samples, micro * gpus)
    if steps == 0 or rest:
        why = "DeepSpeed stops: train_batch_size is no multiple of micro-batch * ranks"
        return derived("gradient_accumulation_steps", UNKNOWN, why, total)
    return derived("gradient_accumulation_steps", steps, "train_batch_size / micro-batch / ranks", total)


def _whole(setting: Setting | None) -> int | None:
    value = setting.value if setting is not None else None
    return value if is_count(value) else None


def _optimizer(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    in_config, in_script = sources.said("deepspeed", "optimizer"), sources.said("script", "optimizer")
    if in_config is not None:
        return first("optimizer", in_config, in_script)
    offload = settings.get("offload_optimizer")
    forced = sources.deepspeed is None or sources.deepspeed.config.get("zero_force_ds_cpu_optimizer", True)
    if offload is not None and offload.value in ("cpu", "nvme") and forced:
        return derived("optimizer", "deepspeed_cpu_adam", "an offloaded optimizer runs as DeepSpeedCPUAdam", in_script)
    return in_script
