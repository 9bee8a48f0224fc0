"""Settings that the training arguments, the trainer or a hand-written loop decide."""

from __future__ import annotations

import re
from dataclasses import replace

import libcst as cst

from lintfit.documents.model import Span
from lintfit.settings import UNKNOWN, Place, Provenance, Setting
from lintfit.sources.python import engines, models, operators, ppo
from lintfit.sources.python import plain as plain_loop
from lintfit.sources.python.reading import Reading, sure_none
from lintfit.sources.python.statements import LENGTHS
from lintfit.sources.python.values import Bounded, Const, Object, Record, Table, Value, objects, plain

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "micro_batch_size": ("per_device_train_batch_size", "per_gpu_train_batch_size"),
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "optimizer": ("optim",),
    "learning_rate": ("learning_rate",),
    "adam_beta1": ("adam_beta1",),
    "adam_beta2": ("adam_beta2",),
    "adam_epsilon": ("adam_epsilon",),
    "weight_decay": ("weight_decay",),
    "max_grad_norm": ("max_grad_norm",),
    "warmup_steps": ("warmup_steps",),
    "warmup_ratio": ("warmup_ratio",),
    "deepspeed": ("deepspeed",),
    "fsdp": ("fsdp",),
    "num_generations": ("num_generations",),
    "max_completion_length": ("max_completion_length",),
    "max_prompt_length": ("max_prompt_length",),
    "use_vllm": ("use_vllm",),
    "vllm_mode": ("vllm_mode",),
    "vllm_gpu_memory_utilization": ("vllm_gpu_memory_utilization",),
    "vllm_enable_sleep_mode": ("vllm_enable_sleep_mode",),
    "steps_per_generation": ("steps_per_generation",),
    "ds3_gather_for_generation": ("ds3_gather_for_generation",),
    "beta": ("beta",),
    "response_length": ("response_length",),
    "rollout_batch_size": ("local_rollout_forward_batch_size",),
    "mini_batches": ("num_mini_batches",),
}
"""Settings by the names of the fields of ``TrainingArguments`` and TRL's configs."""

CHECKPOINTING = ("activation_checkpointing", "gradient_checkpointing")
PARTS = (("max_source_length", "max_target_length"), ("source_max_len", "target_max_len"))
"""Fields that limit a prompt and its answer, which a causal language model gets in one sequence."""
_HANDED = frozenset({"max_seq_length", "max_seq_len", "seq_length", "sequence_length", "seq_len", "cutoff_len"})
_LAST_CUT = re.compile(r"""input_ids["']?\]\s*\[\s*:\s*-\s*1\s*\]""")
"""``tokenizer(…, max_length=limit + 1)["input_ids"][:-1]``, as scripts after alpaca-lora have it."""
_LENGTH = re.compile(
    rf"^[ \t]*(?P<name>{'|'.join(LENGTHS)}) = (?P<value>[1-9]\d{{1,5}})[ \t]*(?:#.*)?$", re.MULTILINE | re.IGNORECASE
)
_OPTIMIZERS: dict[str, str] = {
    "AdamW": "adamw_torch",
    "Adam": "adamw_torch",
    "FusedAdam": "adamw_torch_fused",
    "DeepSpeedCPUAdam": "deepspeed_cpu_adam",
    "AdamW8bit": "adamw_8bit",
    "Adam8bit": "adamw_8bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "PagedAdamW": "paged_adamw_32bit",
    "PagedAdamW32bit": "paged_adamw_32bit",
    "Adafactor": "adafactor",
    "SGD": "sgd",
    "Lion": "lion_32bit",
    "RMSprop": "rmsprop",
    "Adagrad": "adagrad",
}
"""Optimizer classes by transformers' names of the same state."""

_TRAINERS = re.compile(r"(DPO|GRPO|KTO|ORPO|CPO|PPO|RLOO|Reward|SFT)", re.IGNORECASE)


def read(reading: Reading) -> None:
    """Note everything that decides how the training runs."""
    found = reading.found
    _trainer(reading)
    if found.arguments is not None:
        _arguments(reading, found.arguments)
    else:
        _loop(reading)
    ppo.read(reading)
    _checkpointing(reading)
    _length(reading)
    plain_loop.started_by_ray(reading)


