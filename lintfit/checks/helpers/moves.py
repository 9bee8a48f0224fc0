"""Fixes that put a key under another name or into the section that has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lintfit.checks.helpers.trees import assigned, dotted, of_higher_stage, renamed, zero_stage
from lintfit.documents.model import DataDocument, Entry, KeyPath, Node
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Fix
from lintfit.run.model import Run
from lintfit.schema.sections import Schema, UnknownKey, load, section_at
from lintfit.settings.registry import SETTINGS
from lintfit.suggest import is_typo

_ZERO = "zero_optimization"


def place_name(home: KeyPath) -> str:
    """A section in the words of a message."""
    return f'"{dotted(home)}"' if home else "the top level"


def rename(document: DataDocument, mapping: Node, entry: Entry, name: str) -> Fix | None:
    """Correct a slip of the pen; None where the words are too short to be sure, or where the key is there already.

    Unsafe, because the run then does what the key says.
    """
    if mapping.entry(name) is not None or not is_typo(entry.key, name):
        return None
    return renamed(document, entry.key_span, name, Applicability.UNSAFE)


def hint(unknown: UnknownKey) -> str:
    """What a key of no section may be meant for, as the end of a message; empty where nobody knows."""
    if unknown.home is not None:
        return f"; it belongs {'inside' if unknown.home else 'at'} {place_name(unknown.home)}"
    return f'; did you mean "{unknown.suggestion}"?' if unknown.suggestion else ""


def is_foreign(unknown: UnknownKey) -> bool:
    """Whether a key is none of the library's, of no release, section or spelling."""
    return unknown.since is None and unknown.home is None and unknown.suggestion is None


def stands_at_home(root: Node, unknown: UnknownKey) -> bool:
    """Whether all that a key of another section says is said there as well."""
    home = root.get(*unknown.home, unknown.entry.key) if unknown.home is not None else None
    if home is None or home.shape != unknown.entry.value.shape:
        return False
    leaves = ((path, node) for path, node in unknown.entry.value.walk() if node.shape == "scalar")
    there = ((home.get(*path) if path else home, node) for path, node in leaves)
    return all(found is not None and found.value == node.value for found, node in there)


def asks(node: Node) -> bool:
    """Whether a value asks for anything: a number, a word, or something that is on."""
    leaves = [each for _, each in node.walk() if each.shape == "scalar"] if node.shape != "scalar" else [node]
    return any(each.value not in (False, None, "", 0) for each in leaves)


def moved(document: DataDocument, root: Node, unknown: UnknownKey) -> Fix | None:
    """Move a key of a DeepSpeed JSON into the section that has it; None where that one holds it already.

    Safe where the library stops at the key as it stands, and for ZeRO's own keys, which decide where the states lie and
    not what is learned. Unsafe for anything else, which would begin to act.
    """
    if unknown.home is None:
        return None
    target: KeyPath = (*unknown.home, unknown.entry.key)
    parent = root.get(*unknown.home) if unknown.home else root
    if root.get(*target) is not None or (parent is not None and parent.shape != "mapping"):
        return None
    from lintfit.sources.data_writer import REMOVE

    schema = section_at(load("deepspeed"), *(str(step) for step in target))
    harmless = target[0] == _ZERO and not schema.get("x-changes-results", False)
    changes: dict[KeyPath, Any] = {unknown.path: REMOVE, target: unknown.entry.value.plain()}
    applicability = Applicability.SAFE if unknown.forbidden or harmless else Applicability.UNSAFE
    return assigned(document, f"move it to {place_name(unknown.home)}", applicability, changes)


_EMPTY = (None, "", "none", "None")
"""Words of a key that asks for nothing."""
_UNUSED = frozenset({"find_unused_parameters"})
"""Settings of DDP, which ZeRO has no need of."""
DTYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16"}
"""The section of DeepSpeed's, and the word of ``mixed_precision``, that a name of a precision stands for."""
_DTYPE_KEYS = frozenset({"dtype", "torch_dtype", "precision", "mixed_precision"})


