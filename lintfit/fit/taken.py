"""Whether the trainer's arguments, in the versions that a run may have, take what a plan would say."""

from __future__ import annotations

from lintfit.catalog import arguments
from lintfit.documents.model import DataDocument, Node
from lintfit.run.model import Run
from lintfit.versions import FLOOR, before

_ARGUMENTS = "transformers.TrainingArguments"
_OF_TRANSFORMERS = frozenset({"axolotl", "llamafactory", "swift", "trl"})
"""Front ends that hand their arguments to transformers' Trainer."""


def takes(run: Run, field: str, word: str = "") -> bool:
    """Whether any version that a run may have takes an argument, and for it a word; also where nobody knows."""
    if run.training is None or not run.training.uses_trainer:
        return True
    if run.recipe is not None and run.recipe.dialect not in _OF_TRANSFORMERS:
        return True
    stated = run.versions.get("transformers")
    found = arguments.studied("transformers", stated, run.versions.get("transformers" + FLOOR))
    return found is None or any(_at(index, field, word) for index in found.possible)


def _at(index: int, field: str, word: str) -> bool:
    kind = (arguments.fields_at(_ARGUMENTS, {"transformers": index}) or {}).get(field)
    words = kind[1:].split("|") if kind is not None and kind.startswith("=") else None
    return kind is not None and (not word or words is None or word in words)


def has_liger_plugin(run: Run) -> bool:
    """Whether axolotl has Liger's plugin: no release before 0.5.0 does (``integrations/liger``), and that one refuses a
    dataset of ``type: sharegpt`` (``deprecate_sharegpt_datasets`` of its config)."""
    if before(run.versions.get("axolotl"), "0.5.0") is True:
        return False
    document = run.recipe.document if run.recipe is not None else None
    datasets = document.root.get("datasets") if isinstance(document, DataDocument) and document.root else None
    return not any(_is_of_sharegpt(each) for each in (datasets.elements if datasets is not None else ()))


def _is_of_sharegpt(dataset: Node) -> bool:
    stated = dataset.get("type") if dataset.shape == "mapping" else None
    return stated is not None and isinstance(stated.value, str) and stated.value.startswith("sharegpt")
