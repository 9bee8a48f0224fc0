"""Names of files and runs that say a number which a plan changes: ``config_r256_bz4.json``, ``run_name: sft_bs8``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.documents.model import DataDocument
from lintfit.fit.applying import Applied
from lintfit.memory.spec import Spec

_WORDS: Mapping[str, tuple[str, str]] = {
    "micro_batch_size": ("bz|bs|bsz|mbs|mbsz|batch|batch[-_]?size", "the micro-batch"),
    "gradient_accumulation_steps": ("ga|gas|acc|accum|grad[-_]?acc|grad[-_]?accum", "the accumulation"),
}
"""What stands before the number in such names, and what it is then."""


def named_after(before: Spec, applied: Applied, changes: Mapping[str, Any]) -> Iterator[str]:
    """What names still say once a plan is carried out, a sentence each: who reads them takes the run for another."""
    names = dict.fromkeys(_names(applied))
    for setting, (words, what) in _WORDS.items():
        old, new = getattr(before, setting), changes.get(setting)
        if new is None or new == old:
            continue
        said = re.compile(rf"(?<![A-Za-z])(?:{words})[-_=]?{old}(?![0-9A-Za-z]|\.[0-9])", re.IGNORECASE)
        for name in names:
            if (found := said.search(name)) is not None:
                yield f"The name {name} still says “{found[0]}”: {what} is {new} then"


def _names(applied: Applied) -> Iterator[str]:
    """The paths of the files that are changed, and the texts that they and the launch have for values."""
    yield from (path.as_posix() for path in applied.texts)
    launch = applied.run.launch
    for flag in launch.flags if launch is not None else ():
        yield from (word for word in (flag.value, *flag.words) if word and len(word) < _LONGEST)
    for document in applied.run.documents:
        if isinstance(document, DataDocument) and document.root is not None and document.path in applied.texts:
            values = (node.value for _, node in document.root.walk() if node.shape == "scalar")
            yield from (value for value in values if isinstance(value, str) and len(value) < _LONGEST)


_LONGEST = 200
"""Characters of a name; a prompt is longer."""
