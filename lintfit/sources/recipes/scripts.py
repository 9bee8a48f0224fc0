"""Scripts of front ends that launchers start by their path: they train from a recipe as the command does."""

from __future__ import annotations

from collections.abc import Collection

from lintfit.frozen import frozen, word_set
from lintfit.sources.recipes.front_ends import READERS, FrontEnd


@frozen
class FrontEndScript:
    """A script by how its path ends, and the command of its front end that does the same.

    Its text names ``package``; where it is not at hand, one of ``flags`` tells that it is this script.
    """

    path: str
    front_end: FrontEnd
    action: str
    package: str
    flags: frozenset[str]

    def is_this(self, path: str, flags: Collection[str], text: str | None) -> bool:
        if not f"/{path}".endswith(f"/{self.path}"):
            return False
        if text is not None:
            return self.package in text
        return not self.flags.isdisjoint(flags) and not (self.front_end == "llamafactory" and _are_of_fork(flags))


_OF_FORK = 2
"""Flags that no release of LLaMA-Factory has, from which a script is taken for a fork's; one may be a slip."""


def _are_of_fork(flags: Collection[str]) -> bool:
    from lintfit.catalog import arguments, llamafactory
    from lintfit.sources.recipes.llamafactory_arguments import SEQ2SEQ

    known = llamafactory.every() | SEQ2SEQ | {"config", "local_rank"}
    return sum(name not in known and not arguments.is_argument(name) for name in flags) >= _OF_FORK


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
