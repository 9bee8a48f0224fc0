"""What a Python file, a shell script or a notebook looks like that no run came of: by words in its text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lintfit.documents.limits import MAX_PARTS, TOO_MANY_PARTS, json_parts
from lintfit.sources.launchers.training_commands import name_trains
from lintfit.sources.script.prefilter import maybe_training_script

_FRONT_ENDS = {
    "autotrain": "AutoTrain",
    "axolotl": "axolotl",
    "colossalai": "ColossalAI",
    "composer": "Composer",
    "flax": "Flax",
    "keras": "Keras",
    "keras_hub": "Keras",
    "litgpt": "LitGPT",
    "llamafactory": "LLaMA-Factory",
    "llmtuner": "LLaMA-Factory",
    "mlx_lm": "MLX",
    "nanotron": "nanotron",
    "nemo": "NeMo",
    "nemo_rl": "NeMo-RL",
    "openrlhf": "OpenRLHF",
    "oumi": "Oumi",
    "paddlenlp": "PaddleNLP",
    "sentence_transformers": "Sentence Transformers",
    "swift": "ms-swift",
    "torchtitan": "torchtitan",
    "torchtune": "torchtune",
    "verl": "verl",
    "xtuner": "xtuner",
}
"""Packages that train, which lintfit does not follow from a script, by the name that is imported."""

_IMPORT = re.compile(rf"^[ \t]*(?:from|import)[ \t]+({'|'.join(_FRONT_ENDS)})(?=[.\s,])", re.MULTILINE)
_STARTS = re.compile(
    r"[Tt]rainer(?:\([^()\n]{0,200}\))?\.(?:fit|train|run)\("
    r"|\b(?:run_exp|(?:sft|rlhf|pt|train|finetune)_main|main_ppo|run_ppo|do_train|train|finetune|pretrain"
    r"|launch_training|fit)\("
)
_MAIN = re.compile(r"^if __name__ *==", re.MULTILINE)
_TOP_CALL = re.compile(r"^(?:\w+ *= *)?[\w.]+\(", re.MULTILINE)
_FITS = re.compile(r"\.fit\(|\.train\(\)|Trainer\b|\boptimizer\b|\bdef train")

_LAUNCHERS = re.compile(
    r"(?<![\w./$-])(torchrun|accelerate launch|accelerate-launch|deepspeed|torch\.distributed\.run"
    r"|torch\.distributed\.launch|llamafactory-cli train|axolotl train|swift sft|tune run)[ \t]+[-$\"'\w./]"
)
_NO_LAUNCH = re.compile(
    r"^\s*(?:#|echo\b|printf\b|export\b|pip3?\b|conda\b|apt\b|which\b|git\b|cd\b|pkill\b|ps\b|kill\b)"
    r"|\b(?:pip3?|uv|conda|apt(?:-get)?|poetry) (?:pip )?(?:install|add)\b|command -v|\bgrep\b"
)

NOT_REACHED = (
    "nothing that trains was found in it: no trainer, no engine, no optimizer with a backward pass that is reached"
)
BY_NAME = "a training script by its name, in which nothing that trains was found"
NOTEBOOK = "a notebook in which nothing that trains was found"
TRAINING_NOTEBOOK = "a notebook that looks like one that trains, in which no training could be followed"


def unread_script(name: str, text: str, named: bool) -> str | None:
    """Why a Python file that looks like a training script is no run; None where it looks like none.

    In a search only a file counts that is run as it is: libraries hold trainers, too. A file that is ``named`` is
    meant to be judged.
    """
    front_end = front_end_of(text)
    if front_end is not None and (_MAIN.search(text) or (named and _TOP_CALL.search(text))) and _STARTS.search(text):
        return f"a training script of {front_end}, which lintfit does not follow"
    if named and maybe_training_script(text):
        return NOT_REACHED
    called = name_trains(name) is True
    if named and (called or _FITS.search(text)):
        return BY_NAME if called else NOT_REACHED
    return BY_NAME if called and front_end is not None and _MAIN.search(text) else None


def front_end_of(text: str) -> str | None:
    """The package of a front end that a script imports, by the name that people know; None for any other script."""
    found = _IMPORT.search(text)
    return _FRONT_ENDS[found[1]] if found is not None else None


_OWN_TRAINING = (".backward(", "deepspeed.initialize", "Accelerator(", "TrainingArguments", "SFTConfig", "GRPOConfig")


def only_starts_verl(text: str) -> bool:
    """Whether a script hands all of its config to verl: nothing of its code says how it trains, and its many launches
    in a copy of verl would each be followed through Hydra's configs and half of the package."""
    return front_end_of(text) == "verl" and not any(word in text for word in _OWN_TRAINING)


def unread_launch(text: str) -> str | None:
    """Which launcher a shell script names in a line that may start something; None where it names none."""
    for line in text.splitlines():
        found = _LAUNCHERS.search(line) if "#" not in line[:1] else None
        if found is not None and _NO_LAUNCH.search(line) is None:
            return f"it names `{found[1]}`, and no launch line of it could be read"
    return None


def unread_notebook(text: str, named: bool) -> str | None:
    """A notebook whose code trains; one that is named is said to be a notebook in any case."""
    if json_parts(text) > MAX_PARTS:
        return TOO_MANY_PARTS
    code = "\n".join(_cells(text))
    trains = (maybe_training_script(code) and re.search(r"\.train\(|\.backward\(|\.fit\(", code)) or _commands(code)
    return TRAINING_NOTEBOOK if trains else NOTEBOOK if named else None


def _commands(code: str) -> bool:
    """Whether a line of shell in a notebook launches a training."""
    lines = (line for line in code.splitlines() if _NO_LAUNCH.search(line.lstrip("! ")) is None)
    return any(_LAUNCHERS.search(line) is not None for line in lines)


def _cells(text: str) -> Iterator[str]:
    """The text of the code cells; none of what is no notebook."""
    if '"cells"' not in text and '"worksheets"' not in text:
        return
    import json

    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    cells = content.get("cells") if isinstance(content, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source")
            yield source if isinstance(source, str) else "".join(map(str, source or ()))
