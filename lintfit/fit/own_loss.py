"""What more accumulation does to a Trainer whose ``compute_loss`` is the project's own."""

from __future__ import annotations

from lintfit.documents.model import Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.versions import before

_SINCE = "4.46"
"""The first transformers whose Trainer leaves it to the loss to divide by the samples of a whole step, where the model
takes ``num_items_in_batch`` (``Trainer.training_step``; 4.49 tells DeepSpeed not to divide either)."""

_LOSS = lazy_pattern(
    r"class \w+\((?:[\w.]+\.)?(?:SFT|Seq2Seq)?Trainer\):(?:\n(?:[ \t].*)?)*?\n[ \t]+def (?P<name>compute_loss)\("
    r"[^)]*\)[^:\n]*:(?P<body>(?:\n(?![ \t]+(?:def |@))(?:[ \t].*)?)*)"
)
_DIVIDES = ("num_items_in_batch", "**kwargs", "model_accepts_loss_kwargs", "gradient_accumulation_steps")


def undivided(before_it: Run, after: Run) -> tuple[str, ...]:
    """That the gradients of a step grow by a plan that accumulates more micro-batches, as a loss of the project's own
    passes over the count of labels which the Trainer hands to it."""
    was, now = before_it.spec, after.spec
    if was is None or now is None or now.gradient_accumulation_steps <= was.gradient_accumulation_steps:
        return ()
    place = _own_loss(after) if before(after.versions.get("transformers"), _SINCE) is not True else None
    if place is None:
        return ()
    times = now.gradient_accumulation_steps / was.gradient_accumulation_steps
    return (
        f"Gradients are {times:g} times as large before they are clipped with transformers {_SINCE} and later, unless "
        f"the Trainer says model_accepts_loss_kwargs = False: {place} leaves out num_items_in_batch",
    )


def _own_loss(run: Run) -> Place | None:
    for document in run.documents:
        if document.kind is not Kind.PYTHON or "model_accepts_loss_kwargs" in document.text:
            continue
        found = _LOSS.search(document.text)
        if found is not None and not any(word in found["body"] for word in _DIVIDES):
            return Place(document, Span(*found.span("name")))
    return None
