"""Settings that the training arguments, the trainer or a hand-written loop decide."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.catalog import sft
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.values import (
    Class,
    Const,
    Function,
    Object,
    Record,
    Table,
    Value,
    alternatives,
    is_none,
    objects,
    plain,
)
from lintfit.sources.script.reading import (
    checkpointing,
    compiling,
    engines,
    in_json,
    inference_models,
    kept_checkpoints,
    lengths,
    lora,
    optimizer_classes,
    own_evaluation,
    own_forward,
    own_gradients,
    own_loop,
    own_outputs,
    own_step,
    pairs,
    ppo,
    resuming,
    saving,
    trainer_evaluation,
    unsaved,
    unsloth,
)
from lintfit.sources.script.reading import plain as plain_loop
from lintfit.sources.script.reading.collector import Reading, something, sure_none
from lintfit.sources.script.reading.own_method import bases, lineage
from lintfit.sources.training_arguments import TRAINING
from lintfit.sources.training_words import CHECKPOINTING, EACH_BATCH, LIGER, heeds_each_batch

_TRAINERS = re.compile(r"(DPO|GRPO|KTO|ORPO|CPO|PPO|RLOO|Reward|SFT)", re.IGNORECASE)


def read(reading: Reading) -> None:
    """Note everything that decides how the training runs."""
    found = reading.found
    _trainer(reading)
    if found.arguments is not None:
        _arguments(reading, found.arguments)
    else:
        own_loop.read(reading)
    _classifies(reading)
    trainer_evaluation.read(reading)
    own_evaluation.read(reading)
    own_outputs.read(reading)
    own_gradients.read(reading)
    saving.read(reading)
    resuming.read(reading)
    kept_checkpoints.read(reading)
    unsaved.read(reading)
    ppo.read(reading)
    inference_models.read(reading)
    own_step.read(reading)
    own_forward.read(reading)
    checkpointing.read(reading)
    lengths.read(reading)
    compiling.read(reading)
    plain_loop.bucket_views(reading)
    plain_loop.started_by_ray(reading)
    plain_loop.plays_launcher(reading)


def _trainer(reading: Reading) -> None:
    record = reading.found.trainer
    if record is None:
        return
    kinds = {_kind(reading, name) for name in [cls.name for cls in record.classes] or [record.name]}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if "logits" in record.name.lower():
        kind = "causal-lm"
    if kind:
        reading.state("trainer", "causal-lm" if kind == "sft" else kind, record.node)
    else:
        reading.state("trainer", UNKNOWN, record.node, "one of several trainers, which is not known")
    plain_batches = pairs.surely_none(record) if kind in pairs.COMPARE else None
    if plain_batches is not None:
        why = f"{plain_batches} makes batches without the pairs that {record.name} compares"
        reading.state("trainer", UNKNOWN, record.node, why)
    else:
        _reference(reading, record, kind)
    _packs(reading, record)
    handed = record.value(0, "model")
    if kind == "causal-lm" and reading.found.arguments is not None and models.in_own_module(handed):
        why = "the model is a part of a module of the project's own, which decides what a batch runs through it"
        reading.state("trainer", UNKNOWN, record.node, why)


def _kind(reading: Reading, name: str) -> str:
    """What a trainer's class does, by its name, or by those that it inherits from."""
    line = lineage(reading.calls.documents, name)
    matched = next(filter(None, map(_TRAINERS.search, (name, *bases(line)))), None)
    return matched.group(1).lower() if matched is not None else "causal-lm"


def _packs(reading: Reading, record: Record) -> None:
    """``SFTTrainer(packing=…)``, false by default: a keyword of TRL's trainer before SFTConfig had it (TRL 0.13)."""
    value, made = record.keyword("packing"), reading.found.arguments
    if value is not None:
        reading.put("packing", value, record, to=False if sure_none(value) else None)
    elif record.name == "SFTTrainer" and not record.spreads and made is not None and "SFT" not in made.library:
        reading.default("packing", False, "SFTTrainer's default")


_CLASSIFIERS = re.compile(r"For(SequenceClassification|TokenClassification|QuestionAnswering|MultipleChoice)$")
"""How the classes of models end that give a few scores in the place of logits over a vocabulary."""


def _classifies(reading: Reading) -> None:
    """Whether transformers' Trainer, or a loop of the script's own, trains a model without an output layer."""
    load, trainer = reading.found.trained_load, reading.settings.get("trainer")
    if load is None or not (named := [name for name in _classes_of(load) if _CLASSIFIERS.search(name) is not None]):
        return
    if trainer is None or trainer.value == "causal-lm":
        reading.state("trainer", "classification", load.node, f"{named[0]} has scores in the place of an output layer")


