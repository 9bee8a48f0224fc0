"""One micro-batch of a run: one model's step, PPO's of two models, or one with an image encoder in front."""

from __future__ import annotations

from lintfit.memory.engines.states import States
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.micro_batch.model_step import record_model
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.spec import OWN_LOSS, Spec
from lintfit.memory.tensors.parameters import inventory


def record(spec: Spec, states: States) -> Step:
    """Count the layers, the head and the embedding of one micro-batch on one rank."""
    if spec.trainer == "ppo":
        from lintfit.memory.rollouts.ppo import both

        return both(spec, states)
    if spec.encoded is not None:
        from lintfit.memory.micro_batch.encoder_decoder import both_halves

        return both_halves(spec, states)
    step = _with_images(spec, states) if spec.images and spec.facts.vision is not None else _of_text(spec, states)
    if spec.loop_outputs == "dropped" or spec.trainer not in OWN_LOSS:
        return step
    from lintfit.memory.micro_batch.loop_outputs import held

    return held(spec, step)


def _of_text(spec: Spec, states: States) -> Step:
    return record_model(spec, states, inventory(spec), loss_path(spec))


def _with_images(spec: Spec, states: States) -> Step:
    from lintfit.memory.micro_batch.vision.step import beside_text, in_sequence, with_tower

    seen, beside = in_sequence(spec), beside_text(spec)
    return with_tower(spec, record_model(spec, states, inventory(spec), loss_path(spec), seen=seen, beside=beside))
