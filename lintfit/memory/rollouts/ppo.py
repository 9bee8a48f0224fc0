"""TRL's PPO: policy and value model trained as one module, and the rounds of generation and scoring before.

Read in TRL 0.12 to 1.12 (``trainer/ppo_trainer.py``, later ``experimental/ppo/ppo_trainer.py``; 1.14 has none any
more); ``PPOTrainer.train`` of 1.12 itself runs under fake tensors in ``bench/fake_ppo.py``.
"""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memory.activations.attention import repeats
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.kinds import running
from lintfit.memory.activations.profile import Profile, without_graph
from lintfit.memory.activations.recipe import Recipe, of
from lintfit.memory.activations.tape import rounded
from lintfit.memory.components import components, plus
from lintfit.memory.engines.states import States
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.micro_batch.model_step import record_model
from lintfit.memory.micro_batch.step import Step, Stretch
from lintfit.memory.micro_batch.stream import stream_bytes
from lintfit.memory.result import Components, Moment
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.parameters import inventory, model_dtype
from lintfit.memory.tensors.weights import value_facts

SCORES = 4
"""Bytes of a generated token's scores, an entry (``generate`` copies them to fp32)."""

STATISTICS = 3
"""Copies of the response's logits for the entropy: their softmax, and inside ``logsumexp`` what is left of them without
their maximum, and its exponentials (``aten/src/ATen/native/ReduceOps.cpp:logsumexp_out_impl``)."""


def both(spec: Spec, states: States) -> Step:
    """One micro-batch of policy and value model: the value model runs first, and its backward last.

    Gradient checkpointing is the policy's: nobody turns it on for the value model
    (``PolicyAndValueWrapper.gradient_checkpointing_enable``). Both models return every layer's input and, where they
    do not checkpoint, a key-value cache; the loop's ``output`` holds the policy's until the next one is there.
    """
    held = inventory(spec)
    policy = record_model(spec, states, held, loss_path(spec))
    critic = record_model(_critic(spec), states, held, "score")
    results = _Results.of(spec, policy)
    others = _Results.of(_critic(spec), critic)
    tail = critic.head
    between = Profile(0, tail.saved, tail.head, tail.weights, 0), _embedding(spec, policy)
    stretches = (
        *critic.stretches,
        *(Stretch(1, part, False) for part in between),
        *(stretch.pinning(results.pinned) for stretch in policy.stretches),
    )
    scores = _entries(spec) * (4 if policy.recipe.autocast else policy.recipe.weights)
    logits = _logits(spec, policy.recipe) + (scores if loss_path(spec) == "ppo-whole" else 0)
    head = policy.head
    earlier = results.originals + max(0, others.loose - (results.loose if results.originals else 0))
    stale = micro_batches(spec) > 1
    kept = results.loose + results.pinned * policy.count
    outputs = Live(results.loose, rolled(spec) + (scores if stale else 0))
    return replace(
        policy,
        stretches=stretches,
        head=replace(head, head=head.head.plus(Live(logits=logits)), lingering=logits),
        inputs=policy.inputs + critic.inputs,
        front=policy.front + critic.front,
        opening_casts=policy.opening_casts + critic.opening_casts,
        masks=policy.masks + critic.masks,
        buffers=policy.buffers + critic.buffers,
        embedding_scratch=critic.embedding_scratch,
        out_of_place=False,
        outputs=outputs,
        earlier=outputs.plus(Live(earlier + (kept if stale else 0), logits if stale else 0)),
        notes=tuple(dict.fromkeys((*policy.notes, *critic.notes))),
    )


def layer_of(spec: Spec, index: int) -> tuple[ModelFacts, Recipe, int]:
    """Of a step's layer its model, how that is run, and its number there; -1 for what lies between the models."""
    value, policy = language(value_facts(spec)), language(spec.facts)
    first = running(value)
    if index < len(first):
        return value, of(_critic(spec)), first[index]
    rest = index - len(first) - BETWEEN
    return policy, of(spec), running(policy)[rest] if rest >= 0 else -1


BETWEEN = 2
"""What stands between the value model's layers and the policy's: the norm and score of one, the other's embedding."""


def _critic(spec: Spec) -> Spec:
    """The value model's step on its own."""
    return replace(spec, facts=value_facts(spec), method="full", gradient_checkpointing=False)


class _Results:
    """What one model's outputs hold of a micro-batch, in bytes.

    ``loose``: what no layer saves. ``pinned``: what a layer saves, a layer. ``originals``: half-precision tensors
    that are there while Accelerate makes fp32 copies of them (``convert_outputs_to_fp32``).
    """

    def __init__(self, loose: int, pinned: int, originals: int) -> None:
        self.loose = loose
        self.pinned = pinned
        self.originals = originals

    @classmethod
    def of(cls, spec: Spec, step: Step) -> _Results:
        facts, recipe = spec.facts, step.recipe
        tokens, item = spec.tokens, stream_bytes(facts, recipe)
        layer, checkpointed = step.stretches[0].layer, step.stretches[0].checkpointed
        one = rounded(tokens * facts.hidden * item)
        saves = layer.keeps_input or checkpointed
        final = recipe.trains("lm_head") and not (recipe.autocast and (item == 4 or facts.norm == "layernorm"))
        loose = pinned = originals = 0
        if recipe.autocast and item == 2:
            loose = rounded(tokens * facts.hidden * 4) * (facts.layers + 1)
            originals = one * ((0 if saves else facts.layers) + (not final))
        else:
            loose = one * ((0 if saves else facts.layers) + (not final))
            pinned = one if saves else 0
        if not checkpointed:
            cache = 2 * rounded(tokens * facts.kv_heads * facts.head_dim * item)
            if repeats(facts, recipe) or (recipe.autocast and item == 4):
                loose += cache * facts.layers
            else:
                pinned += cache
        return cls(loose, pinned, originals)


