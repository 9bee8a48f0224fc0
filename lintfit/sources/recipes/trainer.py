"""What the arguments of transformers' Trainer come to in settings, filled by the keys of a front end or by defaults.

The names are those of :mod:`lintfit.sources.training_arguments`; a front end with names of its own hands over keys that
are called as transformers calls them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument
from lintfit.frozen import frozen, replace
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting
from lintfit.sources.recipes.base import OpenFile
from lintfit.sources.recipes.keys import Keys, Stated, of_node
from lintfit.sources.training_arguments import EVALUATION, TRAINING
from lintfit.sources.training_defaults import default_of
from lintfit.sources.training_words import (
    CHECKPOINTING,
    COMPILING,
    EACH_BATCH,
    LIGER,
    at_least,
    heeds_each_batch,
    trainer_fsdp,
)

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit

Settings = dict[str, Setting]

UNREAD = "the file that fills the arguments is not read"


@frozen(eq=False)
class Arguments:
    """The fields of ``TrainingArguments`` and of the classes beside it: as keys state them, else by default.

    ``classes`` are the dotted names of the classes, the first that has a field decides. ``complete`` is False where a
    config file that would state more is not at hand: nothing is known then of a field that no flag states.
    """

    keys: Keys
    classes: tuple[str, ...]
    versions: Mapping[str, str]
    open_file: OpenFile
    complete: bool = True

    def stated(self, *names: str) -> Stated | None:
        """A field under the first of these names that is stated."""
        return next((self.keys.stated[name] for name in names if name in self.keys), None)

    def get(self, *names: str) -> Stated | None:
        """A field under the first of these names that is stated, else has a default; None where neither is known."""
        found = self.stated(*names)
        if found is not None or not self.complete:
            return found
        for cls in self.classes:
            for name in names:
                default = default_of(cls, name, self.versions)
                if default is not None:
                    return Stated(default[0], Provenance.default(default[1]))
        return None

    def known(self, *names: str) -> Stated | None:
        """The same, without what a file that is not at hand may still change."""
        found = self.get(*names)
        return None if found is not None and not self.complete and found.value is UNKNOWN else found

    def truth(self, *names: str) -> bool | None:
        """Whether a field counts as true; None where that is not statically known."""
        found = self.get(*names)
        return None if found is None or found.value is UNKNOWN else bool(found.value)

    def at_least(self, library: str, *numbers: int) -> bool:
        return at_least(self.versions, library, *numbers)

    def write(self, names: Sequence[str], value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the first of these fields that is stated say a value; none is: the first of them all."""
        name = next((each for each in names if each in self.keys), names[0])
        now = self.keys.get(name)
        if now is not None and type(now.value) is type(value) and now.value == value:
            return ()
        if value is True and now is None and self.keys.config is None and self.keys.launch.bare_switches:
            return self.keys.launch.set_flag(name, None)
        return self.keys.write(name, value, str(value))

    def write_next(self, **fields: Any) -> tuple[FileEdit, ...] | None:
        """The same of the first of several fields that says something else; a plan asks again after each."""
        for name, value in fields.items():
            now = self.get(name)
            if now is None or now.value not in (value, [value]):
                return self.write((name,), value)
        return ()


def settings_of(arguments: Arguments) -> Settings:
    """The settings that the Trainer's arguments decide, evaluation apart."""
    found: Settings = {}
    for name, fields in TRAINING.items():
        stated = arguments.known(*fields)
        if stated is not None:
            found[name] = stated.setting(name, stated.value)
    _deepspeed(arguments, found)
    found.update({each.name: each for each in (_checkpointing(arguments), _compiling(arguments)) if each is not None})
    offload, cache = arguments.stated("activation_offloading"), arguments.get("use_cache")
    if offload is not None:
        found["activation_offload"] = offload.setting("activation_offload", offload.value)
    if cache is not None and cache.value is not UNKNOWN:
        found["use_cache"] = cache.setting("use_cache", cache.value)
    resumed = arguments.stated("resume_from_checkpoint")
    if resumed is not None and resumes(resumed.value):
        found["resumes"] = resumed.setting("resumes", True)
    _liger(arguments, found)
    _fsdp(arguments, found)
    config = arguments.stated("accelerator_config")
    each = config.inner(*EACH_BATCH) if config is not None and heeds_each_batch(arguments.versions) else None
    if each is not None:
        found["sync_each_batch"] = each.setting("sync_each_batch", each.value)
    _reentrant(arguments, found)
    return found


def resumes(value: Any) -> bool:
    """Whether ``resume_from_checkpoint`` certainly names a checkpoint, or the last that there is."""
    return value is not UNKNOWN and bool(value) and str(value).lower() not in ("false", "none")


