"""The keys of a recipe that stop axolotl, and those that it drops without a word.

Its config classes are pydantic models that pass over what they have no field for
(``axolotl/utils/schemas/config.py``, 0.5.0 to 0.18.0); a plugin brings fields of its own when it is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from lintfit.catalog import axolotl as catalog
from lintfit.settings.model import UNKNOWN, Place
from lintfit.sources.flag_grammars.model import Refused
from lintfit.sources.flag_grammars.options import Refusal
from lintfit.sources.recipes.axolotl_config import Config, own_flags
from lintfit.suggest import most_alike, nearest

if TYPE_CHECKING:
    from lintfit.documents.model import Entry
    from lintfit.sources.launchers.flags import Flag

_ALIKE = 0.75
"""The share that a longer key and the one that was meant have in common."""

_ELSEWHERE = {
    "cutoff_len": "sequence_len",
    "gradient_accumulation": "gradient_accumulation_steps",
    "lora_rank": "lora_r",
    "max_length": "sequence_len",
    "max_seq_len": "sequence_len",
    "max_seq_length": "sequence_len",
    "model_name_or_path": "base_model",
    "num_train_epochs": "num_epochs",
    "optim": "optimizer",
    "packing": "sample_packing",
    "per_device_eval_batch_size": "eval_batch_size",
    "per_device_train_batch_size": "micro_batch_size",
    "seq_len": "sequence_len",
    "seq_length": "sequence_len",
    "target_modules": "lora_target_modules",
    "wandb_run": "wandb_name",
    "wandb_run_name": "wandb_name",
}
"""What other front ends and transformers call axolotl's keys."""

_UNSLOTH = "0.17"
"""The first release that stops at its former switches for Unsloth's kernels (``check_deprecated_unsloth_fields``)."""


def refused(config: Config) -> Iterator[Refused]:
    """What axolotl refuses or drops; nothing where it may be a release that is not known."""
    document, root = config.keys.config, config.keys.config.root if config.keys.config is not None else None
    if config.range.open:
        return
    for entry in root.entries if root is not None and root.shape == "mapping" else ():
        stops = _stops(config, entry.key, entry.value.plain())
        if stops is not None and document is not None:
            yield Refused(Place(document, entry.key_span), entry.key, f"axolotl {config.range.newest}", stops, key=True)
        elif document is not None and _means_something(entry.value.plain()) and _is_dropped(config, entry.key):
            yield _dropped(config, Place(document, entry.key_span), entry)
        elif document is not None and entry.key == "fsdp_config":
            yield from _of_fsdp(config, entry)
    if config.keys.launch.invocation.program.text.rpartition("/")[2] == "axolotl":
        yield from (_flag(config, flag) for flag in own_flags(config.keys.launch) if _is_unknown(config, flag.name))


def _stops(config: Config, key: str, value: Any) -> Refusal | None:
    """Why a key stops the run in every release that it may have."""
    if key.startswith("unsloth_") and key in catalog.known_keys():
        stops = value is not UNKNOWN and bool(value) and config.range.all_since(_UNSLOTH)
        words = f"`{key}` has been removed. Please use `lora_mlp_kernel`, `lora_qkv_kernel`, `lora_o_kernel` instead."
        return Refusal(words) if stops else None
    found = catalog.removed(key)
    if found is None or value is None or not config.range.all_since(found.since):
        return None
    return Refusal(found.words) if value or not found.by_truth else None


def _means_something(value: Any) -> bool:
    """Whether a key that is dropped takes something with it: one that is empty or off is as good as not there."""
    return value not in (None, False, "", 0) and value != [] and value != {}


def _is_dropped(config: Config, key: str) -> bool:
    """Whether no release that may run has a field for a key, nor any plugin that may be listed."""
    if config.range.undated and catalog.read_before(key):
        return False
    if config.range.has(catalog.known_keys().get(key)) or catalog.plugin_of(key) is not None:
        return False
    plugins = config.get("plugins").value
    listed = plugins if isinstance(plugins, list) else []
    return plugins is not UNKNOWN and all(isinstance(one, str) and catalog.plugin_folder(one) for one in listed)


def _dropped(config: Config, place: Place, entry: Entry) -> Refused:
    known = catalog.known_keys().keys()
    meant = None if entry.key in known else _meant(entry.key)
    # What the run is without a key that never meant anything is known; a misspelt one is another matter.
    refusal = Refusal("unused keys", meant, (entry.key,), plain=meant is None)
    return Refused(place, entry.key, f"axolotl {config.range.newest}", refusal, key=True, ignored=True)


def _meant(name: str) -> str | None:
    """The key that somebody who writes this one means."""
    known = catalog.known_keys()
    return _ELSEWHERE.get(name) or nearest(name, known) or most_alike(name, known, _ALIKE)


def _of_fsdp(config: Config, section: Entry) -> Iterator[Refused]:
    """Keys of ``fsdp_config`` that no release has, and a sharding strategy that is dropped since 0.13."""
    document, known = config.keys.config, catalog.section("fsdp_config")
    if document is None or section.value.shape != "mapping" or not config.range.all_since("0.13"):
        return
    for entry in section.value.entries:
        name = entry.key.removeprefix("fsdp_")
        if name in known or entry.key in known or entry.value.plain() in (None, ""):
            continue
        meant = nearest(name, known)
        sharded = name == "sharding_strategy" and str(entry.value.plain()).upper() != "FULL_SHARD"
        if meant is not None or sharded:
            refusal = Refusal("unused keys", meant, (entry.key,), plain=True)
            place = Place(document, entry.key_span)
            yield Refused(place, entry.key, f"axolotl {config.range.newest}", refusal, key=True, ignored=True)


def _is_unknown(config: Config, name: str) -> bool:
    """Whether ``axolotl train`` has no such option, nor the launcher that it hands on what it does not know."""
    parts = name.partition(".")
    if parts[1]:
        return not (catalog.section(parts[0]) and config.range.has(catalog.known_keys().get(parts[0])))
    known = {name, name.removeprefix("no_")}
    if any(config.range.has(catalog.known_keys().get(each)) or catalog.plugin_of(each) for each in known):
        return False
    return known.isdisjoint(_of_launchers())


@cache
def _of_launchers() -> frozenset[str]:
    """The options of what ``axolotl train`` starts: ``accelerate launch``, or ``torchrun``."""
    from lintfit.catalog import arguments
    from lintfit.sources.launchers.grammars import GRAMMARS

    found = arguments.studied("accelerate", None, None)
    options = arguments.launch_options(found.possible) if found is not None else {}
    torchrun = GRAMMARS["torchrun"]
    return frozenset(name.lstrip("-").replace("-", "_") for name in options) | torchrun.valued | torchrun.bare


def _flag(config: Config, flag: Flag) -> Refused:
    written = f"--{flag.name.replace('_', '-')}"
    meant = _meant(flag.name)
    suggestion = f"--{meant.replace('_', '-')}" if meant is not None else None
    refusal = Refusal(f"No such option: {written}", suggestion)
    return Refused(flag.place, written, f"axolotl {config.range.newest}", refusal)
