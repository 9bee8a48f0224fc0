"""Programs that train from a recipe of their own instead of a script: which they are and which commands train.

Only names stand here; what a recipe says is read by the module that :data:`READERS` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, word_set

if TYPE_CHECKING:
    from lintfit.documents.shell_words import Word

FrontEnd = Literal[
    "litgpt",
    "swift",
    "megatron-swift",
    "llamafactory",
    "axolotl",
    "trl",
    "xtuner",
    "torchtune",
    "autotrain",
    "composer",
    "colossalai",
    "oumi",
    "ludwig",
    "nemo",
    "instructlab",
]


@frozen
class Program:
    """A front end's commands that train (``litgpt finetune_lora``), in the words of its command line."""

    actions: frozenset[str]
    older: Mapping[str, frozenset[str]]
    """Commands that have a second word (``litgpt finetune lora`` up to 0.4): the second words that train."""


PROGRAMS: Mapping[FrontEnd, Program] = {
    # litgpt/__main__.py 0.5.13
    "litgpt": Program(
        word_set("finetune finetune_lora finetune_full finetune_adapter finetune_adapter_v2 pretrain"),
        {"finetune": word_set("lora full adapter adapter_v2")},
    ),
    # swift/cli/main.py 4, and 2 for the last three
    "swift": Program(word_set("sft pt rlhf dpo orpo simpo"), {}),
    # llamafactory/cli.py 0.9; the others with USE_V1=1 (v1/launcher.py)
    "llamafactory": Program(word_set("train sft dpo rm"), {}),
    # axolotl/cli/main.py 0.13
    "axolotl": Program(word_set("train"), {}),
    # trl/cli 1.16
    "trl": Program(word_set("sft dpo grpo kto reward rloo"), {}),
    # xtuner/entry_point.py 0.1.23
    "xtuner": Program(word_set("train"), {}),
    # torchtune/_cli/run.py 0.6; the recipe's name stands behind torchrun's own options
    "torchtune": Program(word_set("run"), {}),
    # swift/cli/_megatron/main.py 4
    "megatron-swift": Program(word_set("sft pt rlhf"), {}),
    # autotrain/cli/autotrain.py 0.8: a recipe, or one of its tasks on text
    "autotrain": Program(word_set("--config llm sentence-transformers seq2seq text-classification vlm"), {}),
    # These start a script of their own; its name stands behind their options.
    "composer": Program(frozenset(), {}),
    "colossalai": Program(word_set("run"), {}),
    "oumi": Program(word_set("train distributed"), {}),
    "ludwig": Program(word_set("train experiment"), {}),
    # nemo_run's command line
    "nemo": Program(frozenset(), {"llm": word_set("finetune pretrain")}),
    "instructlab": Program(frozenset(), {"model": word_set("train")}),
}

COMMANDS: Mapping[str, FrontEnd] = {
    "litgpt": "litgpt",
    "swift": "swift",
    "llamafactory-cli": "llamafactory",
    "lmf": "llamafactory",
    "axolotl": "axolotl",
    "trl": "trl",
    "xtuner": "xtuner",
    "tune": "torchtune",
    "megatron": "megatron-swift",
    "autotrain": "autotrain",
    "composer": "composer",
    "colossalai": "colossalai",
    "oumi": "oumi",
    "ludwig": "ludwig",
    "nemo": "nemo",
    "ilab": "instructlab",
}
"""What people type, by front end; a file with such a word is worth reading as a launch."""

_TUNES = lazy_pattern(r"finetun|dpo|ppo|grpo|qat|distil|train|rlhf|sft")
"""Parts of the names of torchtune's recipes that train; others generate, evaluate or quantize."""
_MODULES: Mapping[str, FrontEnd] = {"litgpt": "litgpt", "swift.cli.main": "swift", "llamafactory.cli": "llamafactory"}

_TRAINING_MODULES: Mapping[str, tuple[FrontEnd, str]] = {"axolotl.cli.train": ("axolotl", "train")}
"""Modules of front ends that train by themselves, with the command that they are; launchers start them with ``-m``."""

_TRAINING_SCRIPTS = ("scripts/finetune.py",)
"""axolotl's own script up to 0.7, which is its command ``train``."""

READERS: Mapping[FrontEnd, str] = {
    "axolotl": "lintfit.sources.recipes.axolotl",
    "litgpt": "lintfit.sources.recipes.litgpt",
    "llamafactory": "lintfit.sources.recipes.llamafactory",
    "swift": "lintfit.sources.recipes.swift",
    "torchtune": "lintfit.sources.recipes.torchtune",
    "trl": "lintfit.sources.recipes.trl",
}
"""The module that reads a front end's recipe, with ``read_recipe``; the others' recipes are not read yet."""


def of_command(name: str) -> FrontEnd | None:
    """The front end that a program of this name is."""
    return COMMANDS.get(name)


def command_of(front_end: str) -> str:
    """What people type to start a front end."""
    return next((command for command, name in COMMANDS.items() if name == front_end), front_end)


def trains_by_recipe(name: str | None) -> bool:
    """Whether a recipe of torchtune trains, by its name; one whose name is not statically known is taken to."""
    return name is None or _TUNES.search(name) is not None


def of_module(module: str) -> FrontEnd | None:
    """The front end that ``python -m module`` starts."""
    return _MODULES.get(module)


def training_module(module: str | None) -> tuple[FrontEnd, str] | None:
    """The front end, and its command, that a launcher starts with ``-m module``."""
    return _TRAINING_MODULES.get(module or "")


def training_script(path: str | None, recipe: str | None) -> tuple[FrontEnd, str] | None:
    """The same of a script of a front end's checkout, which launchers start with a recipe behind it."""
    known = path is not None and path.replace("\\", "/").endswith(_TRAINING_SCRIPTS)
    return ("axolotl", "train") if known and (recipe or "").endswith((".yml", ".yaml")) else None


def is_front_end(launcher: str) -> bool:
    return launcher in PROGRAMS


def action(front_end: FrontEnd, words: Sequence[Word]) -> tuple[str, int] | None:
    """The command that trains, and how many of ``words`` (those behind the program) name it; None for any other."""
    first = words[0].value if words else None
    program = PROGRAMS[front_end]
    second = words[1].value if len(words) > 1 else None
    if first is not None and second is not None and second in program.older.get(first, frozenset()):
        return f"{first}_{second}" if first in program.actions else f"{first} {second}", 2
    return (first, 1) if first in program.actions else _script(front_end, words)


def _script(front_end: FrontEnd, words: Sequence[Word]) -> tuple[str, int] | None:
    """The script that ``composer`` starts, which stands behind its options."""
    if front_end != "composer":
        return None
    found = next((index for index, word in enumerate(words) if (word.value or "").endswith(".py")), None)
    return (words[found].text, found + 1) if found is not None else None
