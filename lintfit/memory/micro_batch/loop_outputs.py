"""What a variable of the script's own loop holds of a micro-batch: ``outputs = model(**batch)``.

The Trainer lets go of the model's outputs before the backward pass. A loop that gives them a name has their logits, and
the keys and values of a cache, beside the whole backward pass and the optimizer's step, and until the next micro-batch
has outputs of its own: twice at the end of each forward pass.
"""

from __future__ import annotations

from itertools import accumulate

from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.loss.preference import loss_path, sequences
from lintfit.memory.loss.returned import logits_bytes
from lintfit.memory.micro_batch.kv_cache import layer_states, returns_cache
from lintfit.memory.micro_batch.step import Step, Stretch, pinned
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import local


def held(spec: Spec, step: Step) -> Step:
    """The same micro-batch in a loop that has a name for its outputs.

    A loss that never makes whole logits returns none. A cache is made of tensors of its own, which the step knows
    already, or of those that attention saves: these stay behind the backward of their layers.
    """
    logits = logits_bytes(spec, step.recipe) if loss_path(spec) == "full" and spec.pipeline_stage != "first" else 0
    own = step.earlier.activations + step.answered
    stretches = step.stretches if step.earlier.activations or not returns_cache(spec) else _pinned(spec, step)
    last = NOTHING
    if spec.loop_outputs == "held":
        last = Live(own + pinned(stretches) - pinned(step.stretches), logits)
    return replace(step, stretches=stretches, outputs=Live(own, logits), earlier=step.earlier.plus(last))


def _pinned(spec: Spec, step: Step) -> tuple[Stretch, ...]:
    """The layers, of each of which the cache holds the keys and values that it saves."""
    facts = local(language(spec.facts), spec.tensor_parallel)
    tokens = sequences(spec) * spec.local_seq
    size = layer_states(spec, facts, tokens, 2 if step.recipe.autocast else step.recipe.weights)
    starts = accumulate([stretch.length for stretch in step.stretches], initial=0)
    pairs = zip(starts, step.stretches, strict=False)
    return tuple([stretch.pinning(size) if start >= step.before else stretch for start, stretch in pairs])
