"""What of a library's calls and objects is a model, a parser or an arguments object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from lintfit.documents import bounds
from lintfit.sources.script.interpreter.values import Const, Object, Record, Ref, Value, alternatives, objects

if TYPE_CHECKING:
    from lintfit.sources.script.interpreter.state import Walk

CONFIG_NAMES = (
    "pretrained_model_name_or_path",
    "model_name_or_path",
    "model_name",
    "model_id",
    "base_model_name_or_path",
)
"""Names by which a model's loader gets its checkpoint."""
_LOADERS = frozenset(
    {"from_pretrained", "from_config", "_from_config", "load_from_checkpoint", "load_pretrained_model"}
)
_NOT_MODELS = re.compile(
    r"(tokeni[sz]er|config|processor|extractor|scheduler|pipeline|generationconfig|vocab|feature|dataset|sampler)",
    re.IGNORECASE,
)
_MODEL_CLASS = re.compile(r"(Model|LMHead|For[A-Z]\w*|AutoencoderKL|CausalLM|model_cls|model_class|model)")
_CONSTRUCTED = re.compile(r"(Model|LMHeadModel|For[A-Z]\w+)$")
_ARGUMENTS = re.compile(
    r"(TrainingArguments|(SFT|DPO|GRPO|KTO|ORPO|CPO|PPO|PPOv2|RLOO|Reward|PRM|BCO|XPO|OnlineDPO|NashMD|GKD|Iterative\w*)Config)$"
)
_ADAPTED = re.compile(r"PeftModel(For\w+)?")
_DATACLASS_PARSER = re.compile(r"(Hf|H4)ArgumentParser$|TrlParser$|ArgumentParserPlus$")


@lru_cache(maxsize=4096)
def is_arguments(name: str) -> bool:
    """Whether a dotted name is a ``TrainingArguments``-like class."""
    return bool(_ARGUMENTS.search(name))


def arguments_before(walk: Walk, order: int) -> bool:
    """Whether arguments of a trainer may be made before a call, not only those that the trainer gets: they set the
    process's GPU, and tell transformers about ZeRO-3 (``TrainingArguments.__post_init__``)."""
    made = [record for record in walk.records[:order] if is_arguments(record.function)]
    made += [each.call for each in walk.parsed if each.call is not None and is_arguments(each.library)]
    return any(record.order < order and record.taken is not False for record in made)


def told_by_parsers(walk: Walk) -> list[Record]:
    """The calls by which a parser makes arguments of a trainer, or of a class that extends them, that name a DeepSpeed
    config, whoever gets them: a load after one is under ``zero.Init`` if that is ZeRO-3
    (``TrainingArguments.__post_init__`` makes an ``HfTrainerDeepSpeedConfig``, which they keep; transformers 4.40)."""
    return [
        each.call
        for each in walk.parsed
        if each.call is not None
        and each.call.taken is not False
        and is_arguments(each.library)
        and (named := each.attributes.get("deepspeed")) is not None
        and not (isinstance(named, Const) and named.value in (None, ""))
    ]


_FIRST_PPO = frozenset({
    "adap_kl_ctrl", "early_stopping", "forward_batch_size", "init_kl_coef", "log_with", "model_name",
    "optimize_cuda_cache", "optimize_device_cache", "ppo_epochs", "tracker_project_name",
})  # fmt: skip
"""Fields of TRL's ``PPOConfig`` up to 0.11 that the later one, a ``TrainingArguments``, has not."""


def is_first_ppo(made: Object) -> bool:
    """Whether a PPO config is that of TRL's first PPOTrainer, whose loop is the script's own."""
    return made.library.endswith("PPOConfig") and bool(_FIRST_PPO & made.attributes.keys())


def has_strategy(attributes: Mapping[str, Value], data: Value | None = None) -> bool:
    """Whether training arguments say when to evaluate between the steps; by default no library does.

    ``data``: what a trainer is handed to evaluate on. Where it surely has some, a strategy that hangs on something
    (``"steps" if val_data else "no"``) is taken to hang on that.
    """
    when = next((attributes[name] for name in ("eval_strategy", "evaluation_strategy") if name in attributes), None)
    if when is None:
        return False
    words = list(alternatives(when))
    there = data is not None and not any(isinstance(each, Const) and each.value is None for each in alternatives(data))
    return any(map(_is_strategy, words)) if there else all(map(_is_strategy, words))


