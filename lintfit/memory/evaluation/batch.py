"""One batch of an evaluation, and the logits that its model gives back."""

from __future__ import annotations

from lintfit.frozen import frozen, replace
from lintfit.memory.engines.states import States
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.loss.returned import logits_bytes
from lintfit.memory.micro_batch.autocast import head_copy
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.recording import record
from lintfit.memory.spec import Evaluation, Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.versions import release, since

SKIPS_LOGITS = (5, 15)
"""The first transformers whose ``prediction_step`` asks Liger for the loss alone; before, Liger made whole logits of
every batch that is not trained on (``skip_logits`` in ``lce_forward``)."""

SFT_SKIPS_LOGITS = (0, 29)
"""The first TRL whose SFT trainer does so."""


@frozen
class Round:
    """One batch of the evaluation: the run on it, what was recorded of it, and its logits.

    ``made``: bytes of the logits that the model gives back, on one rank. ``shared``: of the same of all ranks, which
    each has gathered.
    """

    spec: Spec
    step: Step
    evaluation: Evaluation
    made: int
    shared: int

    @property
    def window(self) -> int:
        """Batches whose logits stay on the GPU together; 1 where nobody says how many there are."""
        return _window(self.spec, self.evaluation)

    @property
    def keeps(self) -> bool:
        """Whether the logits of all ranks are gathered, to be kept for a batch at least."""
        return self.evaluation.predictions in ("gathered", "kept") and not self.evaluation.generates and self.made > 0

    @property
    def in_variable(self) -> bool:
        """Whether a variable of the script's own loop has the last batch's logits until the next are made."""
        return self.evaluation.predictions in ("held", "listed")

    @property
    def waiting(self) -> int:
        """Bytes of logits of earlier batches in the last forward of a window: what is kept so far, and where that is a
        tensor of its own, what the loop's variable still holds of the last batch. A loop of the script's own has one
        that nobody clears (of a list, what it holds of the batches before that is not known)."""
        if self.in_variable:
            return self.made
        before = self.window - 1
        if not self.keeps:
            return 0
        return (before + (1 if self.evaluation.concat_batches and before > 1 else 0)) * self.shared

    @property
    def gathered(self) -> int:
        """Bytes of logits at most while a batch's are gathered from all ranks and put to those before them."""
        gathering = self.window * self.shared + (self.made if self.spec.data_parallel > 1 else 0)
        together = 2 * self.window * self.shared if self.evaluation.concat_batches and self.window > 1 else 0
        return max(gathering, together)


def batch(spec: Spec, states: States, step: Step) -> Round | None:
    """One batch of the run's evaluation; None where there is none (PPO's trainer evaluates with what it rolls out)."""
    evaluation = spec.evaluation
    if evaluation is None or evaluation.batch_size == 0 or spec.trainer == "ppo":
        return None
    if spec.generation is not None:  # ``GRPOTrainer.prediction_step`` gives back the loss alone
        evaluation = replace(evaluation, predictions="none", generates=False)
    if evaluation.generates == "only":
        evaluation, seen = replace(evaluation, predictions="none"), answering(spec, evaluation)
    else:
        seen = replace(spec, micro_batch_size=evaluation.batch_size, loop_outputs="dropped")
    same = seen.micro_batch_size == spec.micro_batch_size and seen.loop_outputs == spec.loop_outputs
    counted = step if same else record(seen, states)
    made = logits_bytes(seen, counted.recipe)
    return Round(seen, counted, evaluation, made, made * spec.data_parallel)


def answering(spec: Spec, evaluation: Evaluation) -> Spec:
    """The run as its evaluation reads a batch of prompts, every beam's; a decoder behind an encoder has one token.

    Prompts of several lengths are padded.
    """
    rows = evaluation.batch_size * evaluation.beams
    padded = rows > 1 or spec.padded_batches
    seen = replace(spec, micro_batch_size=rows, loop_outputs="dropped", trainer="causal-lm")
    if spec.encoded is not None:
        read = evaluation.prompt_len or spec.encoded.seq_len
        return replace(seen, seq_len=1, encoded=replace(spec.encoded, seq_len=read, padded=padded))
    return replace(seen, seq_len=evaluation.prompt_len or spec.seq_len, padded_batches=padded)


def _window(spec: Spec, evaluation: Evaluation) -> int:
    if evaluation.predictions == "gathered":
        return 1
    batches = None
    if evaluation.samples is not None:
        batches = -(-evaluation.samples // (evaluation.batch_size * spec.data_parallel))
    known = [steps for steps in (evaluation.accumulation_steps, batches) if steps is not None]
    return min(known, default=1)


def makes_whole_logits(spec: Spec) -> bool:
    """Whether Liger's loss, which is fused with the head in training, is not in the evaluation.

    That is where logits are asked for, and before the trainers told Liger that they are not.
    """
    if loss_path(spec) != "liger" or spec.evaluation is None:
        return False
    if spec.evaluation.predictions != "none":
        return True
    by_sft = (release(spec.versions.get("trl")) or (0,)) >= SFT_SKIPS_LOGITS
    return not by_sft and not since(spec, "transformers", SKIPS_LOGITS)


def makes_logits_apart(spec: Spec) -> bool:
    """Whether a loss that never holds logits is followed by a second forward that makes them (TRL's trainers)."""
    return loss_path(spec) == "chunked"


def copies_without_head(run: Round) -> int:
    """Bytes of autocast's copies of the weights before the head makes its own, which a fused loss never does."""
    if not run.step.copies:
        return 0
    return max(0, run.step.copies - head_copy(inventory(run.spec)))
