"""What a plan cannot be smaller than: the proofs that let the search leave combinations out.

The floor is of both ends of an estimate's range; the others are estimates, each end a bound of that end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lintfit.fit.options import Option
from lintfit.fit.space import PASSING
from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec
from lintfit.run.change import changed_spec


class Bounds:
    """Bounds for the candidates of one run, each worked out once. ``shortest`` is the fewest tokens of the space,
    ``launched`` as :func:`.change.changed_spec` has it."""

    def __init__(self, shortest: int, launched: bool = False) -> None:
        self.shortest = shortest
        self.launched = launched
        self.estimates = 0
        self._lasting: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._least: dict[tuple[Any, ...], Estimate] = {}

    def floor(self, spec: Spec, changes: Mapping[str, Any]) -> int:
        """Bytes of what lasts on the GPU: no batch and no kernel makes a run smaller than its largest moment.

        Every moment of an estimate is one of these sets with something alive on top.
        """
        return self._of_states(spec, changes)[0]

    def _of_states(self, spec: Spec, changes: Mapping[str, Any]) -> tuple[int, int]:
        """The floor of the GPU and the peak of the host, which no batch decides."""
        key = (*_key(changes, _WITHOUT_STATES), spec.gradient_accumulation_steps > 1)
        if key not in self._lasting:
            held = states(spec)
            self._lasting[key] = (floor(held), held.host.peak)
        return self._lasting[key]

    def group(self, spec: Spec, options: Sequence[Option]) -> tuple[int, int]:
        """The least floor and the least host memory of all candidates that share these options and differ in what
        passes only."""
        changes = {name: value for option in options for name, value in option.changes.items()}
        changed = changed_spec(spec, changes, launched=self.launched)
        floors, hosts = [], []
        for recomputes in (False, True):
            for steps in (1, 2):
                variant = replace(changed, gradient_checkpointing=recomputes, gradient_accumulation_steps=steps)
                card, host = self._of_states(variant, {**changes, "gradient_checkpointing": recomputes})
                floors.append(card)
                hosts.append(host)
        return min(floors), min(hosts)

    def least(self, spec: Spec, changes: Mapping[str, Any]) -> Estimate:
        """The estimate with one sample of the fewest tokens and everything else as in the candidate.

        More samples or tokens only ever add: whether steps accumulate, which decides about gradients that are kept,
        stays as it is in the candidate.
        """
        return self._of_one(spec, changes, self.shortest)

    def of_one_sample(self, spec: Spec, changes: Mapping[str, Any]) -> Estimate:
        """The estimate with one sample of the candidate's own length: a sharper bound, shared by fewer."""
        return self._of_one(spec, changes, spec.seq_len)

    def _of_one(self, spec: Spec, changes: Mapping[str, Any], tokens: int) -> Estimate:
        key = (*_key(changes, _BATCH), spec.gradient_accumulation_steps > 1, tokens)
        if key not in self._least:
            self.estimates += 1
            self._least[key] = estimate(replace(spec, micro_batch_size=1, seq_len=tokens))
        return self._least[key]


_WITHOUT_STATES = PASSING - {"gradient_checkpointing"}
"""Settings that no engine's states depend on; ZeRO-3 fetches once more where activations are recomputed."""

_BATCH = frozenset({"micro_batch_size", "seq_len"})


def _key(changes: Mapping[str, Any], without: frozenset[str]) -> tuple[Any, ...]:
    kept = changes.keys() - without - {"gradient_accumulation_steps"}
    return tuple((name, changes[name]) for name in sorted(kept))


def floor(held: States) -> int:
    """The largest of the sets of bytes that a step has at its moments, before anything of a batch is alive."""
    sets = (held.load, held.initialize, held.forward, held.backward_start, held.first_gradient, held.step, held.save)
    return max(sum(components.values()) for components in sets)
