"""What a run's model is called where people read of it."""

from __future__ import annotations

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import word_set
from lintfit.run.model import Run

_ID = lazy_pattern(r"(?P<owner>[A-Za-z\d][\w.-]*)/[A-Za-z\d][\w.-]*")
_FOLDERS = word_set(
    "ckpt ckpts checkpoint checkpoints data hf llm llms model models out output outputs pretrained weights"
)
"""Names of folders, which are nobody's on Hugging Face that trains models: ``models/Llama-2-7b``."""


def model_name(run: Run) -> str:
    """The model by its id on Hugging Face as a file or the user states it, be its shape that of another one of its
    name; else by the name of what its shape was taken from."""
    stated = run.value("model")
    found = _ID.fullmatch(stated) if isinstance(stated, str) else None
    if found is not None and found["owner"].lower() not in _FOLDERS:
        return str(stated)
    facts = run.spec.facts if run.spec is not None else run.facts
    return facts.name if facts is not None else ""
