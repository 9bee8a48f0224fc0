"""From resolved settings to the memory model's input, and to what is missing for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.catalog.config import CatalogError
from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.memory.litgpt import as_built
from lintfit.memory.spec import LARGEST_COUNT, LARGEST_SEQUENCE, ROLLOUT_BATCH, Fsdp, Generation, Spec
from lintfit.run.auto import effective_deepspeed_config
from lintfit.run.model import Hardware
from lintfit.run.resolve import Sources
from lintfit.run.versions import LIBRARIES, concrete
from lintfit.settings import AUTO, Provenance, Setting
from lintfit.sources.front_ends import command_of

if TYPE_CHECKING:
    from lintfit.sources.launcher import Launch

_DIRECT = (
    "lora_rank", "lora_targets", "lora_modules_to_save", "lora_dropout", "lora_dtype", "use_dora", "quantization",
    "gradient_checkpointing", "use_reentrant", "activation_offload", "attention", "padded_batches", "loss", "use_cache",
    "weights_dtype", "mixed_precision", "method", "micro_batch_size", "gradient_accumulation_steps", "seq_len",
    "max_grad_norm", "zero_stage", "offload_optimizer", "offload_param", "engine", "reference_model", "front_end",
    "kbit_upcast",
)  # fmt: skip

FAVOURABLE: Mapping[str, Any] = {
    "engine": "deepspeed",
    "micro_batch_size": 1,
    "seq_len": 512,
    "gradient_checkpointing": True,
    "weights_dtype": "bf16",
    "mixed_precision": "bf16",
    "gradient_accumulation_steps": 1,
    "zero_stage": 3,
    "method": "lora",
    "loss": "liger",
    "attention": "flash_attention_2",
    "padded_batches": False,
    "offload_optimizer": "cpu",
    "offload_param": "cpu",
    "quantization": "nf4",
}
"""What to take for a setting that is written but cannot be told: the value that needs least memory.

A run that does not fit even so does not fit; any better verdict is not known.
"""

ASSUMED_LENGTH = 2048
"""Tokens of a sequence where nobody states them (the default of ``Spec``), if the model has so many positions."""

_CHOICES: Mapping[str, frozenset[Any]] = {
    "engine": frozenset({"single", "ddp", "deepspeed", "fsdp"}),
    "zero_stage": frozenset({0, 1, 2, 3}),
    "offload_optimizer": frozenset({"none", "cpu", "nvme"}),
    "offload_param": frozenset({"none", "cpu", "nvme"}),
    "weights_dtype": frozenset({"fp32", "bf16", "fp16"}),
    "mixed_precision": frozenset({"no", "bf16", "fp16"}),
    "method": frozenset({"full", "lora"}),
    "attention": frozenset({"eager", "sdpa", "flash_attention_2"}),
    "loss": frozenset({"full", "chunked", "liger"}),
    "quantization": frozenset({None, "nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"}),
    "lora_dtype": frozenset({"fp32", "bf16", "fp16"}),
}

_PREPARES = ("prepare_model_for_kbit_training", "prepare_model_for_int8_training")

_TRAINERS = frozenset({"dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "ppo"})
"""TRL's trainers whose step is known, beside the causal language model's."""

_WHOLE = frozenset({"micro_batch_size", "gradient_accumulation_steps", "seq_len", "lora_rank"})

_DEEPSPEED_OPTIMIZERS: Mapping[str, str] = {
    "adam": "adamw_torch_fused",
    "adamw": "adamw_torch_fused",
    "deepspeed_cpu_adam": "adamw_torch_fused",
    "lion": "lion_32bit",
    "adagrad": "adagrad",
    "sgd": "sgd",
    "muon": "muon",
}
"""DeepSpeed's optimizer types by the name with the same state bytes (FusedAdam makes no temporaries)."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A spec, or why there is none. ``doubtful`` names settings that were written but could not be told."""

    spec: Spec | None
    unknown: tuple[str, ...]
    doubtful: tuple[str, ...]


def find_hardware(sources: Sources, settings: Mapping[str, Setting]) -> Hardware:
    """GPU, count, nodes and memory, from the settings and lintfit's options."""
    options = sources.options
    gpu = _gpu(settings)
    capacity = options.gpu_memory_bytes or (gpu.usable_bytes if gpu is not None else None)
    gpus, nodes = settings.get("gpus"), settings.get("nodes")
    return Hardware(
        gpu=gpu,
        gpus=gpus.value if gpus is not None and _is_count(gpus.value) else None,
        nodes=nodes.value if nodes is not None and _is_count(nodes.value) else 1,
        capacity_bytes=capacity,
        host_memory_bytes=options.host_memory_bytes or _slurm_memory(sources),
    )