def _embedding(spec: Spec, policy: Step) -> Profile:
    """The backward of the policy's embedding, before the value model's: a tied one adds to the head's gradient."""
    held = [w for w in inventory(spec).trainables if w.role == "embedding" and not w.name.startswith("value_model.")]
    if not held:
        return Profile(0, Live(), Live(), 0, 0)
    size = rounded(max(weight.storage for weight in held))
    if not spec.facts.tied:
        stays = int(size * policy.kept_share)
        return Profile(0, Live(), Live(temporaries=policy.embedding_scratch + size - stays, gradients=stays), size, 0)
    waiting = size * (2 if policy.out_of_place else 1)
    scratch = max(0, policy.embedding_scratch - (waiting // 2 if policy.out_of_place else 0))
    return Profile(0, Live(), Live(temporaries=waiting + scratch), 0, 0)


def micro_batches(spec: Spec) -> int:
    """Micro-batches between which the loop keeps its variables: those of a mini-batch."""
    parts = spec.generation.mini_batches if spec.generation is not None else 1
    return -(-spec.gradient_accumulation_steps // parts)


def batch(spec: Spec) -> int:
    """Sequences that a rank generates for one update (``local_batch_size``)."""
    return spec.micro_batch_size * spec.gradient_accumulation_steps


def response(spec: Spec) -> int:
    """Tokens of a response."""
    return min(spec.seq_len, spec.generation.completion_len) if spec.generation is not None else spec.seq_len


def rolled(spec: Spec) -> int:
    """Bytes of the scores of all generated tokens, which the loop's ``logitss`` holds until the next ones are there."""
    return SCORES * batch(spec) * response(spec) * spec.facts.vocab


def _entries(spec: Spec) -> int:
    return spec.micro_batch_size * response(spec) * spec.facts.vocab


def _logits(spec: Spec, recipe: Recipe) -> int:
    """Bytes of a micro-batch's logits as ``output`` holds them."""
    return rounded(spec.tokens * spec.facts.vocab * (4 if recipe.autocast else recipe.weights))


def rounds(spec: Spec, states: States, step: Step) -> tuple[Moment, ...]:
    """Generation and scoring, and the statistics behind each micro-batch.

    Nothing of these runs under autocast: the loop calls the models themselves. ``generate`` returns the scores of every
    token, which are stacked, and the stacks of all chunks put together; the last update's are there until then.
    """
    rolls, size = rolled(spec), DTYPE_BYTES[model_dtype(spec)]
    at_once = min(batch(spec), spec.generation.rollout_batch_size if spec.generation is not None else batch(spec))
    recipe = replace(step.recipe, autocast=False, weights=size)
    policy, value = spec.facts, value_facts(spec)
    tokens = at_once * spec.seq_len
    state = rounded(tokens * policy.hidden * size)
    cache = 2 * rounded(tokens * policy.kv_heads * policy.head_dim * size) * policy.layers
    chunk = rolls // batch(spec) * at_once
    prompt = _forward(policy, recipe, at_once, max(1, spec.seq_len - response(spec)))
    layer = _forward(policy, recipe, at_once, spec.seq_len)
    judged = rounded(tokens * value.hidden * size) * value.layers + _forward(value, recipe, at_once, spec.seq_len)
    whole = loss_path(spec) == "ppo-whole"
    logits = tokens * policy.vocab * size + (
        chunk // SCORES * size if whole else 2 * response(spec) * policy.vocab * size
    )
    gathered = {"communication_buffers": gathered_bytes(spec)}

    def generating(name: str, activations: int, scores: int) -> Moment:
        return Moment(name, "evaluate", plus(plus(states.evaluate, gathered), _running(activations, scores)))

    def scoring(name: str, activations: int, scores: int) -> Moment:
        return Moment(name, "evaluate", plus(states.evaluate, _running(activations, rolls + scores)))

    results = step.results()
    statistics = STATISTICS * (4 if step.recipe.autocast else step.recipe.weights) * _entries(spec)
    return (
        generating("prompts read", prompt + cache, 2 * rolls - chunk),
        generating("generation", cache, 2 * rolls + chunk),
        generating("scores put together", 0, 3 * rolls),
        scoring("reference scores, last layer", state * policy.layers + cache + layer, 0),
        scoring("reference scores, logits", state * (policy.layers + 1) + cache, logits),
        scoring("values", judged, chunk if whole else 0),
        Moment("statistics", "step", plus(states.forward, _running(results.activations, results.logits + statistics))),
    )


def _running(activations: int, logits: int) -> Components:
    return components(activations=activations, logits=logits)


def gathered_bytes(spec: Spec) -> int:
    """Bytes of policy and value model gathered to generate (``ds3_gather_for_generation``)."""
    if not spec.gathers_to_generate:
        return 0
    held = inventory(spec)
    return (held.trainable + held.frozen) * DTYPE_BYTES[model_dtype(spec)]


def _forward(facts: ModelFacts, recipe: Recipe, sequences: int, seq: int) -> int:
    """Bytes of one layer's forward pass without gradients."""
    return (
        without_graph(facts, recipe, sequences, seq, 0, stream=stream_bytes(facts, recipe)).peak(sequences, seq).total
    )