def _is_strategy(when: Value) -> bool:
    if isinstance(when, Ref):
        return when.name.rpartition(".")[2].lower() in _STRATEGIES  # ``IntervalStrategy.STEPS``
    word = when.value if isinstance(when, Const) else None
    return isinstance(word, str) and word.lower() in _STRATEGIES


_STRATEGIES = frozenset({"steps", "epoch"})


@lru_cache(maxsize=4096)
def is_dataclass_parser(name: str) -> bool:
    """Whether a dotted name is a parser that fills dataclasses: HfArgumentParser or one of its children."""
    return bool(_DATACLASS_PARSER.search(name))


def owner_of(record: Record) -> str:
    """The class that a method is called on: ``AutoModel`` of ``transformers.AutoModel.from_pretrained``."""
    return record.function.rpartition(".")[0].rpartition(".")[2]


def loads_adapter(record: Record) -> bool:
    """Whether a call puts a saved adapter of PEFT's into a model."""
    return record.name == "from_pretrained" and _ADAPTED.fullmatch(owner_of(record)) is not None


def is_adapted_class(name: str) -> bool:
    """Whether a name is that of one of PEFT's classes of models with adapters."""
    return _ADAPTED.fullmatch(name) is not None


def is_model_load(record: Record) -> bool:
    """Whether a call makes a model from a checkpoint or a config (not a tokenizer, config or processor)."""
    if record.name not in _LOADERS:
        return False
    owner = owner_of(record)
    if _ADAPTED.fullmatch(owner):
        return False
    return bool(_MODEL_CLASS.search(owner)) and not _NOT_MODELS.search(owner)


def is_model_constructor(record: Record) -> bool:
    """Whether a call builds a library's model class from a config (``LlamaForCausalLM(config)``)."""
    library = record.function.partition(".")[0]
    return library in ("transformers", "diffusers", "timm") and _CONSTRUCTED.search(record.name) is not None


def is_own_model(made: Object) -> bool:
    """Whether an object is made by the constructor of a model class of the project."""
    library = made.cls.library if made.cls is not None else None
    if library is None or made.call is None:
        return False
    return library.endswith(("nn.Module", "PreTrainedModel")) and made.call.function == library


def in_own_module(value: Value | None) -> bool:
    """Whether what is trained is of a class of the project that holds a loaded model as a part."""
    outer = next(objects(value), None)
    if outer is None or outer.cls is None or outer.call is None or is_model_load(outer.call):
        return False
    handed = [passed.value for passed in outer.call.passed]
    parts = (outer.base, *outer.attributes.values(), *handed)
    return any(any(loads_of(part)) for part in parts)


def loads_of(value: Value | None, level: int = 0) -> Iterator[Record]:
    """The calls that have loaded a value, or what it wraps.

    TRL's ``AutoModelForCausalLMWithValueHead.from_pretrained`` loads nothing where it is handed a model.
    """
    for each in objects(value):
        if each.call is not None and is_model_load(each.call):
            handed = each.call.value(0, CONFIG_NAMES[0])
            inner = [] if each.call.name != "from_pretrained" else [o for o in objects(handed) if is_model(o)]
            if inner and level < bounds.MAX_WRAPS:
                yield from loads_of(handed, level + 1)
            else:
                yield each.call


def is_model(made: Object) -> bool:
    """Whether an object is a model or wraps one."""
    for each in objects(made):
        if each.call is not None and (is_model_load(each.call) or is_model_constructor(each.call)):
            return True
        if each.cls is not None and (each.cls.library or "").endswith(("nn.Module", ".Module", "PreTrainedModel")):
            return True
        kind = each.kind.rpartition(".")[2]
        if _ADAPTED.fullmatch(kind) or kind in ("create_model", "get_model", "load_model", "build_model"):
            return True
    return False


def init_kwargs(trainer: Record | None, made: Object | None) -> Value | None:
    """What TRL's trainers load a model that is given by name with: of their config, of the trainer up to TRL 0.12."""
    if trainer is not None and (handed := trainer.keyword("model_init_kwargs")) is not None:
        return handed
    return made.attributes.get("model_init_kwargs") if made is not None else None


def by_unsloth(load: Record) -> bool:
    """Whether unsloth's own classes load the model: always with double quantization (unsloth/models/llama.py)."""
    return load.function.startswith("unsloth")