_SLURM_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _slurm_memory(sources: Sources) -> int | None:
    """Bytes a node that ``#SBATCH --mem`` asks for (MiB without a unit); None where it says nothing, or 0 for all."""
    if sources.launch is None:
        return None
    stated = [d.value for d in sources.launch.document.directives if d.key == "--mem"]
    found = re.fullmatch(r"(\d+)([KMGT]?)B?", stated[-1], re.IGNORECASE) if stated else None
    return int(found[1]) * _SLURM_UNITS[found[2].upper()] or None if found else None


def _gpu(settings: Mapping[str, Setting]) -> Gpu | None:
    named = settings.get("gpu")
    if named is None or not isinstance(named.value, str):
        return None
    from lintfit.catalog import gpus

    return gpus.lookup(named.value)


def find_facts(sources: Sources, settings: Mapping[str, Setting], folders: tuple[Path, ...]) -> ModelFacts | None:
    """The model's facts: a named ``config.json``, a local folder, the catalogue, or the Hugging Face cache.

    Raises CatalogError for a config that the user named and that cannot be used; one that only a file names makes the
    model unknown.
    """
    model, named = settings.get("model"), sources.options.model_config
    if named is None and (model is None or not isinstance(model.value, str) or not model.value):
        return None
    from lintfit.catalog import models

    if named is not None:
        return models.from_directory(named)
    assert model is not None
    try:
        return _facts_of(model.value, folders)
    except CatalogError:
        if model.provenance.kind == "option":
            raise
        return None


_OWN_DTYPE = frozenset({"qwen", "chatglm"})
"""Models whose code on the hub makes or casts its layers in the checkpoint's dtype (``modeling_qwen.py``: bf16 unless
the config says otherwise; ``modeling_chatglm.py``: ``config.torch_dtype``)."""


def with_checkpoint_dtype(settings: dict[str, Setting], facts: ModelFacts | None) -> dict[str, Setting]:
    """The settings with the checkpoint's dtype in place of "auto"; what the checkpoint does not say stays.

    So it is, too, where nobody asks for a dtype and the model's own code does not heed the library's default.
    """
    weights = settings.get("weights_dtype")
    if weights is None or facts is None or facts.checkpoint_dtype is None:
        return settings
    own = weights.provenance.kind in ("default", "assumed") and facts.model_type in _OWN_DTYPE
    if weights.value is not AUTO and not own:
        return settings
    if own:
        weights = replace(weights, provenance=replace(weights.provenance, detail="the model's own code decides it"))
    elif _is_local(settings.get("model")):
        why = "the folder is taken to hold the checkpoint that it is named after, in its dtype"
        weights = replace(weights, provenance=Provenance("assumed", why))
    return {**settings, "weights_dtype": replace(weights, value=facts.checkpoint_dtype)}


def _is_local(model: Setting | None) -> bool:
    """Whether a model is a folder of somebody's machine, known only by its name."""
    return model is not None and isinstance(model.value, str) and model.value.startswith(("/", "~", "./", "../"))


def assemble(
    sources: Sources,
    settings: Mapping[str, Setting],
    facts: ModelFacts | None,
    hardware: Hardware,
    versions: Mapping[str, str],
    folders: tuple[Path, ...] = (),
) -> Assembled:
    """The spec of one rank of this run.

    None where the model is unknown. Settings that nobody states take the spec's defaults and are left out of
    ``stated``, so that the estimate lists them as assumptions.
    """
    unread = _unread(sources) or _unfollowed(settings)
    if unread is not None:
        return Assembled(None, (unread,), ())
    if facts is None:
        return Assembled(None, _missing_model(settings), ())
    values: dict[str, Any] = {}
    doubtful: list[str] = []
    for name in _DIRECT:
        setting = settings.get(name)
        if setting is None:
            continue
        if setting.known and _allowed(name, setting.value):
            values[name] = setting.value
        elif name in FAVOURABLE:
            values[name] = FAVOURABLE[name]
            doubtful.append(name)
    _tidy(values, settings, sources, facts)
    if facts.max_positions is not None:
        values.setdefault("seq_len", min(ASSUMED_LENGTH, facts.max_positions))
    beside, missing = _beside(settings, folders) if values.get("trainer") == "ppo" else ({}, ())
    values.update(beside)
    known = {field.name for field in fields(Spec)}
    spec = Spec(
        facts=as_built(facts) if values.get("front_end") == "litgpt" else facts,
        gpu=hardware.gpu,
        capacity_bytes=hardware.capacity_bytes,
        gpus=hardware.gpus or 1,
        nodes=hardware.nodes,
        host_memory_bytes=hardware.host_memory_bytes,
        deepspeed_config=effective_deepspeed_config(sources, settings, facts),
        versions={library: concrete(version) for library, version in versions.items() if library in LIBRARIES},
        stated=frozenset(_stated(settings, doubtful) & known)
        | _gpus_stated(hardware)
        | _length_stated(values, settings)
        | {"front_end"},
        **values,
    )
    unknown = (
        list(missing) if hardware.capacity_bytes is not None else [*missing, "the GPU (--gpu, or gpu in lintfit.toml)"]
    )
    if hardware.gpus is None and spec.engine != "single":
        unknown.append("the number of GPUs (--gpus, or gpus in lintfit.toml)")
    return Assembled(spec, tuple(unknown), tuple(doubtful))


