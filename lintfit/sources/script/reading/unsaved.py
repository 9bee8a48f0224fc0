"""Whether a run of a Trainer saves nothing at all: neither checkpoints between its steps nor a model behind them.

With ``save_strategy="no"`` nothing asks for a checkpoint, also not at the end (transformers
``trainer_callback.py:DefaultFlowCallback``). Anything else that may save, by its name or out of sight, leaves the run
as one that does.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from lintfit.sources.script.interpreter.modules import LIBRARIES
from lintfit.sources.script.interpreter.values import Items, Object, Record, Ref, Value, objects, plain
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.facts import is_trained

_SAVES = re.compile(
    r"save|pickle|joblib|dill$|merge_and_unload|^export|^upload|log_model|hyperparameter_search|state_dict$",
    re.IGNORECASE,
)
"""Names of what may write a model, or gather it to be written."""
_HARMLESS = re.compile(
    r"(Save|Interval)Strategy|save_(strategy|steps|total_limit|only_model|safetensors|on_each_node|for_backward|metrics|to_disk)|savefig"
    r"|(lora_)?modules_to_save|load_state_dict|saved_tensors"
)
"""Names like these that write no model."""
_VALUES = re.compile(r"\w*save\w*_(path|dir|folder|name|freq|interval)")
"""Names of values, where they are not called."""
_OF_WORDS = re.compile(r"tokeni[sz]er|processor|processing_class", re.IGNORECASE)
_BY_CALLBACK = re.compile(r"_LOG_MODEL")
"""Of the variables by which the callbacks of wandb, ClearML and DVC are told to save the model."""
_NO_CODE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


def read(reading: Reading) -> None:
    """Note a run that certainly saves nothing."""
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is None or made is None or trainer.spreads or not trainer.function.startswith(("transformers.", "trl.")):
        return
    strategy = reading.attribute(made, "save_strategy")
    if strategy is None or not _never(strategy) or _by_signal(reading, made) or _by_callback(reading):
        return
    if any(_may_save(text) for text in reading.calls.texts()) or _handed_on(reading):
        return
    reading.put("saves", strategy, made.call if made.call is not None and not made.parsed else None, to=False)


def _never(strategy: Value) -> bool:
    """Whether it is ``"no"``, or the member of an enum that means it."""
    if isinstance(strategy, Ref):
        return strategy.name.endswith("Strategy.NO")
    word = plain(strategy)
    return isinstance(word, str) and word == "no"


def _by_signal(reading: Reading, made: Object) -> bool:
    """Whether it saves where it is told to stop (``enable_jit_checkpoint``)."""
    asked = reading.attribute(made, "enable_jit_checkpoint")
    return asked is not None and plain(asked) is not False


def _by_callback(reading: Reading) -> bool:
    told = (*reading.walk.environment, *reading.calls.texts())
    return any(_BY_CALLBACK.search(text) for text in told)


def _may_save(text: str) -> bool:
    """Whether the code of a file has a name that may be of a save; a text that is no Python may do anything."""
    try:
        words = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in _NO_CODE]
    except (tokenize.TokenError, SyntaxError):
        return True
    return any(_saves(words, index) for index, token in enumerate(words) if token.type == tokenize.NAME)


def _saves(words: list[tokenize.TokenInfo], index: int) -> bool:
    """Whether the name at this place may be of a save: those of tokenizers and of a Trainer's own state are none."""
    name = words[index].string
    called = index + 1 < len(words) and words[index + 1].string == "("
    owner = words[index - 2].string if index > 1 and words[index - 1].string == "." else ""
    if _HARMLESS.fullmatch(name) or _OF_WORDS.search(owner) or (not called and _VALUES.fullmatch(name)):
        return False
    if name == "save_state" and "trainer" in owner.lower():
        return False  # ``Trainer.save_state`` writes the numbers of its log; Accelerate's writes all
    return (name.startswith("push_to_hub") and called) or _SAVES.search(name) is not None


def _handed_on(reading: Reading) -> bool:
    """Whether a function or class that is not at hand gets the trainer or the trained model, or is its callback."""
    trainer = reading.found.trainer
    for record in reading.records:
        if record.taken is False or not _out_of_sight(record.function):
            continue
        if any(_is_run(reading, each) for passed in record.passed for each in _inside(passed.value)):
            return True
    called = trainer.keyword("callbacks") if trainer is not None else None
    if called is None:
        return False
    return any(isinstance(each, Object) and _out_of_sight(each.library) for each in _inside(called))


def _is_run(reading: Reading, value: Value) -> bool:
    handed: list[Record | None] = [each.call for each in objects(value)]
    return reading.found.trainer in handed or is_trained(reading.found, value)


def _out_of_sight(function: str) -> bool:
    """Whether a dotted name is of a module that is neither read nor a library's."""
    module, dot, _ = function.partition(".")
    return bool(dot) and module not in LIBRARIES


def _inside(value: Value) -> Iterator[Value]:
    yield value
    if isinstance(value, Items):
        yield from value.items