def _trainer(reading: Reading) -> None:
    record = reading.found.trainer
    if record is None:
        return
    matched = _TRAINERS.search(record.name)
    kind = matched.group(1).lower() if matched else "causal-lm"
    if "logits" in record.name.lower():
        kind = "causal-lm"
    reading.state("trainer", "causal-lm" if kind == "sft" else kind, record.node)
    _reference(reading, record, kind)
    handed = record.value(0, "model")
    if kind == "causal-lm" and reading.found.arguments is not None and models.in_own_module(handed):
        why = "the model is a part of a module of the project's own, which decides what a batch runs through it"
        reading.state("trainer", UNKNOWN, record.node, why)


def _reference(reading: Reading, record: Record, kind: str) -> None:
    """Whether a second, frozen copy of the model is held: TRL's rule for DPO-like and GRPO-like trainers."""
    handed = record.keyword("ref_model", "reference_model")
    if handed is not None and not sure_none(handed):
        reading.put("reference_model", handed, record, to=True if objects_of(handed) else UNKNOWN)
        return
    adapter = record.keyword("peft_config")
    peft = reading.found.peft
    with_adapter = not sure_none(adapter) or (peft is not None and peft.taken is True)
    made = reading.found.arguments
    if kind in ("grpo", "rloo") and made is not None:
        beta = reading.attribute(made, "beta")
        known = plain(beta) if beta is not None else 0.0
        needed = UNKNOWN if known is UNKNOWN else bool(known) and not with_adapter
        reading.derive(
            "reference_model", needed, f"beta is {known}" + (", and the adapter is switched off for it" * with_adapter)
        )
    elif kind in ("dpo", "kto", "ppo"):
        why = (
            "the adapter is switched off for it" if with_adapter else f"{record.name} makes one where none is handed in"
        )
        reading.derive("reference_model", not with_adapter, why)
    else:
        reading.derive("reference_model", False, f"{record.name} needs none")


def objects_of(value: Value) -> bool:
    return any(True for _ in objects(value))


def _arguments(reading: Reading, made: Object) -> None:
    record = made.call if made.call is not None and not made.parsed else None
    for name, fields in ARGUMENTS.items():
        value = reading.attribute(made, *fields)
        if value is None or (made.parsed and made.open and plain(value) is UNKNOWN):
            continue
        reading.put(name, value, record)
    _deepspeed(reading, made, record)
    _optimizer_argument(reading)
    _checkpointing_argument(reading, made, record)
    _precision_by_trl(reading, made)
    offload = made.attributes.get("activation_offloading")
    if offload is not None:
        reading.put("activation_offload", offload, record)
    liger = made.attributes.get("use_liger_kernel", made.attributes.get("use_liger"))
    if liger is not None and plain(liger) is not False:
        reading.put("loss", liger, record, to="liger" if plain(liger) is True else UNKNOWN)
    elif made.library.endswith("SFTConfig"):
        _sft_loss(reading, made, record)
    _use_cache(reading, made, record)
    _fsdp_checkpointing(reading, made)


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
    if reading.at_least("trl", 1, 16):
        reading.default("loss", "chunked", f"TRL {version or '1.16'} computes the loss together with the head")
    elif loss is not None and known is not None:
        reading.put("loss", loss, record, to="chunked" if known == "chunked_nll" else "full")
    elif not made.open:
        chunked = reading.at_least("trl", 1, 8)
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


def _first_ppo(reading: Reading, made: Object) -> None:
    """``PPOConfig`` up to TRL 0.11: ``mini_batch_size`` goes through the model at a time (``PPOTrainer.step``)."""
    for name, keyword in (("micro_batch_size", "mini_batch_size"), ("gradient_accumulation_steps",) * 2):
        value = made.attributes.get(keyword)
        if value is not None:
            reading.put(name, value, made.call)
    if "gradient_accumulation_steps" not in reading.settings and not made.open:
        reading.default("gradient_accumulation_steps", 1, "TRL's default up to 0.11")