def _unread(sources: Sources) -> str | None:
    """What a launch trains from where lintfit has not read it: nothing can be said of its memory then."""
    launch = sources.launch
    if launch is None or sources.recipe is not None:
        return None
    if launch.action is None:
        return _unread_script(sources, launch)
    command = f"{command_of(launch.launcher)} {launch.action}"
    return f"the settings that `{command}` reads itself, which lintfit does not follow yet"


def _unfollowed(settings: Mapping[str, Setting]) -> str | None:
    """The PPO of TRL up to 0.11, which the script steps, and which knows no reward model."""
    trainer = settings.get("trainer")
    if trainer is None or trainer.value != "ppo" or "reward_model" in settings:
        return None
    return "the PPOTrainer of TRL up to 0.11, whose steps the script makes itself"


def _unread_script(sources: Sources, launch: Launch) -> str | None:
    if sources.script is None:
        return f"the script that is launched ({launch.script or 'its name cannot be told'}; not found or not Python)"
    if sources.training_is_read:
        return None
    trainer, name = sources.script.facts.trainer, sources.script.document.path.name
    if trainer is not None:
        return f"how {trainer.name} trains, which {name} takes from a package of its own"
    return f"the training itself: {name} has no trainer, engine or backward pass"


def _missing_model(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    model = settings.get("model")
    if model is None or not isinstance(model.value, str):
        return ("the model (--model, or model in lintfit.toml)",)
    from lintfit.catalog import models

    near = models.suggest(model.value)
    meant = f"; did you mean {near}?" if near else ""
    return (f'the shape of "{model.value}" (--model-config FILE, or model-config in lintfit.toml{meant})',)


def _allowed(name: str, value: Any) -> bool:
    if name in _CHOICES:
        return isinstance(value, (str, int, type(None))) and value in _CHOICES[name]
    if name in _WHOLE:
        return _is_count(value, LARGEST_SEQUENCE if name == "seq_len" else LARGEST_COUNT)
    if name == "lora_targets":
        return value is None or value == "all-linear" or isinstance(value, (list, tuple))
    return value is not None


def _is_count(value: Any, most: int = LARGEST_COUNT) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def _stated(settings: Mapping[str, Setting], doubtful: list[str]) -> set[str]:
    return {
        name
        for name, setting in settings.items()
        if setting.known and setting.provenance.kind != "assumed" and name not in doubtful
    }


def _gpus_stated(hardware: Hardware) -> frozenset[str]:
    return frozenset({"gpus"}) if hardware.gpus is not None else frozenset()


def _length_stated(values: Mapping[str, Any], settings: Mapping[str, Setting]) -> frozenset[str]:
    """GRPO's sequences are a prompt and a completion: known as soon as a trainer caps both."""
    caps = (settings.get(name) for name in ("max_prompt_length", "max_completion_length"))
    capped = all(cap is not None and isinstance(cap.value, int) for cap in caps)
    return frozenset({"seq_len"}) if values.get("trainer") in ("grpo", "rloo") and capped else frozenset()


def _tidy(values: dict[str, Any], settings: Mapping[str, Setting], sources: Sources, facts: ModelFacts) -> None:
    """Bring the files' values into the spec's form."""
    for name in ("lora_targets", "lora_modules_to_save"):
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    if values.get("quantization") is not None and values.get("method") != "lora":
        values.setdefault("method", "full")
    _optimizer(values, settings)
    _fsdp(values, settings)
    _trainer(values, settings)
    if sources.script is not None:
        _loading(values, settings, sources)


def _optimizer(values: dict[str, Any], settings: Mapping[str, Setting]) -> None:
    setting = settings.get("optimizer")
    if setting is not None and isinstance(setting.value, str):
        values["optimizer"] = _DEEPSPEED_OPTIMIZERS.get(setting.value.lower(), setting.value)


def _fsdp(values: dict[str, Any], settings: Mapping[str, Setting]) -> None:
    if values.get("engine") != "fsdp":
        return
    setting = settings.get("fsdp")
    values["fsdp"] = setting.value if setting is not None and isinstance(setting.value, Fsdp) else Fsdp()


def _trainer(values: dict[str, Any], settings: Mapping[str, Setting]) -> None:
    def value(name: str, fallback: Any = None) -> Any:
        setting = settings.get(name)
        return setting.value if setting is not None and setting.known else fallback

    trainer = value("trainer", "causal-lm")
    values["trainer"] = trainer if trainer in _TRAINERS else "causal-lm"
    if trainer == "ppo":
        _ppo(values, settings, value)
        return
    if trainer not in ("grpo", "rloo"):
        return
    completion = value("max_completion_length", 512)
    if "seq_len" not in settings:
        values["seq_len"] = (value("max_prompt_length") or 512) + completion
    colocated = value("use_vllm", False) and value("vllm_mode", "colocate") == "colocate"
    stage_3 = values.get("zero_stage") == 3
    gathers = bool(value("ds3_gather_for_generation", True)) and not value("use_vllm", False) and stage_3
    values["generation"] = Generation(
        completion_len=completion,
        vllm_gpu_memory_utilization=value("vllm_gpu_memory_utilization", 0.3) if colocated else 0.0,
        gather_weights=gathers,
        steps_per_generation=_whole(value("steps_per_generation")),
        vllm_sleeps=value("vllm_enable_sleep_mode", False) is True,
    )


PROMPT, RESPONSE = 512, 53
"""Tokens of a prompt where nobody says (TRL's cap for GRPO's), and ``PPOConfig.response_length``."""


def _ppo(values: dict[str, Any], settings: Mapping[str, Setting], value: Callable[..., Any]) -> None:
    """A prompt of the length assumed and a response; every batch is padded, and its mask handed over."""
    response = _whole(value("response_length")) or RESPONSE
    if "seq_len" not in settings:
        values["seq_len"] = PROMPT + response
    values.setdefault("padded_batches", True)
    values["generation"] = Generation(
        completion_len=min(response, values["seq_len"]),
        gather_weights=bool(value("ds3_gather_for_generation", True)) and values.get("zero_stage") == 3,
        rollout_batch_size=_whole(value("rollout_batch_size")) or ROLLOUT_BATCH,
        mini_batches=_whole(value("mini_batches")) or 1,
    )


def _beside(settings: Mapping[str, Setting], folders: tuple[Path, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """PPO's models beside the policy, and what is missing of them; until then they are taken to be like it."""
    found: dict[str, Any] = {}
    missing = []
    for name in ("reward_model", "value_model"):
        setting = settings.get(name)
        if setting is None:
            continue
        facts = _facts_of(setting.value, folders) if isinstance(setting.value, str) else None
        if facts is None:
            shown = f"'{setting.value}', which is" if isinstance(setting.value, str) else "whose name is"
            missing.append(f"the {name.replace('_', ' ')}, {shown} not known")
        found[name] = facts
    return found, tuple(missing)


def _facts_of(name: str, folders: tuple[Path, ...]) -> ModelFacts | None:
    from lintfit.catalog import models

    for folder in folders:
        if (folder / name / "config.json").is_file():
            return models.from_directory(folder / name, name=name)
    return models.find(name)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _loading(values: dict[str, Any], settings: Mapping[str, Setting], sources: Sources) -> None:
    """How the model gets onto the card: partitioned while it loads, or whole first."""
    assert sources.script is not None
    script = sources.script.facts
    loads = [load for load in script.loads if load.taken is not False]
    configured = script.training_arguments or script.accelerator or script.initialize
    if values.get("zero_stage") == 3 and loads and configured is not None:
        values["zero3_init"] = configured.order < min(load.order for load in loads)
    consumer = script.trainer or script.initialize
    values["loaded_on_gpu"] = any(
        move.call.taken is True and (consumer is None or move.call.order < consumer.order) for move in script.moves
    )
    if any(call.name in _PREPARES and call.taken is True for call in script.checkpointing):
        values.setdefault("kbit_upcast", "all")
    upcasts = [upcast for upcast in script.upcasts if upcast.call.taken is True]
    if upcasts and values.get("engine") == "deepspeed":
        values["full_load_dtype"] = "fp32"
