"""Commands of front ends that are given a recipe and do not train by it: to talk to a model, merge it, prepare data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import word_set
from lintfit.sources.launchers.command_line import Invocation, program_of, take_apart
from lintfit.sources.launchers.training_commands import trains

if TYPE_CHECKING:
    from lintfit.documents.shell_words import Word

_IDLE: Mapping[str, frozenset[str]] = {
    # axolotl/cli/main.py 0.18 and axolotl/cli/ of 0.4
    "axolotl": word_set("""
        evaluate inference lm_eval merge_lora merge_sharded_fsdp_weights preprocess quantize shard vllm_serve
        """),
    # llamafactory/cli.py 0.9.2
    "llamafactory": word_set("api chat eval export webchat webui"),
    # swift/cli/main.py 4
    "swift": word_set("app deploy eval export infer merge_lora rollout sample web_ui"),
    # swift/cli/_megatron/main.py 4
    "megatron-swift": word_set("export"),
    # litgpt/__main__.py 0.5.13
    "litgpt": word_set("chat evaluate generate merge_lora serve"),
    # trl/cli 1.16
    "trl": word_set("chat vllm_serve"),
}
"""By front end the commands that take its recipe, or the keys of one, with ``-`` as ``_``."""

_MODULES: Mapping[str, str] = {"axolotl.cli": "axolotl", "swift.cli": "swift"}
"""Packages whose modules are such commands (``python -m axolotl.cli.inference``), also below a checkout's folder."""

_LOOKS = word_set("cat cp curl diff echo git head less ls mv nano rm scp sed tail touch vi vim wget")
"""Programs that only look at a file, write it or move it."""

_TEXT = lazy_pattern(
    r"axolotl|llamafactory-cli|\blmf\b|\bswift\b|\bmegatron\b|\blitgpt\b|\btrl\b|\btune\b|scripts/finetune\.py"
)


def maybe_idle(text: str) -> bool:
    """Whether a text names a program that such a command may be of."""
    return _TEXT.search(text) is not None


def trains_by(words: Sequence[Word]) -> bool | None:
    """Whether a command with a recipe among its words may train by it; None where it is none that starts anything."""
    invocation = take_apart(words)
    if invocation is not None:
        return not _is_idle(invocation)
    found = program_of(words)
    if found is None:
        return None if words and words[0].text.rpartition("/")[2] in _LOOKS else True
    front_end, _, rest = found
    first = words[rest].text.replace("-", "_") if rest < len(words) else ""
    if front_end == "torchtune":
        return False if first == "run" else None  # other recipes than those that train; ``tune cp``, ``tune validate``
    return first not in _IDLE.get(front_end, frozenset())


def _is_idle(invocation: Invocation) -> bool:
    if invocation.action is not None:
        return not trains(invocation)
    if not invocation.module or invocation.script is None:
        return False
    package, _, command = invocation.script.text.rpartition(".")
    front_end = next((name for known, name in _MODULES.items() if f".{package}".endswith(f".{known}")), "")
    return command in _IDLE.get(front_end, frozenset())