def _loop(reading: Reading) -> None:
    """A loop written by hand: DataLoader, optimizer class, Accelerator."""
    if reading.found.first_ppo is not None:
        _first_ppo(reading, reading.found.first_ppo)
    accelerator, fabric = reading.found.accelerator, _last(reading.records, "Fabric")
    if accelerator is not None:
        for name, keyword in (("mixed_precision", "mixed_precision"), ("gradient_accumulation_steps",) * 2):
            value = accelerator.keyword(keyword)
            if value is not None and not sure_none(value):
                reading.put(name, value, accelerator)
        engines.accumulation(reading, accelerator)
        engines.plugins(reading, accelerator)
    elif fabric is not None:
        engines.fabric(reading, fabric)
    _loader(reading)
    _optimizer_class(reading)
    engines.initialized(reading)
    by_hand = reading.found.trains and all(
        part is None for part in (accelerator, fabric, reading.found.initialize, reading.found.trainer)
    )
    if by_hand:
        plain_loop.engine(reading)
        plain_loop.precision(reading)
        plain_loop.batch_by_name(reading)
    _accumulates(reading)


def _accumulates(reading: Reading) -> None:
    """``if (step + 1) % 8 == 0: optimizer.step()``: the divisor, where nothing else says how often a loop steps."""
    if "gradient_accumulation_steps" in reading.settings:
        return
    for record in reading.records:
        nodes: list[cst.CSTNode] = []
        if plain_loop.steps_optimizer(record):
            nodes = list(record.tests)
        elif record.name == "no_backward_sync" and (enabled := record.value(1, "enabled")) is not None:
            nodes = [enabled.origin] if isinstance(enabled.origin, cst.CSTNode) else []
        for node in nodes:
            found = reading.divisor(node)
            if found is not None and isinstance(plain(found), int):
                reading.put("gradient_accumulation_steps", found, record)
                return
    if reading.found.initialize is None or reading.found.initialize.name != "initialize":
        plain_loop.named(reading)
        plain_loop.steps(reading)


def _last(records: list[Record], name: str) -> Record | None:
    chosen = [record for record in records if record.name == name and record.taken is not False]
    return chosen[-1] if chosen else None


def _loader(reading: Reading) -> None:
    engine = reading.found.initialize
    if engine is not None and engine.name == "initialize" and not sure_none(engine.keyword("training_data")):
        # DeepSpeed then makes the loader, with the micro-batch of its own config.
        return
    loaders = [r for r in reading.records if r.name == "DataLoader" and r.taken is not False]
    loaders = [r for r in loaders if not re.search(r"(eval|valid|test|dev)", r.assigned_to or "", re.IGNORECASE)]
    for loader in loaders[:1]:
        value = plain_loop.batch(loader)
        if value is not None and not plain_loop.asks_engine(value):
            # None: the data set makes batches of its own.
            own = plain_loop.of_data_set(loader) if sure_none(value) else value
            reading.put("micro_batch_size", own or value, loader, to=UNKNOWN if own is None else None)


def _optimizer_class(reading: Reading) -> None:
    chosen: list[tuple[Record, str]] = []
    for record in reading.records:
        owner = record.function.rpartition(".")[0]
        known = _OPTIMIZERS.get(record.name)
        if (
            known is None
            or record.taken is False
            or not re.search(r"(optim|deepspeed|bitsandbytes|bnb|apex|transformers|lion)", owner)
        ):
            continue
        chosen.append((record, known))
    if not chosen:
        return
    names = {name for _, name in chosen}
    sure = [entry for entry in chosen if entry[0].taken is True] or chosen
    record, name = sure[0]
    reading.state("optimizer", name if len(names) == 1 or len(sure) == 1 else UNKNOWN, record.node)
    for setting, keyword in (("learning_rate", "lr"), ("weight_decay", "weight_decay"), ("adam_epsilon", "eps")):
        value = record.keyword(keyword)
        if value is not None:
            reading.put(setting, value, record)


def _checkpointing(reading: Reading) -> None:
    """``model.gradient_checkpointing_enable()`` and its kin switch it on, whatever the arguments say."""
    quantized = reading.settings.get("quantization")
    for record in reading.found.checkpointing:
        if record.taken is False or record.guarded:
            continue
        on = _switches_on(record, quantized is not None and quantized.value is not None)
        if not on:
            continue
        current = reading.settings.get("gradient_checkpointing")
        if current is not None and current.value is True:
            continue
        reading.state("gradient_checkpointing", True if record.taken else UNKNOWN, record.node)
    for flagged in reading.recomputing:
        current = reading.settings.get("gradient_checkpointing")
        if flagged.taken is not False and (current is None or current.value is not True):
            reading.state("gradient_checkpointing", True if flagged.taken else UNKNOWN, flagged.node)
    _reentrant(reading)
    _unsloth(reading)
    if reading.found.arguments is None:
        plain_loop.recomputing(reading)


