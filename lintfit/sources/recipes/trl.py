"""TRL's command line, and the recipes of alignment-handbook and open-r1, whose scripts do the same.

``trl sft`` gives ``accelerate launch`` the options that none of its dataclasses has
(``lintfit/sources/launchers/command_line.py``), from the command line and from the YAML of its ``--config`` (TRL 1.16
``cli/commands/training.py``). The scripts of alignment-handbook and of open-r1 fill the same classes from the same YAML
with TrlParser, load the model themselves and are started by ``accelerate launch``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from lintfit.documents import door
from lintfit.documents.model import DataDocument, Kind
from lintfit.documents.paths import resolved
from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.sources.launchers import packaged
from lintfit.sources.launchers.launch import Launch
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import Keys, of_node
from lintfit.sources.recipes.trainer import Arguments
from lintfit.sources.recipes.trl_recipe import TrlRecipe
from lintfit.sources.training_arguments import field_of
from lintfit.sources.training_defaults import fields_of

TRAINERS: Mapping[str, str] = {
    "sft": "SFT",
    "dpo": "DPO",
    "grpo": "GRPO",
    "kto": "KTO",
    "reward": "Reward",
    "rloo": "RLOO",
}
"""The commands by what their config and trainer are called."""

KINDS: Mapping[str, str] = {**TRAINERS, "orpo": "ORPO"}
"""The same with the script that alignment-handbook has beside them."""

_OWN_KEYS: Mapping[str, tuple[str, ...]] = {
    "dpo": ("beta", "rpo_alpha", "dpo_alpha"),
    "grpo": ("num_generations", "max_completion_length", "reward_funcs", "reward_model_name_or_path"),
}
"""Keys that tell a trainer's config from that of SFT."""

_HANDBOOK = frozenset({"dataset_mixer", "dataset_mixture", "dataset_configs", "chat_template"})
"""Keys of alignment-handbook's recipes that TRL's own commands do not have (``src/alignment/configs.py``)."""
_OPEN_R1 = frozenset({"dataset_prompt_column", "system_prompt", "reward_funcs", "code_language"})
"""Keys of open-r1's (``src/open_r1/configs.py``)."""


def usual_command(document: DataDocument) -> str | None:
    """``trl sft --config FILE``, or the script of alignment-handbook or open-r1 whose recipe the file is.

    The trainer is the one that the file's path names, else the one whose keys it has. The scripts are started with the
    Accelerate config of ZeRO-3 for a model that trains whole (``scripts/README.md`` of alignment-handbook, README.md of
    open-r1).
    """
    root, name = document.root, document.path.as_posix()
    keys = {entry.key for entry in root.entries} if root is not None else set()
    if "model_name_or_path" not in keys:
        return None
    parts = re.split(r"[/_.-]", name.lower())
    told = next((command for command, own in _OWN_KEYS.items() if keys.intersection(own)), "sft")
    command = next((command for command in KINDS if command in parts), told)
    adapts = root is not None and (node := root.get("use_peft")) is not None and node.value is True
    config = f"--config_file recipes/accelerate_configs/{'ddp' if adapts else 'zero3'}.yaml"
    if "open_r1" in name.lower() or "open-r1" in name.lower() or keys & _OPEN_R1 or _is_in_open_r1(document.path):
        return f"accelerate launch {config} src/open_r1/{command}.py --config {shlex.quote(name)}"
    if keys & _HANDBOOK:
        return f"accelerate launch {config} scripts/{command}.py --config {shlex.quote(name)}"
    return f"trl {command} --config {shlex.quote(name)}" if command in TRAINERS else None


def _is_in_open_r1(path: Path) -> bool:
    """Whether a recipe lies in the ``recipes`` of an open-r1, whose recipes of SFT have no keys but TRL's own."""
    above = path.parts[: path.parts.index("recipes")] if "recipes" in path.parts else None
    return above is not None and door.is_folder(resolved(Path(*above, "src", "open_r1")))


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> TrlRecipe | None:
    """A ``trl`` launch, or a recipe of the scripts that do the same, with the file of its ``--config``.

    None for a command that does not train.
    """
    kind = KINDS.get(launch.action or "")
    if kind is None:
        return None
    program = launch.script or f"trl {launch.action}"
    return _read(launch, kind, program, frozenset(), open_file, versions or {})


def read_script(
    launch: Launch, kind: str, name: str, own: frozenset[str], open_file: OpenFile, versions: Mapping[str, str]
) -> TrlRecipe | None:
    """A launch of the script of TRL's that ``trl`` runs for this kind, which is not at hand.

    ``own`` are its arguments beside those of its classes. None where a flag is none of them: the script is another.
    """
    known = own.union(*map(fields_of, _classes(kind)))
    if launch.positional or any(field_of(flag.name, known) is None for flag in launch.flags):
        return None
    return _read(launch, kind, name, own, open_file, versions)


def _classes(kind: str) -> tuple[str, ...]:
    return (f"trl.{kind}Config", "trl.ModelConfig")


def _read(
    launch: Launch, kind: str, program: str, own: frozenset[str], open_file: OpenFile, versions: Mapping[str, str]
) -> TrlRecipe:
    keys, classes = Keys(launch), _classes(kind)
    fields = own.union(*map(fields_of, classes))
    config = next((flag for flag in reversed(launch.flags) if flag.name == "config"), None)
    document = open_file(config.value) if config is not None and config.value and "$" not in config.value else None
    complete = config is None
    if isinstance(document, DataDocument) and document.kind is Kind.YAML and document.root is not None:
        complete = document.root.shape == "mapping"
        if complete:
            keys.read(document, fields | _OLDER)
    keys.read_flags([flag for flag in launch.flags if flag.name != "config"], fields)
    arguments = Arguments(keys, classes, versions, open_file, complete)
    by_script = launch.script is not None and launch.assumed
    started: tuple[Setting, ...] = ()
    if by_script:
        started = tuple(_of_usual_config(launch))
    elif launch.launcher == "trl" and keys.config is not None:
        started = tuple(_of_launcher(keys.config))
    return TrlRecipe(launch, arguments, kind, program, started, by_script)


_OLDER = frozenset({"use_flash_attention_2", "max_seq_length", "max_length", "torch_dtype"})
"""Fields of older versions' classes, and of classes that are not studied, that recipes have."""


def _of_usual_config(launch: Launch) -> Iterator[Setting]:
    """What is in the Accelerate config of the usual command, without its number of processes.

    ``zero3.yaml`` of both projects is TRL's own: bf16, ZeRO-3 without offload.
    """
    named = launch.settings.get("accelerate_config")
    if named is not None and isinstance(named.value, str):
        why = Provenance("assumed", f"accelerate launch --config_file {named.value}")
        if (name := PurePosixPath(named.value).stem) in packaged.PROCESSES:
            yield from packaged.stated(name, why)


def _of_launcher(config: DataDocument) -> Iterator[Setting]:
    """What the YAML says to ``accelerate launch``: the keys that no dataclass has are handed on as its options."""
    for key, name in (("num_processes", "gpus"), ("num_machines", "nodes")):
        node = config.root.get(key) if config.root is not None else None
        if node is not None:
            stated = of_node(config, node)
            yield stated.setting(name, stated.value if is_count(stated.value) else UNKNOWN)
    node = config.root.get("accelerate_config") if config.root is not None else None
    if node is not None:
        stated = of_node(config, node)
        yield from packaged.stated(stated.value if isinstance(stated.value, str) else None, stated.provenance)
