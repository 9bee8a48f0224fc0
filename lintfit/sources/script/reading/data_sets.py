"""How long the samples are that a project's own data set makes: it cuts them, or leaves longer ones out."""

from __future__ import annotations

import re

from lintfit.documents.model import Span
from lintfit.settings.model import Place, Provenance, Setting
from lintfit.sources.script.interpreter.values import Object, Value, objects, plain
from lintfit.sources.script.reading.collector import Reading

_CUT_TO_OWN = re.compile(
    r"\[\s*:\s*self\.(\w+)\s*\]|\[\s*-\s*self\.(\w+)\s*:\s*\]|(?<!\w)max_length\s*=\s*self\.(\w+)\s*[,)]"
)
"""Tokens that a data set cuts at a field of its own, from either end, or has its tokenizer cut."""
A_LENGTH = re.compile(r"max\w*len|len\w*max|len(gth)?$|max_(\w+_)?(tokens|words|size)$")
OF_A_PART = re.compile(
    r"prompt|source|src|target|tgt|answer|ans_|response|output|question|query|input|new|gen|eval|label"
)
_DROPS = re.compile(
    r"^[ \t]*if [^\n#]{0,80}?(?:len\([^()\n]{0,60}input_ids[^()\n]{0,20}\)|input_ids[^()\n#]{0,8}\.shape\[-?1\])"
    r"[ \t]*>=?[ \t]*(?P<value>[1-9]\d{1,5})[ \t]*:[ \t]*(?:#[^\n]*)?\n?[ \t]*continue\b",
    re.MULTILINE,
)
"""A sample that is left out for its length: ``if len(sample["input_ids"]) > 2048: continue``."""


def is_cut(reading: Reading) -> bool:
    """The field at which a data set of the project's own cuts its samples, as llama-recipes' do that are handed
    ``max_words``: ``example[: self.max_words]``, where shorter ones are filled up to it."""
    found: dict[int, tuple[Value, bool]] = {}
    trainer = reading.found.trainer
    sets = [record.value(0, "dataset") for record in reading.called("DataLoader") if record.taken is True]
    sets += [trainer.keyword("train_dataset")] if trainer is not None else []
    for made in (each for handed in sets for each in objects(handed)):
        text = _text_of(reading, made)
        names = {each[each.lastindex or 0] for each in _CUT_TO_OWN.finditer(text)}
        for name in filter(A_LENGTH.search, names):
            value = made.attributes.get(name)
            if value is not None and type(size := plain(value)) is int and not OF_A_PART.search(name):
                found[size] = value, _fills(text, name)
    if len(found) != 1:
        return False
    ((value, fills),) = found.values()
    reading.put("seq_len", value)
    if fills:
        reading.derive("pads_to_length", True, "the data set fills shorter samples up to the length")
    return True


def _fills(text: str, name: str) -> bool:
    """Whether a class fills samples up to a field of its own: what is left of it is a number of fillers (``[0] *
    (self.max_len - n)``, ``torch.zeros(rest)``), not the room for a prompt."""
    left = rf"self\.{name} - "
    rests = "".join(rf"|{re.escape(each)}\b" for each in dict.fromkeys(re.findall(rf"(\w+) = {left}", text)))
    return (
        re.search(rf"\bpad\w* = {left}|(?:\* ?\(?|\b(?:zeros|ones|full|pad)\([^\n]{{0,80}}?)(?:{left}{rests})", text)
        is not None
    )


def longer_are_left_out(reading: Reading) -> bool:
    """The most tokens of a sample that a data set keeps, where it cuts none and leaves longer ones out."""
    found = [
        (int(match["value"]), each, match) for each in reading.calls.documents for match in _DROPS.finditer(each.text)
    ]
    if not found:
        return False
    size, document, match = max(found, key=lambda each: each[0])
    how = Provenance("assumed", "samples of more tokens are left out", Place(document, Span(*match.span("value"))))
    reading.settings["seq_len"] = Setting("seq_len", size, how)
    return True


def _text_of(reading: Reading, made: Object) -> str:
    """The class of an object, as the script has it."""
    node = made.cls.node if made.cls is not None else None
    if node is None or not reading.calls.is_written(node):
        return ""
    document = reading.calls.document_of(node)
    return document.slice(document.span(node))