def _classes_of(load: Record) -> Iterator[str]:
    """The class that a model is loaded by: the library's, and the project's own (a copy of modelling code) that stands
    before it."""
    yield models.owner_of(load)
    if isinstance(load.receiver, Class):
        yield load.receiver.name


def _reference(reading: Reading, record: Record, kind: str) -> None:
    """Whether a second, frozen copy of the model is held: TRL's rule for DPO-like and GRPO-like trainers."""
    compares = kind in ("dpo", "kto") or record.name.endswith("BCOTrainer")
    handed = record.value(1, "ref_model") if compares else _own_reference(record)
    if something(handed):
        if inference_models.is_wider(reading, handed):
            reading.derive("reference_model", False, "it is counted with the models beside the trained one")
        else:
            named = isinstance(plain(handed), str)  # TRL loads what it is given the name of
            sure = named or (objects_of(handed) and not (_may_be_none(handed) and _with_adapter(reading, record)))
            reading.put("reference_model", handed, record, to=True if sure else UNKNOWN)
        return
    with_adapter = _with_adapter(reading, record)
    made = reading.found.arguments
    if kind in ("grpo", "rloo") and made is not None:
        beta = reading.attribute(made, "beta")
        known = plain(beta) if beta is not None else 0.0
        needed = UNKNOWN if known is UNKNOWN else bool(known) and not with_adapter
        reading.derive(
            "reference_model", needed, f"beta is {known}" + (", and the adapter is switched off for it" * with_adapter)
        )
    elif (compares or kind == "ppo") and not _is_of_transformers(record):
        why = (
            "the adapter is switched off for it" if with_adapter else f"{record.name} makes one where none is handed in"
        )
        reading.derive("reference_model", not with_adapter, why)
    elif _holds_another(reading, record):
        reading.derive("reference_model", UNKNOWN, "the trainer's own class has a ref_model")
    else:
        reading.derive("reference_model", False, f"{record.name} needs none")


def _is_of_transformers(trainer: Record) -> bool:
    """Whether a trainer by the name of one of TRL's is the project's own and inherits from transformers': that makes no
    copy of a model."""
    return bool(trainer.classes) and trainer.function.startswith("transformers.")


def _with_adapter(reading: Reading, trainer: Record) -> bool:
    """Whether a trainer has an adapter to switch off for the reference's answers, and makes no copy of the model."""
    config = reading.found.peft
    handed = not sure_none(trainer.keyword("peft_config"))
    return handed or (config is not None and config.taken is True) or lora.carries_adapter(reading) is True


def _may_be_none(value: Value) -> bool:
    return any(is_none(option) for option in alternatives(value))


def _own_reference(record: Record) -> Value | None:
    """The reference that a trainer is handed by name, or in its place among the arguments of the script's own class."""
    handed = record.keyword("ref_model", "reference_model")
    for cls in record.classes if handed is None else ():
        made = cls.member("__init__")
        parameters = made.node.params.params[1:] if isinstance(made, Function) and made.node is not None else ()
        for value, parameter in zip(record.positional, parameters, strict=False):
            if parameter.name.value in ("ref_model", "reference_model"):
                return value
    return handed


def _holds_another(reading: Reading, record: Record) -> bool:
    """Whether a trainer's class of the script's own makes a reference by itself."""
    names = [cls.name for cls in record.classes] or [record.name]
    lines = (lineage(reading.calls.documents, name) for name in names)
    return any("self.ref_model" in document.text for line in lines for document, _ in line)


def objects_of(value: Value) -> bool:
    return any(True for _ in objects(value))


def _arguments(reading: Reading, made: Object) -> None:
    record = made.call if made.call is not None and not made.parsed else None
    too_late = made.at_first if reading.at_least("transformers", 4, 30) else {}
    for name, fields in TRAINING.items():
        value = _as_made(reading, made, name) if name in too_late else reading.attribute(made, *fields)
        if value is None or (made.parsed and made.open and plain(value) is UNKNOWN):
            continue
        reading.put(name, value, record)
    _deepspeed(reading, made, record)
    unsloth.batch(reading)
    _optimizer_argument(reading)
    optimizer_classes.handed(reading)
    _checkpointing_argument(reading, made, record)
    if not unsloth.precision(reading):
        _precision_by_trl(reading, made)
    offload = made.attributes.get("activation_offloading")
    if offload is not None:
        reading.put("activation_offload", offload, record)
    switches = (made.attributes.get(name) for name in LIGER)
    liger = next((switch for switch in switches if switch is not None and plain(switch) is not False), None)
    if liger is not None:
        reading.put("loss", liger, record, to="liger" if plain(liger) is True else UNKNOWN)
    elif "GRPO" in made.library and unsloth.load_of(reading) is not None:
        reading.derive("loss", UNKNOWN, "Unsloth computes GRPO's loss over parts of a batch")
    elif (by_unsloth := unsloth.loss(reading)) is not None:
        reading.default("loss", *by_unsloth)
    elif made.library.endswith("SFTConfig"):
        _sft_loss(reading, made, record)
    _use_cache(reading, made, record)
    _fsdp_checkpointing(reading, made)
    config = made.attributes.get("accelerator_config")
    each = in_json.flag_in(config, *EACH_BATCH)
    if config is not None and each is not None and heeds_each_batch(reading.versions):
        reading.put("sync_each_batch", config, record, to=each)


