"""How large the images of a vision-language model may be: what its processor is told, or a flag of such a name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.values import Const, Record, Table, Value, plain
from lintfit.sources.script.reading.collector import Reading, sure_none

_PROCESSOR = re.compile(r"(?<!Video)(Image)?Processor(Fast)?\.from_pretrained$")
_CALLED = re.compile(r"(^|[._])(image_)?processor$")
_FIELDS = ("image_max_pixels", "max_pixels", "max_image_pixels")
_BY_SIZE = re.compile(r"glm-4\.\dv")
"""GLM 4V, whose processor looks at ``size`` alone, of which an image has half."""
_SMALLEST = 28 * 28
"""Pixels of the least that a processor makes one token of; a smaller number counts something else."""


def read(reading: Reading) -> None:
    """Note the most pixels of an image that any processor in sight lets pass.

    transformers takes ``max_pixels`` of the load in all versions (``image_processing_qwen2_vl.py``). ``size`` does not
    beat the ``max_pixels`` that Qwen 2 and 2.5 VL are published with, and an attribute not everything else.
    """
    found = [(value, record) for value, record in _told(reading) if not sure_none(value)]
    if found:
        value, record = max(found, key=lambda each: _most(each[0]))
        one = len(_loads(reading)) <= 1 or all(record in {each[1] for each in found} for record in _loads(reading))
        reading.put("image_max_pixels", value, record, to=None if one else UNKNOWN)
        return
    for made in reading.walk.parsed:
        for name in _FIELDS:
            value = made.attributes.get(name, Const())
            known = plain(value)
            if isinstance(known, int) and not isinstance(known, bool) and known >= _SMALLEST:
                reading.put("image_max_pixels", value)
                reading.suppose("image_max_pixels", f"{name} is taken for the pixels of an image that are left at most")
                return


def _loads(reading: Reading) -> list[Record]:
    """The loads of processors that images may go through."""
    return [record for record in reading.records if record.taken is not False and _PROCESSOR.search(record.function)]


def _most(value: Value) -> float:
    """How many pixels a value lets pass; no end where it is not known."""
    known = plain(value)
    return known if isinstance(known, int | float) and not isinstance(known, bool) else float("inf")


def _told(reading: Reading) -> Iterator[tuple[Value, Record | None]]:
    setting = reading.settings.get("model")
    model = setting.value.lower() if setting is not None and isinstance(setting.value, str) else ""
    if _BY_SIZE.search(model):
        return
    # Qwen 3 is published with a ``size`` in the place of ``max_pixels``.
    third, fifth = "qwen3" in model, reading.at_least("transformers", 5)
    for record in reading.records:
        if record.taken is False:
            continue
        if not _PROCESSOR.search(record.function) and not _CALLED.search(record.function):
            continue
        if (value := record.keyword("max_pixels")) is not None:
            yield value, record
        elif third and isinstance(size := record.keyword("size"), Table) and "longest_edge" in size.items:
            yield size.items["longest_edge"], record
    by_size = [each.value for each in reading.walk.pixels if each.sized]
    by_name = [each.value for each in reading.walk.pixels if not each.sized]
    if by_name and (by_size or fifth or not third):
        yield from ((value, None) for value in by_name)
    if by_size and (by_name or fifth or third):
        yield from ((value, None) for value in by_size)