def _switches_on(record: Record, quantized: bool) -> bool:
    if not record.name.startswith("prepare_model"):
        return True
    flag = record.value(1, "use_gradient_checkpointing")
    return quantized and (flag is None or operators.truth(flag) is not False)


def _unsloth(reading: Reading) -> None:
    for record in reading.records:
        if record.name == "get_peft_model" and record.function.startswith("unsloth") and record.taken is not False:
            value = record.keyword("use_gradient_checkpointing")
            if value is not None:
                known = plain(value)
                reading.put("gradient_checkpointing", value, record, to=True if known == "unsloth" else known)


def _reentrant(reading: Reading) -> None:
    setting = reading.settings.get("gradient_checkpointing")
    if setting is None or setting.value is not True:
        return
    made = reading.found.arguments
    tables: list[Value | None] = []
    if made is not None:
        tables += [
            made.attributes.get("gradient_checkpointing_kwargs"),
            made.attributes.get("activation_checkpointing_kwargs"),
        ]
    # A Trainer whose own flag is on enables it anew, with its own arguments or none.
    again = made is not None and any(operators.truth(made.attributes.get(name) or Const()) for name in CHECKPOINTING)
    if not again:
        tables += [r.value(0, "gradient_checkpointing_kwargs") for r in reading.found.checkpointing if r.taken is True]
    for table in tables:
        if isinstance(table, Table) and "use_reentrant" in table.items:
            reading.put("use_reentrant", table.items["use_reentrant"])
            return
    version = reading.versions.get("transformers")
    modern = reading.at_least("transformers", 5)
    reading.default("use_reentrant", not modern, f"transformers {version or '5'} default")


def _length(reading: Reading) -> None:
    load = reading.found.trained_load
    if load is not None and load.function.startswith("diffusers."):
        return  # a tokenizer's limit there is that of the prompts, not of what is trained
    _length_of_text(reading)


def _length_of_text(reading: Reading) -> None:
    """Tokens of a sequence: the trainer's config, else the tokenizer's limit, else a field of that name."""
    made = reading.found.arguments
    record = reading.found.trainer
    if record is not None and (value := record.keyword("max_seq_length", "max_length")) is not None:
        reading.put("seq_len", value, record)
        return
    if (
        made is not None
        and (made.library.endswith("Config") or (made.cls is not None and made.cls.name.endswith("Config")))
        and "GRPO" not in made.library
        and "RLOO" not in made.library
    ):
        value = reading.attribute(made, "max_length", "max_seq_length")
        if value is not None and not (made.open and plain(value) is UNKNOWN):
            setting = reading.put("seq_len", value, made.call if not made.parsed else None)
            own = "max_length" not in made.attributes and "max_seq_length" not in reading.defaults.names(made.library)
            if own and made.attributes.get("max_seq_length") is value and not _is_read(reading, value):
                why = "nothing in sight reads this field; it is taken for the length of a sequence"
                assumed = Provenance("assumed", why, setting.provenance.place)
                reading.settings["seq_len"] = replace(setting, provenance=assumed)
            return
    if made is not None and any(kind in made.library for kind in ("GRPO", "RLOO", "PPO")):
        return
    for value, where in (*_tokenized(reading), *_declared(reading)):
        known = plain(value.most if isinstance(value, Bounded) and value.most is not None else value)
        if isinstance(known, int) and not isinstance(known, bool) and 1 < known < 10_000_000:
            by_one = isinstance(value.origin, cst.BinaryOperation) and isinstance(value.origin.right, cst.Integer)
            cut = by_one and where is not None and _LAST_CUT.search(reading.calls.script.text) is not None
            setting = reading.put("seq_len", value, where, to=known - cut)
            why = ""
            if isinstance(value, Bounded):
                why = "the smallest of several limits, of which one is not known"
            elif where is None and not _is_read(reading, value):
                why = "nothing in sight reads this field; it is taken for the length of a sequence"
            elif by_one:
                kept = "be cut off again" if cut else "stay in the sequence that is trained on"
                why = f"a token more or less is taken to {kept}"
            if why:
                assumed = Provenance("assumed", why, setting.provenance.place)
                reading.settings["seq_len"] = replace(setting, provenance=assumed)
            return
    _in_parts(reading)
    if "seq_len" not in reading.settings:
        _handed_on(reading)
    if "seq_len" not in reading.settings and not any(not sure_none(value) for value, _ in _tokenized(reading)):
        _by_name(reading)


