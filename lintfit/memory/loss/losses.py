"""Losses on a tape of their own: from whole logits to one number, the way transformers and TRL compute it.

Each gives its result, and the unsaved logits alive at its worst forward point. Sources: transformers
``loss/loss_utils.py:ForCausalLMLoss`` (5.x pads the labels; up to 4.48 the fp32 logits are sliced and copied),
``modeling_llama.py`` of 4.45 (``logits = logits.float()`` in the model), TRL ``trainer/utils.py``.
"""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memory.activations.frames import PADDED_LABELS, frame
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import LOGITS, Storage, Tape, Var

UPCAST_IN_MODEL = (4, 46)
"""Below this version the models themselves upcast their logits, and the half-precision ones are dropped."""


def own_loss(facts: ModelFacts, recipe: Recipe) -> bool:
    """Whether the model computes its loss in the dtype of its logits, apart from autocast."""
    how = frame(facts)
    return recipe.wrapped_loss or how.plain_loss or recipe.transformers < how.own_loss_before


def upcasts_itself(facts: ModelFacts, recipe: Recipe) -> bool:
    """Whether the model gives back fp32 logits, and lets go of the half-precision ones."""
    return recipe.transformers < UPCAST_IN_MODEL or frame(facts).fp32_logits


def soft_cap(t: Tape, logits: Var) -> Var:
    """``tanh(logits / cap)``, which its backward needs; the product with the cap comes behind it."""
    bounded = t.like(logits, logits.width, logits.item, True, LOGITS)
    return t.op(bounded, (t.map(logits),), (bounded,))


def causal_loss(t: Tape, logits: Var, version: tuple[int, int], fused: bool, *, upcast: bool) -> tuple[Var, list[Var]]:
    """The loss on a tape of its own: its result, and the unsaved logits alive at its worst forward point.

    ``upcast``: whether the model has upcast the logits itself.
    """
    full = t.cast(logits, 4)
    alive = [logits] if full is logits else [logits, full]
    if upcast:
        alive = [full]
    if version < PADDED_LABELS:
        full = t.map(full)
        alive.append(full)
    if fused:
        return _overwriting(t, full), alive[:-1]
    return t.op(t.constant(1, 4, True), (t.log_softmax(full),)), alive


def _overwriting(t: Tape, logits: Var) -> Var:
    """The kernel that saves the logits and, in the backward, overwrites them with their gradient.

    Unsloth's ``Fast_CrossEntropyLoss``, also in fms-acceleration's FOAK; Liger's does the same in its forward.
    """
    return t.op(t.constant(1, 4, True), (logits,), (logits,), overwritten=(logits,))


def own_dtype_loss(t: Tape, logits: Var, fused: bool, autocast: bool, *, shifts: bool = True) -> tuple[Var, list[Var]]:
    """The older models' loss: a copy of the shifted logits and their log-softmax in the logits' dtype.

    Autocast runs torch's cross entropy in fp32, on one more copy; a kernel takes what it is given. ``shifts``: whether
    the shifted logits are a copy; those of one sequence have no gaps, so that ``contiguous`` leaves them as they are.
    """
    shifted = t.map(logits) if shifts else t.copied_back(logits)
    if fused:
        return _overwriting(t, shifted), [logits]
    full = t.cast(shifted, 4) if autocast else shifted
    alive = [logits, *([shifted] if shifts else []), *([full] if full is not shifted else [])]
    return t.op(t.constant(1, 4, True), (t.log_softmax(full),)), alive


def masked_loss(t: Tape, logits: Var, autocast: bool) -> tuple[Var, list[Var]]:
    """BERT's own loss: torch's cross entropy of all logits as they are, which autocast runs in fp32 on a copy."""
    full = t.cast(logits, 4) if autocast else logits
    return t.op(t.constant(1, 4, True), (t.log_softmax(full),)), [logits, *([full] if full is not logits else [])]


def gathered_loss(t: Tape, logits: Var, fp32: bool, *, odds: bool = False) -> tuple[Var, list[Var]]:
    """TRL's before 0.15: the labels' of a log-softmax of all logits, which the backward needs; the logits have a name.

    ``fp32``: whether they come upcast, by the model or by Accelerate. ``odds``: beside the cross entropy of the
    preferred answers, whose copy is gone by then.
    """
    full = t.cast(logits, 4) if fp32 else logits
    likelihood = _of_the_preferred(t, full)[0] if odds else None
    picked = t.op(t.constant(1, 4, True), (t.log_softmax(t.copied_back(full)),))
    return (t.add(picked, likelihood) if likelihood is not None else picked), [full]


