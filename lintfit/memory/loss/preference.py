"""What TRL's trainers do in place of a causal language model's step: which sequences, which tokens, and which loss.

Read in TRL 0.16 to 1.16 (``trainer/*_trainer.py``, ``trainer/utils.py``); the losses of 1.16 run under fake tensors in
``bench/fake_trl.py``.
"""

from __future__ import annotations

from typing import Literal

from lintfit.memory.spec import SCORING, Spec
from lintfit.memory.versions import Release, release

Path = Literal[
    "full", "chunked", "liger", "selective", "selective-kernel", "odds", "odds-kernel", "score", "ppo", "ppo-whole"
]
"""How a loss is computed: as the model does it; in tiles; by Liger; from whole logits, of which log-probabilities are
selected (by a kernel of TRL's own), beside a cross entropy of the better answers (odds); from one score a sequence;
PPO's, from the logits of the response (whole: by a log-softmax of all of them)."""

FROM_WHOLE = frozenset({"selective", "selective-kernel", "odds", "odds-kernel"})
"""Of these TRL's from whole logits."""

NEWEST_TRL: Release = (1, 16, 0)

NEWEST_PPO: Release = (1, 12, 0)
"""The newest TRL read that has a ``PPOTrainer`` (1.14 has none)."""

SELECTIVE = (0, 15)
"""The first TRL version whose PPO selects from log-probabilities row by row (``selective_log_softmax``)."""

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
    """TRL's version; where it is not stated the newest known, for PPO the newest with a ``PPOTrainer``."""
    return release(spec.versions.get("trl")) or (NEWEST_PPO if spec.trainer == "ppo" else NEWEST_TRL)


def loss_path(spec: Spec) -> Path:
    """How the loss of a run is computed."""
    if spec.trainer == "causal-lm":
        return spec.loss
    if spec.trainer in SCORING:
        return "score"
    if spec.trainer == "ppo":
        return "ppo" if trl_version(spec) >= SELECTIVE else "ppo-whole"
    if spec.trainer in FUSED and trl_version(spec) >= FUSED_HEAD:
        return "chunked"
    if spec.loss == "liger":
        return "liger"
    kernel = trl_version(spec) >= KERNEL
    if spec.trainer in ODDS:
        return "odds-kernel" if kernel else "odds"
    return "selective-kernel" if kernel else "selective"


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
