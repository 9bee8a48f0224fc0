"""What TRL's trainers do in place of a causal language model's step: which sequences, which tokens, and which loss.

Read in TRL 0.16 to 1.16 (``trainer/*_trainer.py``, ``trainer/utils.py``), DPO's and ORPO's losses from 0.7 on; the
losses of 1.16 run under fake tensors in ``bench/fake_trl.py``. torchtune's DPO is read in 0.5.0 and 0.6.1.
"""

from __future__ import annotations

from typing import Literal

from lintfit.memory.spec import SCORING, Spec
from lintfit.memory.versions import Release, release, since

Path = Literal[
    "full",
    "chunked",
    "liger",
    "gathered",
    "tempered",
    "selective",
    "selective-kernel",
    "odds-gathered",
    "odds",
    "odds-kernel",
    "score",
    "ppo",
    "ppo-whole",
]
"""How a loss is computed: as the model does it; in tiles; by Liger; from whole logits, of which log-probabilities are
selected (by a kernel of TRL's own; gathered from a log-softmax of all of them; by torchtune from one of all of them
divided by a temperature), beside a cross entropy of the better answers (odds); from one score a sequence; PPO's, from
the logits of the response (whole: by a log-softmax of all)."""

FROM_WHOLE = frozenset({
    "gathered", "tempered", "selective", "selective-kernel", "odds-gathered", "odds", "odds-kernel",
})  # fmt: skip
"""Of these TRL's and torchtune's from whole logits."""

NEWEST_TRL: Release = (1, 16, 0)

NEWEST_PPO: Release = (1, 12, 0)
"""The newest TRL read that has a ``PPOTrainer`` (1.14 has none)."""

SELECTIVE = (0, 15)
"""The first TRL version that selects from log-probabilities row by row (``selective_log_softmax``); those before make
a log-softmax of all logits and gather the labels' from it (``get_batch_logps``)."""

HANDED_BACK: Release = (0, 12, 0)
"""The first TRL version whose DPO gives back the mean of its logits; before it gave back the logits themselves, which
stay until the reference has answered (``concatenated_forward``)."""

ALWAYS_NLL: Release = (0, 9, 6)
"""The first TRL version whose DPO makes a cross entropy of the preferred answers whether ``rpo_alpha`` asks for it or
not; since :data:`HANDED_BACK` only where it does."""

BEFORE_TRANSFORMERS_4_46: Release = (0, 11, 4)
"""The newest TRL version that goes with a transformers before 4.46, which those after it need (``setup.py``)."""

FUSED_HEAD = (1, 15)
"""The first TRL version whose trainers score tokens in tiles (``trainer/utils.py:add_fused_lm_head``). Up to 1.14
DPO, KTO, GRPO and RLOO make whole logits and select from them (``selective_log_softmax``)."""

KERNEL = (1, 14)
"""The first TRL version that selects from whole logits by a Triton kernel, which keeps the logits and makes a gradient
of their size (``kernels/logprob_entropy.py``)."""

FUSED = frozenset({"dpo", "kto", "grpo", "rloo"})

ODDS = frozenset({"orpo", "cpo"})
"""Trainers whose loss has a cross entropy of the preferred answers as well (``concatenated_forward``)."""

PAIRED = frozenset({"dpo", "orpo", "cpo", "reward"})
"""Trainers that run a preferred and a rejected answer for every sample, in one batch."""

ROLLOUTS = frozenset({"grpo", "rloo", "ppo"})
"""Trainers that score only what they have generated."""


def trl_version(spec: Spec) -> Release:
    """TRL's version; where it is not stated the newest that goes with transformers, for PPO the newest with a
    ``PPOTrainer``."""
    stated = release(spec.versions.get("trl"))
    if stated is not None:
        return stated
    if not since(spec, "transformers", (4, 46)):
        return BEFORE_TRANSFORMERS_4_46
    return NEWEST_PPO if spec.trainer == "ppo" else NEWEST_TRL


def loss_path(spec: Spec) -> Path:
    """How the loss of a run is computed."""
    if spec.trainer == "causal-lm":
        return spec.loss
    if spec.trainer in SCORING:
        return "score"
    if spec.trainer == "ppo":
        return "ppo" if trl_version(spec) >= SELECTIVE else "ppo-whole"
    if spec.front_end == "torchtune":
        return "tempered"
    if spec.trainer in FUSED and trl_version(spec) >= FUSED_HEAD:
        return "chunked"
    if spec.loss == "liger":
        return "liger"
    version = trl_version(spec)
    if spec.trainer in ODDS:
        return "odds-kernel" if version >= KERNEL else "odds" if version >= SELECTIVE else "odds-gathered"
    return "selective-kernel" if version >= KERNEL else "selective" if version >= SELECTIVE else "gathered"


def sequences(spec: Spec) -> int:
    """Sequences of one forward pass."""
    return spec.micro_batch_size * (2 if spec.trainer in PAIRED else 1)


def scored(spec: Spec, seq: int) -> int:
    """Tokens of each sequence of ``seq`` tokens that are scored.

    GRPO and RLOO score the completion; where they make whole logits, the token before it has logits, too
    (``logits_to_keep + 1``). PPO makes logits of all tokens and scores the response.
    """
    if spec.trainer in ROLLOUTS and spec.generation is not None:
        return min(seq, spec.generation.completion_len + (loss_path(spec) in FROM_WHOLE))
    return seq


def scores_reference_beside(spec: Spec) -> bool:
    """Whether the reference's forward runs while the policy's graph is there (DPO and KTO; GRPO has it done before)."""
    return spec.trainer in ("dpo", "kto") and (spec.reference_model or spec.method == "lora")


def logits_beside_the_reference(spec: Spec) -> float:
    """How much of the policy's logits, as its loss takes them, DPO still holds while the reference answers.

    Half of them once more is the log-softmax of the preferred answers' cross entropy, whose graph is there until the
    loss is made.
    """
    version = trl_version(spec)
    if spec.trainer != "dpo" or spec.front_end == "torchtune" or version >= HANDED_BACK:
        return 0.0
    return 1.5 if version >= ALWAYS_NLL else 1.0
