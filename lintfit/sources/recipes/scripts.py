"""Scripts of front ends that launchers start by their path: they train from a recipe as the command does."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from lintfit.frozen import frozen, word_set
from lintfit.sources.recipes.front_ends import READERS, FrontEnd
from lintfit.suggest import nearest


@frozen
class FrontEndScript:
    """A script by how its path ends, and the command of its front end that does the same.

    Its text names ``package``; where it is not at hand, one of ``flags`` tells that it is this script, and a flag that
    no release of the front end has that it is a fork's.
    """

    path: str
    front_end: FrontEnd
    action: str
    package: str
    flags: frozenset[str]

    def is_this(self, path: str, flags: Collection[str], text: str | None) -> bool:
        if text is not None:
            return self._is_at(path) and self.package in text
        return self.is_named(path, flags) and all(_may_be_of(flag, self.front_end) for flag in flags)

    def is_named(self, path: str, flags: Collection[str]) -> bool:
        """Whether a launch is of this script or of a fork's, which has arguments of its own besides."""
        return self._is_at(path) and not self.flags.isdisjoint(flags)

    def _is_at(self, path: str) -> bool:
        return f"/{path}".endswith(f"/{self.path}")


def _may_be_of(flag: str, front_end: FrontEnd) -> bool:
    """Whether some release of a front end has a flag, in full or cut short, or one that it may be a slip for."""
    known, plain = _arguments_of(front_end), flag.replace("-", "_").removeprefix("no_")
    return any(each.startswith(plain) for each in known) or nearest(flag, known) is not None


@cache
def _arguments_of(front_end: FrontEnd) -> frozenset[str]:
    """The arguments that any release of a front end has."""
    from lintfit.catalog import llamafactory, swift
    from lintfit.sources.recipes.llamafactory_arguments import SEQ2SEQ, TRAINING
    from lintfit.sources.training_defaults import fields_of

    inherited = fields_of(TRAINING) | SEQ2SEQ | {"config", "local_rank"}
    if front_end == "llamafactory":
        return inherited | llamafactory.every()
    every = (swift.fields(command, at) for command in swift.COMMANDS for at in range(len(swift.versions())))
    return inherited.union(*every)


_OF_LLAMA_FACTORY = word_set("finetuning_type template lora_target cutoff_len dataset_dir")
_OF_SWIFT = word_set("train_type tuner_type sft_type rlhf_type model_type torch_dtype")

_SCRIPTS = (
    # LLaMA-Factory up to 0.7, then 0.8 and up
    FrontEndScript("train_bash.py", "llamafactory", "train", "llmtuner", _OF_LLAMA_FACTORY),
    FrontEndScript("src/train.py", "llamafactory", "train", "llmtuner", _OF_LLAMA_FACTORY),
    FrontEndScript("src/train.py", "llamafactory", "train", "llamafactory", _OF_LLAMA_FACTORY),
    FrontEndScript("llamafactory/launcher.py", "llamafactory", "train", "llamafactory", _OF_LLAMA_FACTORY),
    # swift 2 to 4
    FrontEndScript("swift/cli/sft.py", "swift", "sft", "swift", _OF_SWIFT),
    FrontEndScript("swift/cli/pt.py", "swift", "pt", "swift", _OF_SWIFT),
    FrontEndScript("swift/cli/rlhf.py", "swift", "rlhf", "swift", _OF_SWIFT),
    # axolotl up to 0.4
    FrontEndScript("scripts/finetune.py", "axolotl", "train", "axolotl", frozenset()),
)


def of_script(path: str, flags: Collection[str], text: str | None) -> tuple[FrontEnd, str] | None:
    """The front end and its command that a script stands for, where lintfit reads its recipes.

    ``text`` is the script's, None where it is not at hand.
    """
    plain = path.replace("\\", "/")
    read = (each for each in _SCRIPTS if each.front_end in READERS)
    found = next((each for each in read if each.is_this(plain, flags, text)), None)
    return (found.front_end, found.action) if found is not None else None


def is_of_front_end(path: str, flags: Collection[str]) -> bool:
    """Whether a script that is not at hand is one of a checkout of a front end, or of a fork of it."""
    return any(each.is_named(path.replace("\\", "/"), flags) for each in _SCRIPTS)
