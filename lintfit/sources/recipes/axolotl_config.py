"""What axolotl's config comes to: the YAML, the command line over it, the defaults of the release below it.

``axolotl/cli/config.py:load_cfg`` puts every flag over the YAML's key of the same name (``--trl.beta`` over ``beta``
of ``trl``); pydantic fills in what is left out (``axolotl/utils/schemas/config.py``, 0.18.0). A key that is written
without a value is null, which beats a default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lintfit.catalog import axolotl as catalog
from lintfit.documents.model import DataDocument
from lintfit.settings.model import UNKNOWN, Place, Provenance, Setting, is_count
from lintfit.sources.recipes.keys import Keys, Stated, of_flag, scalar

if TYPE_CHECKING:
    from lintfit.sources.launchers.flags import Flag
    from lintfit.sources.launchers.launch import Launch

_OF_COMMAND = frozenset({
    "cloud", "config", "debug", "debug_num_examples", "debug_text_only", "iterable", "launcher", "main_process_port",
    "merge_lora", "num_processes", "prepare_ds_only", "prompter", "shard", "sweep",
})  # fmt: skip
"""Options of ``axolotl train`` and ``TrainerCliArgs`` that are no keys of the config (0.5.0 to 0.18.0)."""

ADAPTERS = ("lora", "qlora")
KERNELS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "lora_embedding_kernel")

ATTENTIONS: Mapping[str, str] = {
    "xformers_attention": "xformers",
    "sage_attention": "sage",
    "flex_attention": "flex_attention",
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
"""The switches for an attention kernel by what ``attn_implementation`` calls it; the first that is set decides
(``LEGACY_ATTN_FLAG_TO_IMPL``, 0.18.0)."""


@dataclass(frozen=True, eq=False)
class Config:
    """The keys of one launch, with the releases that it may run with."""

    keys: Keys
    range: catalog.Range

    def get(self, key: str) -> Stated:
        """What a key comes to, with where it stands; a variable that a template leaves open is ``UNKNOWN``."""
        found = self.keys.get(key)
        if found is not None:
            return Stated(UNKNOWN, found.provenance) if _is_open(found.value) else found
        if self.keys.missing is not None:
            return self.keys.default(key)
        release = self.range.newest
        return Stated(catalog.default(key, release), Provenance.default(f"axolotl {release} default"))

    def value(self, key: str) -> Any:
        return self.get(key).value

    def states(self, key: str) -> bool:
        """Whether a key is written with a value that is more than nothing."""
        return self.get(key).value not in (None, False, "", UNKNOWN) and key in self.keys

    def truth(self, key: str) -> bool | None:
        """Whether a key counts as true; None where that is not statically known."""
        value = self.get(key).value
        return None if value is UNKNOWN else bool(value)

    def setting(self, name: str, key: str) -> Setting:
        """A setting that is what a key comes to."""
        found = self.get(key)
        return found.setting(name, found.value)

    def number(self, name: str, key: str) -> Setting:
        """The same of a number."""
        found = self.get(key)
        known = isinstance(found.value, (int, float)) and not isinstance(found.value, bool)
        return found.setting(name, found.value if known else UNKNOWN)

    def count(self, key: str) -> int | None:
        value = self.get(key).value
        return value if is_count(value) else None

    def inner(self, key: str, *names: str) -> Stated | None:
        """What a section says under the first of these names that it has; None where it says nothing.

        A flag such as ``--trl.beta`` stands over the section.
        """
        for name in names:
            flag = self.keys.get(f"{key}.{name}")
            if flag is not None:
                return flag
        section = self.keys.get(key)
        for name in names:
            found = section.inner(name) if section is not None else None
            if found is not None:
                return Stated(UNKNOWN, found.provenance) if _is_open(found.value) else found
        return None

    def plugin(self, ending: str) -> bool | None:
        """Whether a plugin whose name ends so is listed; None where the list is not known."""
        plugins = self.get("plugins").value
        if plugins is UNKNOWN:
            return None
        return isinstance(plugins, list) and any(isinstance(one, str) and one.endswith(ending) for one in plugins)

    @property
    def adapter(self) -> Any:
        return self.get("adapter").value or None

    def half(self) -> tuple[Any, Any, Stated]:
        """``bf16`` and ``fp16`` as ``resolve_dtype`` leaves them on a GPU that has bfloat16, and the key that decides.

        ``bf16: full`` is in half precision without autocast (0.17 and before).
        """
        bf16, fp16 = self.get("bf16"), self.get("fp16")
        if UNKNOWN in (bf16.value, fp16.value):
            return UNKNOWN, UNKNOWN, bf16 if bf16.value is UNKNOWN else fp16
        if fp16.value and bf16.value in ("auto", False, None):
            return False, True, fp16
        return (True if bf16.value == "auto" else bf16.value or False), False, bf16

    def dtype(self) -> Setting:
        """The dtype that the model is loaded in (``resolve_dtype`` of ``axolotl/utils/config/__init__.py``)."""
        bf16, fp16, by = self.half()
        own = self.get("bfloat16")
        if UNKNOWN in (bf16, own.value):
            return by.setting("weights_dtype", UNKNOWN)
        if bf16 or own.value:
            return (by if bf16 else own).setting("weights_dtype", "bf16")
        for key in ("load_in_8bit", "float16"):
            if self.truth(key):
                return self.get(key).setting("weights_dtype", "fp16")
        return by.setting("weights_dtype", "fp16" if fp16 else "fp32")

    def attention(self) -> Setting:
        """The kernel by ``attn_implementation``, else by the first switch that is on, else transformers' own."""
        from lintfit.sources.training_words import kernel_of

        found = self.get("attn_implementation")
        if found.value is not None:
            return found.setting("attention", kernel_of(found.value))
        for key, kernel in ATTENTIONS.items():
            switch = self.get(key)
            if switch.value is UNKNOWN:
                return switch.setting("attention", UNKNOWN)
            if switch.value:
                return switch.setting("attention", kernel)
        if self.keys.missing is not None:
            return Setting("attention", UNKNOWN, self.keys.missing.provenance)
        return Setting("attention", "sdpa", Provenance.default("transformers' default"))