def evaluation_of(arguments: Arguments) -> Settings:
    """The settings of an evaluation, for a Trainer that does evaluate."""
    found = {name: arguments.get(*fields) for name, fields in EVALUATION.items()}
    return {
        name: stated.setting(name, stated.value)
        for name, stated in found.items()
        if stated is not None and stated.value is not None
    }


def _checkpointing(arguments: Arguments) -> Setting | None:
    """The field under either of its names; None is the library's way to say no."""
    stated = arguments.stated(*CHECKPOINTING) or arguments.get("gradient_checkpointing")
    if stated is None or (not arguments.complete and stated.value is UNKNOWN):
        unread = Setting("gradient_checkpointing", UNKNOWN, Provenance("derived", UNREAD))
        return None if arguments.complete else unread
    return stated.setting("gradient_checkpointing", False if stated.value is None else stated.value)


def _compiling(arguments: Arguments) -> Setting | None:
    for name in COMPILING:
        stated = arguments.stated(name)
        if stated is not None and stated.value is not UNKNOWN and stated.value:
            return stated.setting("torch_compile", True)
    return None


def _liger(arguments: Arguments, found: Settings) -> None:
    stated = arguments.stated(*LIGER)
    if stated is not None and stated.value is not False:
        found["loss"] = stated.setting("loss", "liger" if stated.value is True else UNKNOWN)


def _reentrant(arguments: Arguments, found: Settings) -> None:
    checkpointing = found.get("gradient_checkpointing")
    if checkpointing is None or checkpointing.value is not True:
        return
    for name in ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs"):
        stated = arguments.stated(name)
        asked = stated.inner("use_reentrant") if stated is not None else None
        if asked is not None:
            found["use_reentrant"] = asked.setting("use_reentrant", asked.value)
            return
    modern, version = arguments.at_least("transformers", 5), arguments.versions.get("transformers")
    provenance = Provenance.default(f"transformers {version or '5'} default")
    found["use_reentrant"] = Setting("use_reentrant", not modern, provenance)


# -- engines --------------------------------------------------------------------------------------------------------


def _deepspeed(arguments: Arguments, found: Settings) -> None:
    """What a mapping in the place of DeepSpeed's file says beside the Trainer's own arguments; nothing for no file."""
    for name in ("deepspeed", "fsdp"):
        if name in found and found[name].value in (None, "", False, []):
            del found[name]
    handed = arguments.stated("deepspeed")
    if handed is None or not isinstance(handed.value, Mapping):
        return
    found["deepspeed"] = handed.setting("deepspeed", handed.value)
    zero = handed.inner("zero_optimization")
    if zero is not None and not isinstance(zero.value, Mapping):
        found["zero_stage"] = zero.setting("zero_stage", UNKNOWN)
    for name, path in _IN_DEEPSPEED.items():
        section, asked = handed.inner(*path[:-1]), handed.inner(*path)
        if asked is not None:
            found[name] = asked.setting(name, AUTO if asked.value == "auto" else asked.value)
        elif section is not None and name.startswith("offload") and not isinstance(section.value, Mapping | None):
            found[name] = section.setting(name, UNKNOWN)


_IN_DEEPSPEED: Mapping[str, tuple[str, ...]] = {
    "optimizer": ("optimizer", "type"),
    "zero_stage": ("zero_optimization", "stage"),
    "offload_optimizer": ("zero_optimization", "offload_optimizer", "device"),
    "offload_param": ("zero_optimization", "offload_param", "device"),
}
"""Where DeepSpeed's own config has settings that the Trainer does not fill in."""


def _fsdp(arguments: Arguments, found: Settings) -> None:
    """How FSDP shards, wraps and checkpoints, by ``fsdp`` and ``fsdp_config``."""
    setting, config = found.get("fsdp"), _fsdp_config(arguments)
    if setting is None:
        return
    if setting.known:
        said: Any = config.value if config is not None else {}
        value, by_layer = trainer_fsdp(setting.value, said, arguments.versions)
        found["fsdp"] = replace(setting, value=value)
        if by_layer is not None:
            found["fsdp_auto_wrap"] = replace(setting, name="fsdp_auto_wrap", value=by_layer)
    for key in ("activation_checkpointing", "fsdp_activation_checkpointing"):
        asked = config.inner(key) if config is not None else None
        if asked is not None and asked.value:
            found["gradient_checkpointing"] = asked.setting("gradient_checkpointing", asked.value)


def _fsdp_config(arguments: Arguments) -> Stated | None:
    """``fsdp_config``: a mapping, or the JSON file that it names."""
    stated = arguments.stated("fsdp_config")
    if stated is not None and isinstance(stated.value, str):
        document = arguments.open_file(stated.value)
        root = document.root if isinstance(document, DataDocument) else None
        stated = of_node(document, root) if document is not None and root is not None else None
    return stated if stated is not None and isinstance(stated.value, Mapping) else None
