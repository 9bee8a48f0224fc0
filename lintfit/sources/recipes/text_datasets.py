"""Data sets that hold no images, by the names that front ends know them by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lintfit.documents.patterns import lazy_pattern
from lintfit.settings.model import Provenance, Setting
from lintfit.sources.recipes.keys import Stated

_TEXT = lazy_pattern(
    r"(?:alpaca|belle|c4|codealpaca|coig|cosmopedia|databricks-dolly|dolly|evol[-_]instruct|fineweb|firefly"
    r"|glaive_toolcall|gsm8k|guanaco|hh[-_]rlhf|identity|infinity[-_]instruct|kto_(?:en|zh)|lima|magpie|math"
    r"|metamath|msagent|numinamath|oasst|open(?:assistant|hermes|-?orca|-?r1-math|thoughts)|open_(?:platypus|r1_math)"
    r"|orca|pile|self-cognition|skypile|slimorca|stem_zh|swe-|tldr|tulu|ultrachat|ultrafeedback|webinstruct"
    r"|wiki|wizardlm)(?![a-z])",
    re.IGNORECASE,
)
"""How names begin of data sets whose rows have no column of images, in LLaMA-Factory's ``data/dataset_info.json``
(0.9.4) and in ms-swift's list of data sets (``docs/source_en/Instruction/Supported-models-and-datasets.md``)."""
_SEES = lazy_pattern(r"image|visual|vision|video|audio|multi-?modal|vqa|ocr|vl\b|-v\b|llava", re.IGNORECASE)


def no_images(found: Stated | None) -> Setting | None:
    """That samples have no images, where every data set that is named holds text alone."""
    names = _names(found.value) if found is not None else ()
    if found is None or not names or not all(map(_is_text, names)):
        return None
    return Setting("images", 0, Provenance("derived", "the data sets hold text alone", found.provenance.place))


def _names(value: Any) -> Sequence[Any]:
    """The data sets of a field: a list, or names between commas or blanks."""
    return re.split(r"[,\s]+", value.strip()) if isinstance(value, str) else value if isinstance(value, list) else ()


def _is_text(name: Any) -> bool:
    """Whether a name is one's of text (``AI-ModelScope/alpaca-gpt4-data-zh#500``, ``swift/self-cognition:qwen``)."""
    if not isinstance(name, str) or name.endswith((".json", ".jsonl", ".csv", ".parquet", ".txt")):
        return False
    last = re.split(r"[#:]", name, maxsplit=1)[0].rpartition("/")[2]
    return _TEXT.match(last) is not None and _SEES.search(last) is None
