"""From resolved settings to the memory model's input, and to what is missing for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.catalog.facts import ModelFacts
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, names, replace
from lintfit.memory.litgpt import as_built
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.defaults import longest
from lintfit.memory.reading.keys import READERS
from lintfit.memory.reading.older import as_of
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import named, parts_of, uncounted, wrong
from lintfit.run.attention import with_own_attention, with_own_kernels
from lintfit.run.auto import effective_deepspeed_config
from lintfit.run.auxiliary_models import inference_models, of_ppo
from lintfit.run.evaluation import evaluation
from lintfit.run.facts import FoundModel
from lintfit.run.generation import length_stated, set_trainer
from lintfit.run.hardware import missing_gpu
from lintfit.run.loading import leaves_layers_out, loading, splits_batch, spread_by
from lintfit.run.model import REFUSED, Hardware
from lintfit.run.off_gpu import off_gpu
from lintfit.run.precedence import Sources
from lintfit.run.unread import own_split, own_steps, unfollowed_trainer, unread_training
from lintfit.run.versions import installed
from lintfit.settings.kinds import LARGEST_COUNT
from lintfit.settings.model import UNKNOWN, Setting, is_count
from lintfit.settings.registry import AS_THEY_ARE, LOWER_BOUNDS, SPLITS
from lintfit.settings.uncounted import BATCH_SPLIT, FEWER_LAYERS, OWN_PARTS, SPLIT_BY_SWIFT, SPLIT_BY_V1, SPREAD
from lintfit.settings.values import Fsdp

if TYPE_CHECKING:
    from lintfit.sources.flag_grammars.model import Refused

_OF_LANGUAGE_MODEL = lazy_pattern(
    r"layer|block|\bh\b|embed|wte|lm_head|att(?:entio)?n|norm|bias|expert|transformer|decoder", re.IGNORECASE
)
"""What parts of language models are called, by whichever names."""
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

_SPLITS_ITSELF: Mapping[str, str] = {"swift": SPLIT_BY_SWIFT, "llamafactory-v1": SPLIT_BY_V1}
"""What is not counted of it, by whose recipe it is."""


WITHOUT_LOGITS = "classification"
"""The trainer of a model that has no logits over a vocabulary."""
LEAST_FORWARD: Mapping[str, Any] = {
    "trainer": WITHOUT_LOGITS,
    "micro_batch_size": LOWER_BOUNDS["micro_batch_size"],
    "seq_len": LOWER_BOUNDS["seq_len"],
    "gradient_checkpointing": True,
}
"""A forward pass that keeps next to nothing: what is left is what weights, gradients and states take."""


@frozen
class Assembled:
    """A spec, or why there is none. ``doubtful`` names settings that were written but were not statically known."""

    spec: Spec | None
    unknown: tuple[str, ...]
    doubtful: tuple[str, ...]
    lacks_model: bool = False


def assemble(
    sources: Sources,
    settings: Mapping[str, Setting],
    model: FoundModel,
    hardware: Hardware,
    versions: Mapping[str, str],
    folders: tuple[Path, ...] = (),
) -> Assembled:
    """The spec of one rank of this run.

    None where the model is unknown. Settings that nobody states take the spec's defaults and are left out of
    ``stated``, so that the estimate lists them as assumptions.
    """
    unread = unread_training(sources) or unfollowed_trainer(settings) or own_steps(sources, settings)
    unread = unread or own_split(sources) or off_gpu(sources)
    if unread is not None:
        return Assembled(None, (unread,), ())
    facts = model.facts
    if facts is None:
        return Assembled(None, model.missing, (), lacks_model=True)
    values, doubtful = _direct(settings)
    _split(values, settings, hardware.gpus, doubtful)
    _tidy(values, settings, facts)
    shown = sources.launch.seen_gpus if sources.launch is not None else None
    seen = shown.value if shown is not None else hardware.available
    set_trainer(values, settings, versions, doubtful, hardware.gpus, seen)
    own_parts = _frozen(values, settings, facts, doubtful)
    if sources.script is not None:
        loading(values, sources, versions, hardware.gpus)
    values["seq_len"] = min(values.get("seq_len", longest(facts)), facts.last_position or LARGEST_COUNT)
    evaluates = evaluation(settings, values, doubtful)
    if evaluates is not None:
        values["evaluation"] = evaluates
    beside, missing = of_ppo(settings, folders) if values.get("trainer") == "ppo" else ({}, ())
    values.update(beside)
    values["frozen_models"], values["uncounted"] = inference_models(settings, folders)
    _own_split(values, sources)
    if own_parts:
        values["uncounted"] = (*values["uncounted"], OWN_PARTS)
    spread = spread_by(sources, settings, versions)
    if spread is not None:
        values["uncounted"] = (*values["uncounted"], SPREAD.format(spread))
    elif splits_batch(sources, settings):
        values["uncounted"] = (*values["uncounted"], BATCH_SPLIT)
    if leaves_layers_out(sources):
        values["uncounted"] = (*values["uncounted"], FEWER_LAYERS)
    known = set(names(Spec))
    stated_versions = installed(versions)
    spec = Spec(
        facts=as_built(facts) if values.get("front_end") == "litgpt" else as_of(facts, stated_versions),
        gpu=hardware.gpu,
        capacity_bytes=hardware.capacity_bytes,
        gpus=hardware.gpus or 1,
        nodes=hardware.nodes,
        host_memory_bytes=hardware.host_memory_bytes,
        deepspeed_config=effective_deepspeed_config(sources, settings, facts),
        versions=stated_versions,
        stated=frozenset(_stated(settings, doubtful) & known)
        | ({"gpus"} if hardware.gpus is not None else set())
        | length_stated(values, settings)
        | _whose(settings)
        | {"attention"}.intersection(doubtful),  # another kernel than the default is asked for
        **values,
    )
    spec = with_own_kernels(with_own_attention(spec, settings, doubtful), settings)
    unknown = list(missing) if hardware.capacity_bytes is not None else [*missing, missing_gpu(settings)]
    if hardware.gpus is None and spec.engine != "single":
        unknown.append("the number of GPUs (--gpus, or gpus in lintfit.toml)")
    return Assembled(spec, tuple(unknown), tuple(doubtful))


def _whose(settings: Mapping[str, Setting]) -> frozenset[str]:
    """``front_end``, unless the loop is one that the memory model has no own words for (torchtune's)."""
    said = settings.get("front_end")
    return frozenset({"front_end"} if said is None or said.known else ())


def without_refused(assembled: Assembled, refused: Sequence[Refused]) -> Assembled:
    """No spec where a parser refuses a flag that decides memory: what the run is without it is nobody's intent."""
    deciding = [each for each in refused if each.decides]
    if not deciding:
        return assembled
    reasons = tuple(dict.fromkeys(f"{each.name}{REFUSED}" for each in deciding))
    return Assembled(None, (*reasons, *assembled.unknown), (), assembled.lacks_model)


def _direct(settings: Mapping[str, Setting]) -> tuple[dict[str, Any], list[str]]:
    """The settings that have the name of a spec's field, and those of them that is not statically known."""
    values: dict[str, Any] = {}
    doubtful: list[str] = []
    for name in AS_THEY_ARE:
        setting = settings.get(name)
        if setting is None:
            continue
        value = _as_in_a_spec(name, setting.value)
        if value is not UNKNOWN:
            values[name] = value
        elif name in LOWER_BOUNDS:
            values[name] = LOWER_BOUNDS[name]
            doubtful.append(name)
    optimizer, trainer = settings.get("optimizer"), settings.get("trainer")
    if optimizer is not None and not optimizer.known:
        values["optimizer"] = LOWER_BOUNDS["optimizer"]
        doubtful.append("optimizer")
    if (trainer is not None and not trainer.known) or ("own_head" in settings and trainer is None):
        values["trainer"] = WITHOUT_LOGITS
        doubtful.append("trainer")
    if "forward_pass" in settings:
        values |= LEAST_FORWARD
        doubtful.append("forward_pass")
    if "lora_targets" in settings and not settings["lora_targets"].known:
        # What is not known of them is no reason against a verdict: a run that fits with all of them fits.
        values["lora_targets"] = "all-linear"
    return values, doubtful


def _as_in_a_spec(name: str, value: Any) -> Any:
    """The value that a key of a spec has; UNKNOWN for one that it cannot have.

    Libraries ask flags whether they are true: a number is one, too.
    """
    for each in (value, bool(value)) if isinstance(value, (int, float)) else (value,):
        with suppress(SpecError):
            return READERS[name](name, each)
    return UNKNOWN


def _stated(settings: Mapping[str, Setting], doubtful: list[str]) -> set[str]:
    return {
        name
        for name, setting in settings.items()
        if setting.known and setting.provenance.kind != "assumed" and name not in doubtful
    }


def _tidy(values: dict[str, Any], settings: Mapping[str, Setting], facts: ModelFacts) -> None:
    """Bring the files' values into the spec's form."""
    if values.get("quantization") is not None and values.get("method") != "lora":
        values.setdefault("method", "full")
    if "loop_outputs" in values and "use_cache" not in settings:
        # No trainer turns off what the model's config has on.
        values["use_cache"] = facts.config.get("use_cache") is not False
    if facts.vision is None:
        values.pop("images", None)  # said of all runs of a folder, of which this one sees none
    _optimizer(values, settings)
    _fsdp(values, settings)


def _frozen(values: dict[str, Any], settings: Mapping[str, Setting], facts: ModelFacts, doubtful: list[str]) -> bool:
    """What is frozen, as far as it can be counted: what is trained beside frozen parts of the language model that
    cannot, nobody knows. Whether all of the model is frozen, and parts that its own code adds are trained alone."""
    modules = values.pop("frozen_modules", ())
    if values.get("method", "full") != "full" or not modules:
        return False
    known = named(facts, modules)
    counted = wrong(facts, known) is None
    if counted and parts_of(facts, known).of_text:
        counted = uncounted(values.get("pipeline_parallel", 1), values.get("trainer", "")) is None
    if "partly_frozen" in settings and not (counted and known == modules):
        values["method"] = LOWER_BOUNDS["method"]
        doubtful.append("method")
        return known == ("*",) and modules[0] == "*" and not any(map(_OF_LANGUAGE_MODEL.search, modules))
    if counted:
        values["frozen_modules"] = known
    return False


def _split(values: dict[str, Any], settings: Mapping[str, Setting], gpus: int | None, doubtful: list[str]) -> None:
    """Ranks that share a model or a sequence; where nobody can tell how many do, all of them (least memory)."""
    for name in SPLITS:
        setting = settings.get(name)
        if setting is not None:
            values[name] = setting.value if is_count(setting.value, LARGEST_COUNT) else gpus or 1
            if not setting.known:
                doubtful.append(name)
    replicas = settings.get("replicas")
    if replicas is not None and not replicas.known and values.get("engine") == "fsdp":
        doubtful.append("replicas")
    parts = prod(values.get(name, 1) for name in SPLITS)
    if gpus is not None and parts > 1 and gpus % parts:
        doubtful += [name for name in SPLITS if name in values]


def _own_split(values: dict[str, Any], sources: Sources) -> None:
    """Front ends that split sequences themselves: nobody has counted more than that a rank has its share.

    ms-swift does beside any engine, LLaMA-Factory's second version under FSDP.
    """
    split = _SPLITS_ITSELF.get(sources.recipe.dialect) if sources.recipe is not None else None
    parts = values.get("sequence_parallel", 1)
    if parts > 1 and split is not None:
        values["seq_len"] = -(-values["seq_len"] // parts)
        values["sequence_parallel"] = 1
        values["uncounted"] = (*values["uncounted"], split)


def _optimizer(values: dict[str, Any], settings: Mapping[str, Setting]) -> None:
    setting = settings.get("optimizer")
    if setting is not None and isinstance(setting.value, str):
        values["optimizer"] = _DEEPSPEED_OPTIMIZERS.get(setting.value.lower(), setting.value)


def _fsdp(values: dict[str, Any], settings: Mapping[str, Setting]) -> None:
    if values.get("engine") != "fsdp":
        return
    setting = settings.get("fsdp")
    values["fsdp"] = setting.value if setting is not None and isinstance(setting.value, Fsdp) else Fsdp()
    upcast = settings.get("fsdp_upcast")
    if upcast is not None and upcast.value is False and values.get("mixed_precision") == values.get("weights_dtype"):
        # Shards that stay in half precision under autocast to the same are those of a run without it.
        values["mixed_precision"] = "no"
    replicas = settings.get("replicas")
    whole = settings.get("whole_state_dict")
    values["saves_on_gpu"] = whole is not None and whole.value is True and values["fsdp"].version == 1
    if replicas is not None and is_count(replicas.value, LARGEST_COUNT):
        values["fsdp"] = replace(values["fsdp"], replicas=replicas.value)