def _handed_on(reading: Reading) -> None:
    """The one length that calls of data sets get under one of its names (``data.connect(max_seq_length=1024)``)."""
    found: list[tuple[Value, Record, str]] = []
    for record in reading.records:
        name = next((each.name for each in record.passed if each.name in _HANDED), None)
        if name is not None and record.taken is not False and isinstance(plain(record.keyword(name) or Const()), int):
            found.append((record.keyword(name) or Const(), record, name))
    if len({plain(value) for value, _, _ in found}) == 1:
        value, record, name = found[0]
        setting = reading.put("seq_len", value, record)
        why = f"{name} is taken for the length of a sequence"
        assumed = Provenance("assumed", why, setting.provenance.place)
        reading.settings["seq_len"] = replace(setting, provenance=assumed)


def _by_name(reading: Reading) -> None:
    """The one number that the script calls a length, where it pads and cuts by hand."""
    document = reading.calls.script
    found = list(_LENGTH.finditer(document.text))
    if len({match["value"] for match in found}) == 1:
        why = f"{found[0]['name']} is taken for the length of a sequence"
        place: Place | None = Place(document, Span(*found[0].span("value")))
        changed = reading.constants.get(found[0]["name"])
        length = plain(changed) if changed is not None else None
        if changed is not None and type(length) is int:
            place = reading.place_of(changed.origin) or place
        else:
            length = int(found[0]["value"])
        reading.settings["seq_len"] = Setting("seq_len", length, Provenance("assumed", why, place))


def _is_read(reading: Reading, value: Value) -> bool:
    """Whether the script asks for the field that holds a value anywhere that the walk came by."""
    return any(made.attributes.get(name) is value for made in reading.parsed for name in reading.read.get(id(made), ()))


def _in_parts(reading: Reading) -> None:
    """Prompt and answer with a limit of their own: what the script puts them together to, else their sum."""
    if reading.lengths:
        sizes = [known for value in reading.lengths if isinstance(known := plain(value), int)]
        longest = next((v for v in reading.lengths if sizes and plain(v) == max(sizes)), reading.lengths[-1])
        setting = reading.put("seq_len", longest)
        if len(set(sizes)) > 1:
            why = "the longest of several lengths that the script computes, some for evaluation"
            assumed = Provenance("assumed", why, setting.provenance.place)
            reading.settings["seq_len"] = replace(setting, provenance=assumed)
        return
    for first, second in PARTS:
        for made in reading.parsed:
            lengths = [plain(made.attributes[name]) for name in (first, second) if name in made.attributes]
            if len(lengths) == 2 and all(isinstance(length, int) for length in lengths):
                why = f"{first} and {second} are taken to make up one sequence"
                place = reading.place_of(made.attributes[second].origin)
                reading.settings["seq_len"] = Setting("seq_len", sum(lengths), Provenance("assumed", why, place))
                return


def _tokenized(reading: Reading) -> list[tuple[Value, Record]]:
    """Lengths handed to tokenizers, calls before constructors."""
    calls: list[tuple[Value, Record]] = []
    loads: list[tuple[Value, Record]] = []
    parts = {id(made.attributes.get(name)) for made in reading.parsed for names in PARTS for name in names}
    for record in reading.records:
        if record.taken is False or record.name in ("generate", "GenerationConfig", "SamplingParams"):
            continue
        owner = f"{record.function}.{record.receiver_name or ''}".lower()
        if "tokenizer" in owner or record.name in ("encode_plus", "batch_encode_plus"):
            length = record.keyword("model_max_length", "max_length")
            if length is not None and id(length) not in parts:
                (loads if record.name == "from_pretrained" else calls).append((length, record))
    return sorted(calls, key=lambda each: _is_share(each[0])) + loads


def _is_share(length: Value) -> bool:
    """``max_length // 2``: the limit of a part of what is trained on."""
    made = length.origin
    return isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.FloorDivide | cst.Divide)


def _declared(reading: Reading) -> list[tuple[Value, Record | None]]:
    """Fields of the script's own command line that are named like a sequence length."""
    return [
        (value, None)
        for made in reading.parsed
        for name in LENGTHS
        for key, value in made.attributes.items()
        if key.rpartition(".")[2] == name
    ]