def _is_open(value: Any) -> bool:
    return isinstance(value, str) and "${" in value


def read_config(launch: Launch, document: DataDocument | None, keys: Keys) -> None:
    """Take the keys of the recipe, then the flags of the launch line over them."""
    root = document.root if document is not None else None
    if document is not None and root is not None:
        keys.read(document, [entry.key for entry in root.entries if "." not in entry.key])
    for flag in own_flags(launch):
        for name, value in _of_flag(flag, keys):
            keys.put(name, Stated(value, of_flag(flag), flag))


def own_flags(launch: Launch) -> Iterator[Flag]:
    """The flags that are axolotl's; what stands behind ``--`` is the launcher's."""
    words = [word.text for word in launch.invocation.positional]
    if "--" in words:
        return
    for option, flag in zip(launch.invocation.arguments, launch.flags, strict=True):
        if flag.name not in _OF_COMMAND:
            yield flag
        if "--" in option.values:
            return


def _of_flag(flag: Flag, keys: Keys) -> Iterator[tuple[str, Any]]:
    """The key that a flag sets, and to what: ``--micro-batch-size 4``, ``--no-sample-packing``, ``--trl.beta 0.1``."""
    name, known = flag.name, catalog.known_keys()
    if name.startswith("no_") and name not in known and name[3:] in known:
        yield name[3:], False
        return
    if flag.value is None or flag.value == "--":
        yield name, True
    else:
        yield name, UNKNOWN if "$" in flag.value else scalar(flag.value)


def recipe_word(launch: Launch) -> tuple[str, Place] | None:
    """The recipe's file as the command names it: its first word, or the last behind a flag."""
    for word in launch.invocation.positional[:1]:
        if word.value is not None and word.value != "--":
            return word.value, Place(launch.document, word.span)
    for flag in launch.flags:
        words = (flag.value, *flag.words) if flag.name == "config" else flag.words[1:]
        named = next((word for word in words if word is not None and word.endswith((".yml", ".yaml"))), None)
        if named is not None:
            return named, flag.place
    return None
