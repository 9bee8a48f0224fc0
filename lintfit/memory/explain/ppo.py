"""Terms of PPO: what the loop's variables hold beside the passes, and the rounds of generation and scoring."""

from __future__ import annotations

from lintfit.memory.components import plus
from lintfit.memory.engines.states import States
from lintfit.memory.explain.term import Term, term
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.result import Components, Moment
from lintfit.memory.rollouts.ppo import SCORES, batch, response, rolled
from lintfit.memory.spec import Spec

SOURCE = "TRL experimental/ppo/ppo_trainer.py"

ROUNDS = {
    "prompts read": "the key-value cache, and one layer's tensors of the prompts",
    "generation": "the key-value cache",
    "scores put together": "",
    "reference scores, last layer": "the reference's layer inputs, key-value cache and last layer",
    "reference scores, logits": "the reference's layer inputs and key-value cache",
    "values": "the value model's layer inputs and last layer",
}
"""The moments of a round, and what their activations are."""

_COPIES = "copies of the response's logits for the entropy"


def held(spec: Spec, step: Step, moment: str) -> list[Term]:
    """What the loop's variables hold at a moment of the passes."""
    match moment:
        case _ if moment.endswith(", forward"):
            what = "outputs of the last micro-batch, and of this one in two dtypes"
            activations = step.earlier.activations - step.outputs.activations
            logits = step.earlier.logits - step.outputs.logits
            return [
                *_outputs(spec, step),
                term("activations", what, activations, source=SOURCE),
                term("logits", "logits of the last micro-batch", logits, source=SOURCE),
            ]
        case "end of backward" | "optimizer step":
            return _results(spec, step)
        case "loss, backward" | "head, backward":
            return _outputs(spec, step)
    return _outputs(spec, step) if moment.startswith("layer ") else []


def _outputs(spec: Spec, step: Step) -> list[Term]:
    what = "layer inputs and key-value cache in the loop's output, which no layer saves"
    return [term("activations", what, step.outputs.activations, source=SOURCE), *_logits(spec, step)]


def _results(spec: Spec, step: Step) -> list[Term]:
    what = "layer inputs and key-value cache in the loop's output"
    logits = term("logits", "the micro-batch's logits in the loop's output", step.head.lingering, source=SOURCE)
    return [term("activations", what, step.results().activations, source=SOURCE), logits, *_logits(spec, step)]


def _logits(spec: Spec, step: Step) -> list[Term]:
    rest = step.outputs.logits - rolled(spec)
    return [_scores(spec, 1), term("logits", "the last micro-batch's softmax", rest, source=SOURCE)]


def _scores(spec: Spec, copies: int) -> Term:
    factors = (
        (copies * SCORES, "bytes"),
        (batch(spec), "sequences"),
        (response(spec), "tokens of a response"),
        (spec.facts.vocab, "vocabulary entries"),
    )
    what = "scores of all generated tokens, which logitss holds to the next generation"
    return term("logits", what, copies * rolled(spec), *factors, source=SOURCE)


def rounds(spec: Spec, states: States, step: Step, moment: Moment) -> list[Term]:
    """Terms of generation, scoring and statistics."""
    if moment.name not in ROUNDS and moment.name != "statistics":
        return []
    state = states.forward if moment.name == "statistics" else states.evaluate
    rest = plus(moment.components, {name: -size for name, size in state.items()})
    found = [
        term("communication_buffers", "policy and value model gathered to generate", _of(rest, "communication_buffers"))
    ]
    if moment.name == "statistics":
        left = _of(rest, "logits") - step.results().logits
        return [*found, *_results(spec, step), term("logits", _COPIES, left, source=SOURCE)]
    copies = min(3, _of(rest, "logits") // rolled(spec))
    logits = term("logits", "scores or logits of the sequences in hand", _of(rest, "logits") - copies * rolled(spec))
    return [*found, term("activations", ROUNDS[moment.name], _of(rest, "activations")), _scores(spec, copies), logits]


def _of(parts: Components, name: str) -> int:
    return parts.get(name, 0)