def tempered_loss(t: Tape, logits: Var) -> tuple[Var, list[Var]]:
    """torchtune's: the labels' of a log-softmax of all fp32 logits, divided by a temperature of 1 before
    (``rlhf/sequence_processing.py``, ``logits_to_logprobs``).

    The model casts its logits to fp32 (``TransformerDecoder.unembed``), and the recipe has a name for them.
    """
    full = t.cast(logits, 4)
    divided = t.map(t.copied_back(full))
    return t.op(t.constant(1, 4, True), (t.log_softmax(divided),)), [full, divided]


def selective_loss(
    t: Tape, logits: Var, autocast: bool, *, kernel: bool = False, odds: bool = False
) -> tuple[Var, list[Var]]:
    """TRL's ``selective_log_softmax``: log-probabilities of the labels from whole logits.

    Autocast's logits come as fp32 (accelerate). These are kept for ``gather``, whose backward adds to zeros out of
    place, and ``logsumexp``, whose gradients are put together sequence by sequence; half-precision ones give a
    log-softmax of each sequence, which is kept until that sequence's gradient is made. The
    shifted view is copied for DPO's entropy (``entropy_from_logits`` reshapes it). ``kernel``: TRL's own, which keeps
    the logits and makes the entropy as well. ``odds``: beside the cross entropy of the preferred answers.
    """
    full = t.cast(logits, 4) if autocast else logits
    alive = []
    likelihood = None
    if odds:
        likelihood, copy = _of_the_preferred(t, full)
        alive = [copy]
    if kernel:
        picked = t.op(t.constant(1, 4, True), (t.copied_back(full),), (full,))
    else:
        shifted = t.map(full)
        if not odds:
            alive.append(t.like(full, full.width, full.item, False, LOGITS))
        if full.item == 4:
            found = t.op(t.constant(1, 4, True), (shifted,), (full,), temp=(full.scratch(4),))
            sums = t.op(t.constant(1, 4, True), (shifted,), (full,), temp=(full.scratch(4),))
            picked = t.add(found, sums)
        else:
            alive = [full, *(alive if not odds else [])]
            rows = t.like(full, full.width, full.item, full.grad, LOGITS)
            picked = t.op(t.constant(1, 4, True), (t.op(rows, (shifted,), (rows,), overwritten=(rows,)),))
    return (t.add(picked, likelihood) if likelihood is not None else picked), alive


def preferred(batch: int, seq: int) -> int:
    """Tokens of the preferred answers, the first half of the sequences."""
    return batch // 2 * seq


def _copied(batch: int, seq: int) -> int:
    """Of these what ``contiguous`` copies: the shifted logits of one sequence have no gaps."""
    return preferred(batch, seq) if batch > 2 else 0


def _of_the_preferred(t: Tape, logits: Var) -> tuple[Var, Var]:
    """The cross entropy of the first half of the sequences, from a copy of their shifted logits; and that copy."""
    part = t.copied_back(logits, per=preferred)
    storage = Storage(logits.width * logits.item, _copied, LOGITS)
    copy = t.op(Var(logits.width, logits.item, preferred, storage, logits.grad), (part,))
    return t.op(t.constant(1, 4, True), (t.log_softmax(copy),)), copy


def response_loss(
    t: Tape, logits: Var, autocast: bool, scored: int | None, *, whole: bool = False
) -> tuple[Var, list[Var]]:
    """PPO's loss: the logits of the response divided in place, and ``selective_log_softmax`` of these row by row.

    ``whole``: a log-softmax of all at once instead, which a variable of the loop holds as well.

    The loop's variables hold the logits to the end of the step. Dividing a view in place makes its gradient whole
    (``CopySlices``: a copy of it, and two of the view's).
    """
    full = t.cast(logits, 4) if autocast else logits
    if full is not logits:
        full.storage.kind = LOGITS
    per = full.per if scored is None else Scored(scored)
    divided = Var(full.width, full.item, full.per, full.storage, full.grad)
    part = full.width * full.item, per
    t.op(divided, (full,), temp=(part, part))
    response = Var(full.width, full.item, per, full.storage, full.grad)
    t.op(response, (divided,))
    rows = Var(full.width, full.item, per, full.storage, full.grad)
    t.op(rows, (response,))
    t.pin(full)
    alive = [] if full is logits else [logits]
    if full.item == 4 and not whole:
        return t.op(t.constant(1, 4, True), (rows,), (full,)), alive
    log = Var(full.width, full.item, per, Storage(full.width * full.item, per, LOGITS), True)
    if whole:
        t.pin(log)
    return t.op(t.constant(1, 4, True), (rows,), (log,)), alive


@frozen
class Scored:
    """The tokens of all sequences that get logits."""

    most: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * min(seq, self.most)