def costs_nothing(root: Node, unknown: UnknownKey) -> bool:
    """Whether nothing is lost by a key of a DeepSpeed JSON that DeepSpeed ignores: it asks for nothing, or for what
    happens anyway; it is said where it belongs as well; or it is of a stage of ZeRO that is not on."""
    key, value = str(unknown.entry.key), unknown.entry.value
    if stands_at_home(root, unknown) or _is_said(root, unknown) or key in _UNUSED:
        return True
    meant = _meant(root, unknown)
    of_zero = unknown.home == (_ZERO,)
    if of_zero and of_higher_stage(root, key):
        return True
    if unknown.home is not None and root.get(*unknown.home, key) is not None:
        return False  # the library does what stands there, which is another thing
    if is_foreign(unknown) and (_is_once_at_most(value) or _is_off(value) or _is_words(key, value)):
        return True
    left = value.value == "auto" and (of_zero or not meant)
    return left or is_nothing(value, meant) or is_default(value.value, meant)


def _is_once_at_most(value: Node) -> bool:
    return type(value.value) in (int, float) and value.value in (0, 1)


def _is_words(key: str, value: Node) -> bool:
    """Whether a key says no more than names (``"model_type": "llama"``, a list of them): nothing is switched on by it,
    unless it names a precision."""
    said = value.elements if value.shape == "sequence" else (value,)
    return key not in _DTYPE_KEYS and all(isinstance(each.value, str) for each in said)


_SWITCH = "enabled"


def _is_off(block: Node) -> bool:
    """Whether a block is switched off, or has sections that all are, beside which it says no more than names: a monitor
    whose writers are off (``{"enabled": true, "tag": "run", "csv_monitor": {"enabled": false}}``) writes nothing."""
    switch = block.get(_SWITCH) if block.shape == "mapping" else None
    if switch is not None and switch.value is False:
        return True
    sections = [entry.value for entry in block.entries if entry.value.shape != "scalar"]
    rest = [entry for entry in block.entries if entry.value.shape == "scalar" and entry.key != _SWITCH]
    names = all(isinstance(entry.value.value, str) or not asks(entry.value) for entry in rest)
    return bool(sections) and names and all(_is_off(section) for section in sections)


_AROUND = "?!:_-#/*. "
"""What stands around the name of a key in one that is a comment on it."""
_SAYS = lazy_pattern(
    r"^(?:comments?|notes?|desc(?:ription)?|doc|help|info)[\W_]+|(?<![\W_])[\W_]+(?:notes?|desc(?:ription)?|doc|help|info)$"
)
_SENTENCE = 4
"""Words of what is a sentence, or signs of a script that has no spaces."""
_SIGNS = lazy_pattern(rf"[\u3040-\u9fff\uac00-\ud7a3]{{{_SENTENCE}}}")


def is_comment(root: Node, unknown: UnknownKey) -> bool:
    """Whether a key is an explanation: of the key that stands beside it (``"fp16?"``, ``"stage_note"``), or a sentence
    under a name that is like none of the library's."""
    key = str(unknown.entry.key)
    section = root.get(*unknown.path[:-1]) if len(unknown.path) > 1 else root
    name = _SAYS.sub("", key).strip(_AROUND)
    if section is not None and name != key and section.entry(name) is not None:
        return True
    said = unknown.entry.value.value
    return is_foreign(unknown) and isinstance(said, str) and _is_sentence(said)


def _is_sentence(said: str) -> bool:
    """Words are counted by splitting, in one pass: a value may be a single word of any length."""
    return len(said.split(None, _SENTENCE - 1)) == _SENTENCE or _SIGNS.search(said) is not None


_PRINTS = lazy_pattern(
    r"(?:^|_)(?:verbos(?:e|ity)|prints?|log|logs|logger|logging|tqdm|progress_bar)(?:_|$)"
    r"|^(?:wall_clock_breakdown|memory_breakdown|dump_state|comms_logger)$",
    re.IGNORECASE,
)
_SAID = lazy_pattern(r"_(?:prob|probs|probability|likelihood|scale|softmax)", re.IGNORECASE)
"""What logarithms are of."""


