"""Whether layers are recomputed in the backward pass, and how, as a script's own calls decide it."""

from __future__ import annotations

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.state import Flagged
from lintfit.sources.script.interpreter.values import Const, Record, Table, objects, plain
from lintfit.sources.script.reading import in_json, quantization
from lintfit.sources.script.reading import plain as plain_loop
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.training_words import CHECKPOINTING


def read(reading: Reading) -> None:
    """``model.gradient_checkpointing_enable()`` and its kin switch it on, whatever the arguments say."""
    stated = reading.settings.get("quantization")
    quantized = stated is not None and stated.value is not None
    for record in reading.found.checkpointing:
        if record.taken is False or record.guarded:
            continue
        on = _switches_on(record, quantized)
        if not on:
            continue
        current = reading.settings.get("gradient_checkpointing")
        if current is not None and current.value is True:
            continue
        sure = record.taken and not (quantization.is_prepared(record) and not quantization.is_seen(reading))
        reading.state("gradient_checkpointing", True if sure else UNKNOWN, record.node)
    for flagged in reading.walk.recomputing:
        current = reading.settings.get("gradient_checkpointing")
        if flagged.config is not None and not _has_say(reading, flagged):
            continue
        if flagged.taken is not False and (current is None or current.value is not True):
            reading.state("gradient_checkpointing", True if flagged.taken else UNKNOWN, flagged.node)
    _reentrant(reading)
    _unsloth(reading)
    if reading.found.arguments is None:
        plain_loop.recomputing(reading)


def _has_say(reading: Reading, flagged: Flagged) -> bool:
    """Whether a config that is told to recompute decides: of a model that is built of it later on
    (``_backward_compatibility_gradient_checkpointing``, transformers 4.46 and 5.24); of a model that is built already
    before transformers 4.11, whose layers asked it at each step."""
    load = reading.found.trained_load
    if load is None:
        return False
    given = load.value(0, "config") if load.name in ("from_config", "_from_config") else load.keyword("config")
    handed = [each for each in objects(given) if any(each is other for other in objects(flagged.config))]
    if handed and flagged.order <= load.order:
        return True
    return not reading.at_least("transformers", 4, 11)


def _switches_on(record: Record, quantized: bool) -> bool:
    if not quantization.is_prepared(record):
        return True
    flag = record.value(1, "use_gradient_checkpointing")
    return quantized and (flag is None or operators.truth(flag) is not False)


def _unsloth(reading: Reading) -> None:
    """Unsloth's own kind keeps the layers' inputs on the host (``UnslothCheckpointFunction``).

    It is the default of ``get_peft_model`` (``unsloth/models/llama.py`` since 2025.7.4, ``vision.py``; plain
    checkpointing before). Either is reentrant (``prepare_model_for_kbit_training`` of ``unsloth/models/_utils.py``).
    """
    for record in reading.called("get_peft_model"):
        if not record.function.startswith("unsloth"):
            continue
        reading.default("use_reentrant", True, "Unsloth's checkpoints are reentrant")
        value = record.keyword("use_gradient_checkpointing")
        if value is None and not record.spreads:
            reading.default("gradient_checkpointing", True, "Unsloth's default")
            offloads = reading.at_least("unsloth", 2025, 7, 4)
            reading.default("activation_offload", offloads, "Unsloth's default" + " before 2025.7.4" * (not offloads))
        elif value is not None:
            known = plain(value)
            reading.put("gradient_checkpointing", value, record, to=True if known == "unsloth" else known)
            if known == "unsloth":
                reading.put("activation_offload", value, record, to=True)


def _reentrant(reading: Reading) -> None:
    setting = reading.settings.get("gradient_checkpointing")
    if setting is None or setting.value is not True:
        return
    made = reading.found.arguments
    attributes = made.attributes if made is not None else {}
    tables = [attributes.get(f"{kind}_checkpointing_kwargs") for kind in ("gradient", "activation")]
    # A Trainer whose own flag is on enables it anew, with its own arguments or none.
    again = any(operators.truth(attributes.get(name) or Const()) for name in CHECKPOINTING)
    if not again:
        tables += [r.value(0, "gradient_checkpointing_kwargs") for r in reading.found.checkpointing if r.taken is True]
    for table in tables:
        if isinstance(table, Table) and "use_reentrant" in table.items:
            reading.put("use_reentrant", table.items["use_reentrant"])
            return
        if table is not None and (asked := in_json.flag_in(table, "use_reentrant")) is not None:
            reading.put("use_reentrant", table, to=asked)
            return
    version = reading.versions.get("transformers")
    modern = reading.at_least("transformers", 5)
    reading.default("use_reentrant", not modern, f"transformers {version or '5'} default")
