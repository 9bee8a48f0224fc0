"""Whether a script takes the whole state dict of the model that it trains, without a word to what shards it."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.facts import is_of, is_trained

_OF_TRAINER = re.compile(r"(^|\.)\w*Trainer\.(model|model_wrapped)\.state_dict$")
"""transformers puts the wrapped model there (``trainer.py``: ``self.model = self.model_wrapped = model``)."""
_CONTEXT = re.compile(r"state_dict_type\(|summon_full_params\(|unshard")
_TOLD = "set_state_dict_type("


def read(reading: Reading) -> None:
    """Note what this run surely saves by gathering it."""
    _whole(reading)
    for record in reading.records:
        if record.name == "get_state_dict" and record.taken is True and is_of(record, reading.found.accelerator):
            reading.state("gathered_state_dict", True, record.node)


def _whole(reading: Reading) -> None:
    """Note a ``state_dict()`` that this run surely takes of the whole model, outside of ``FSDP.state_dict_type``."""
    record = whole(reading)
    if record is not None:
        reading.state("whole_state_dict", True, record.node)


def whole(reading: Reading) -> Record | None:
    """The first such call; None where there is none."""
    if any(_TOLD in text for text in reading.calls.texts()):
        return None
    for record in reading.records:
        if record.name != "state_dict" or record.taken is not True or record.passed or record.guarded:
            continue
        of_all = _OF_TRAINER.search(record.function) is not None or is_trained(reading.found, record.receiver)
        if of_all and _after_wrapping(reading, record) and not _in_context(reading, record):
            return record
    return None


def _after_wrapping(reading: Reading, record: Record) -> bool:
    """Whether the model has been handed to what wraps it by then."""
    found = reading.found
    wraps = [each for each in (found.trainer, found.accelerator, found.initialize) if each is not None]
    wraps += [each for each in reading.records if each.name in ("FSDP", "FullyShardedDataParallel")]
    return any(each.order < record.order for each in wraps)


def _in_context(reading: Reading, record: Record) -> bool:
    try:
        document = reading.calls.document_of(record.node)
    except KeyError:
        return True
    contexts = (each for each in loops.around(document, record.node) if isinstance(each, cst.With))
    items = (item.item for context in contexts for item in context.items)
    return any(_CONTEXT.search(document.slice(document.span(item))) for item in items)