def only_prints(unknown: UnknownKey) -> bool:
    """Whether a key changes at most what is logged or printed: by its name, or by that of the key that was meant."""
    names = (str(unknown.entry.key), unknown.suggestion or "")
    return any(_PRINTS.search(name) is not None and _SAID.search(name) is None for name in names)


_ELSEWHERE = {
    "num_gpus": "gpus",
    "n_gpus": "gpus",
    "n_gpu": "gpus",
    "world_size": "gpus",
    "train_micro_batch_size_per_gpu": "micro_batch_size",
}
"""Settings under names of nobody's."""
_FLASH = lazy_pattern(r"(?:use_)?flash_att(?:ention|n)(?:_2)?")


def is_held(runs: Sequence[Run], unknown: UnknownKey) -> bool:
    """Whether it is a setting that every run has from elsewhere, as the key says it: ``gradient_checkpointing``."""
    name, value = str(unknown.entry.key).removeprefix("fsdp_"), unknown.entry.value.value
    name = _ELSEWHERE.get(name, name)
    if value is True and _FLASH.fullmatch(name):
        name, value = "attention", "flash_attention_2"
    return bool(runs) and name in SETTINGS and all(run.value(name) == value for run in runs)


def is_nothing(value: Node, meant: Schema) -> bool:
    """Whether a value asks for nothing of the key that is meant: it is empty, or off where that is off by itself."""
    if value.shape != "scalar":
        return not asks(value) and not (meant and value.entries)
    return value.value in _EMPTY or (value.value is False and meant.get("default") is not True)


def is_default(value: object, meant: Schema) -> bool:
    """Whether a library does by itself what a value asks for; ``1e5`` is a word in YAML 1.1."""
    known = meant.get("default")
    same_kind = isinstance(value, bool) is isinstance(known, bool)
    return known is not None and same_kind and known in (value, _number(value))


def _meant(root: Node, unknown: UnknownKey) -> Schema:
    """What the schema says of the key that is meant, as far as there is one."""
    key = str(unknown.entry.key)
    if unknown.home is not None:
        found: Schema = section_at(load("deepspeed"), *(str(step) for step in unknown.home))["properties"][key]
    else:
        found = unknown.section.get("properties", {}).get(unknown.suggestion or key, {})
    if _OVERLAP in (key, unknown.suggestion):
        return {**found, "default": zero_stage(root) == 3}
    if _CLIPS in (key, unknown.suggestion):
        return {name: value for name, value in found.items() if name != "default"}
    return found


_CLIPS = "gradient_clipping"
"""Whose default changed (0 before 0.19.3, then 1.0): no value asks for what every release does."""
_OVERLAP = "overlap_comm"
"""Whose default hangs on the stage (``zero/config.py:DeepSpeedZeroConfig.overlap_comm_valid``)."""


def _is_said(root: Node, unknown: UnknownKey) -> bool:
    """Whether another key of the file says the same in DeepSpeed's words."""
    key, value = str(unknown.entry.key), unknown.entry.value.value
    if key == "max_grad_norm":
        clipped = root.get("gradient_clipping")
        return clipped is not None and clipped.value == value
    if key in _DTYPE_KEYS and (block := DTYPES.get(str(value))) is not None:
        enabled = root.get(block, _SWITCH)
        return enabled is not None and enabled.value is True
    if key == "fp32":
        switch = switch_of(unknown.entry.value)
        on = switch is not None and switch.value is True
        return on and not any(_may_be_on(root.get(block)) for block in _OF_LESS_BITS)
    return key == "is_deepspeed_zero3_enabled" and value is True and zero_stage(root) == 3


_OF_LESS_BITS = ("fp16", "bf16", "bfloat16", "amp", "torch_autocast")
"""Sections without which a run is in fp32."""


def switch_of(block: Node) -> Node | None:
    """What switches a block on or off, which may be written as one value (``fp16: true``)."""
    return block.get(_SWITCH) if block.shape == "mapping" else block


def _may_be_on(block: Node | None) -> bool:
    """Whether a section of a precision is on, or whoever reads the config decides that (``"auto"``)."""
    switch = block.get(_SWITCH) if block is not None and block.shape == "mapping" else None
    return switch is not None and switch.value is not False


def _number(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