def _as_made(reading: Reading, made: Object, name: str) -> Value | None:
    """A field as ``__post_init__`` sees it: transformers 4.30 and up leave the precision to accelerate there; up to
    4.29 the Trainer itself asks for it as it is made."""
    first = made.at_first[name]
    if first is not None or made.open:
        return first
    found = reading.walk.defaults.get(made.library, name)
    return Const(found[1], found[0]) if found is not None else None


def _checkpointing_argument(reading: Reading, made: Object, record: Record | None) -> None:
    """The flag under either of its names; None is the library's way to say no."""
    stated = next((made.attributes[name] for name in CHECKPOINTING if name in made.attributes), None)
    value = stated or reading.attribute(made, "gradient_checkpointing")
    if value is None or (made.open and plain(value) is UNKNOWN):
        if made.parsed and made.open:
            reading.derive("gradient_checkpointing", UNKNOWN, "the file that fills the arguments is not read")
        elif made.open and made.call is not None:
            why = "arguments that are not known may ask for it"
            reading.state("gradient_checkpointing", UNKNOWN, made.call.node, why)
        return
    reading.put("gradient_checkpointing", value, record, to=False if plain(value) is None else None)


def _deepspeed(reading: Reading, made: Object, record: Record | None) -> None:
    value = made.attributes.get("deepspeed")
    if isinstance(value, Table):
        engines.config(reading, value, record, trainer=True)
    for name in ("deepspeed", "fsdp"):
        setting = reading.settings.get(name)
        if setting is not None and setting.value in (None, "", False, []):
            del reading.settings[name]
    engines.trainer_fsdp(reading, made)


def _optimizer_argument(reading: Reading) -> None:
    """Enum members (``OptimizerNames.ADAMW_TORCH``) by their value."""
    home = reading.homes.get("optimizer")
    made = reading.found.arguments
    value = made.attributes.get("optim") if made is not None else None
    name = getattr(value, "name", None)
    if home is not None and value is not None and isinstance(name, str) and "OptimizerNames." in name:
        reading.put("optimizer", value, home.record, to=name.rpartition(".")[2].lower())


def _precision_by_trl(reading: Reading, made: Object) -> None:
    """TRL's configs leave ``bf16`` None, which becomes true unless ``fp16`` is set (TRL 0.19 and up)."""
    bf16 = reading.settings.get("bf16")
    if made.library.rpartition(".")[0].partition(".")[0] != "trl" and not made.library.endswith("Config"):
        return
    if bf16 is None or bf16.value is not None:
        return
    fp16 = reading.settings.get("fp16")
    on = fp16 is None or fp16.value in (None, False)
    reading.default("bf16", on, "TRL's default: bf16 unless fp16")


def _sft_loss(reading: Reading, made: Object, record: Record | None) -> None:
    """TRL's SFT loss: fused with the head for every model since 1.16, in chunks by default since 1.8, whole before."""
    loss = made.attributes.get("loss_type")
    known = plain(loss) if loss is not None else None
    if known is UNKNOWN:
        return
    version = reading.versions.get("trl")
    if reading.at_least("trl", *sft.FUSES_LOSS):
        reading.default("loss", "chunked", f"TRL {version or '1.16'} computes the loss together with the head")
    elif loss is not None and known is not None:
        reading.put("loss", loss, record, to="chunked" if known == "chunked_nll" else "full")
    elif not made.open:
        chunked = reading.at_least("trl", *sft.CHUNKS_LOSS)
        reading.default("loss", "chunked" if chunked else "full", f"TRL {version} default")


def _use_cache(reading: Reading, made: Object, record: Record | None) -> None:
    value = reading.attribute(made, "use_cache")
    if value is not None and plain(value) is not UNKNOWN:
        reading.put("use_cache", value, record)


def _fsdp_checkpointing(reading: Reading, made: Object) -> None:
    config = engines.fsdp_config(reading, made)
    if config is not None and "fsdp" in reading.settings:
        for key in ("activation_checkpointing", "fsdp_activation_checkpointing"):
            if key in config.items and operators.truth(config.items[key]):
                reading.put("gradient_checkpointing", config.items[key])
