"""Trainers that compare two answers to a prompt, and data that surely has no such pairs: such a call cannot train so.

TRL's DPO, CPO and ORPO trainers take the keys of a batch that begin with ``chosen`` and ``rejected``
(``concatenated_inputs``; from 0.12 on DPO's takes ``chosen_input_ids`` and ``rejected_input_ids``).
"""

from __future__ import annotations

import re

import libcst as cst

from lintfit.sources.script.interpreter.values import Function, Object, Record, alternatives
from lintfit.sources.script.reading.own_method import STEPS

COMPARE = frozenset({"dpo", "cpo", "orpo"})
"""Kinds of trainers, by what :mod:`lintfit.sources.script.reading.training` calls them."""
_OWN = (*STEPS, "get_batch_loss_metrics", "get_batch_metrics", "concatenated_forward", "concatenated_inputs")
"""Methods by which a class of the script's own may take other keys."""
_PAIR = re.compile(r"chosen|rejected")
_MAKES = re.compile(r"\blabels\b")
"""What a batch to be trained on as it is has."""
_PASSES_ON = re.compile(r"\.(items|keys|pad|update|collate\w*)\(|\*\*|\bsuper\(|\bfor k(ey)?, ")
"""What puts keys into a batch that stand elsewhere."""


def surely_none(trainer: Record) -> str | None:
    """The class of a collator that hands TRL's trainer batches without pairs; None where there may be some."""
    overrides = any(cls.member(name) is not None for cls in trainer.classes for name in _OWN)
    handed = trainer.keyword("data_collator")
    if not trainer.function.startswith("trl.") or overrides or handed is None:
        return None
    options = list(alternatives(handed))
    if not all(isinstance(option, Object) and _makes_plain_batches(option) for option in options):
        return None
    return next(option.kind for option in options if isinstance(option, Object))


def _makes_plain_batches(collator: Object) -> bool:
    """Whether a collator is of a class of the script's that names all keys of its batches, and none of a pair's."""
    cls = collator.cls
    called = cls.member("__call__") if cls is not None and cls.library is None else None
    if cls is None or not isinstance(called, Function) or called.node is None:
        return False
    code = cst.Module([]).code_for_node
    text = "".join(code(each.node) for each in cls.line() if each.node is not None)
    return bool(_MAKES.search(text)) and not _PAIR.search(text) and not _PASSES_ON.search(code(called.node))
