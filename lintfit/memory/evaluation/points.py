"""The moments of an evaluation at which memory may peak."""

from __future__ import annotations

from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.components import components, plus
from lintfit.memory.engines.states import States
from lintfit.memory.evaluation import generating
from lintfit.memory.evaluation.batch import (
    Round,
    batch,
    copies_without_head,
    makes_logits_apart,
    makes_whole_logits,
)
from lintfit.memory.evaluation.graph import with_graph
from lintfit.memory.forward import bare_head
from lintfit.memory.loss.logits import head
from lintfit.memory.loss.preference import loss_path, sequences
from lintfit.memory.loss.returned import returned_item
from lintfit.memory.micro_batch.alive import layer_without_graph, most_without_graph, together
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.micro_batch.stream import stream_bytes
from lintfit.memory.result import Moment
from lintfit.memory.rollouts.rollout import layer_cache, rollout
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import local
from lintfit.memory.tensors.weights import parameter_count

GENERATION = "evaluation, generation"
ENCODED = "evaluation, images encoded"
ENCODER = "evaluation, the encoder"
LOGITS = "evaluation, logits"
GATHERED = "evaluation, logits gathered"


def points(spec: Spec, states: States, step: Step) -> list[Moment]:
    """Every candidate for the peak of an evaluation; none for a run that has none.

    Nothing is saved, dropped or checkpointed; adapters run and autocast copies weights as in training. One layer comes
    after the other, then the loss. ``step``: the training's micro-batch.
    """
    run = batch(spec, states, step)
    if run is None:
        return []
    left = left_of_training(spec, step, run)
    if run.evaluation.generates == "only":
        return answering(run, states, left)
    if run.evaluation.graph:
        return [with_graph(run, states, left)]
    step = run.step
    around = Live(step.inputs, run.waiting, copies_without_head(run))
    loss = at_the_loss(run).plus(Live(step.evaluated))
    found = [("evaluation", Live(step.inputs, run.waiting).plus(loss))]
    generates = run.evaluation.generates and run.evaluation.predictions != "none"
    layer = Live()
    if generates or most_without_graph(step) + earlier_states(step) + around.casts > loss.total:
        layer = layer_without_graph(run.spec, step, evaluating(step.recipe))
        found.append(("evaluation, a layer", around.plus(layer).plus(Live(earlier_states(step)))))
    if run.spec.images and run.spec.facts.vision is not None:
        found.append((ENCODED, Live(0, run.waiting).plus(encoded(run.spec))))
    if run.spec.encoded is not None:
        found.append((ENCODER, Live(0, run.waiting).plus(encoder_without_graph(run.spec))))
    if run.evaluation.predictions != "none" and makes_logits_apart(run.spec):
        found.append((LOGITS, logits_apart(run)))
    if run.keeps:
        found.append((GATHERED, Live(step.inputs, run.gathered)))
    result = [Moment(name, "evaluate", together(states.evaluate, alive, left)) for name, alive in found]
    if generates:
        held = plus(states.evaluate, components(communication_buffers=summoned(run.spec)))
        alive = Live(step.inputs + answers(run) + layer.activations, casts=copies_without_head(run))
        result.append(Moment(GENERATION, "evaluate", together(held, alive, left)))
    rolled = rollout(rolling_out(run.spec), states) if spec.generation is not None else ()
    return [*result, *(Moment(GENERATION, "evaluate", moment.components) for moment in rolled)]


def answering(run: Round, states: States, left: Live) -> list[Moment]:
    """The moments of an evaluation that only generates."""
    held = plus(states.evaluate, components(communication_buffers=summoned(run.spec)))
    found = [(generating.READING, generating.reading(run)), (generating.GENERATING, generating.generating(run))]
    if run.spec.images and run.spec.facts.vision is not None:
        found.append((ENCODED, encoded(run.spec)))
    if run.spec.encoded is not None:
        found.append((ENCODER, encoder_without_graph(run.spec)))
    return [Moment(name, "evaluate", together(held, alive, left)) for name, alive in found]


def left_of_training(spec: Spec, step: Step, run: Round) -> Live:
    """What the training loop's variable still holds: the evaluation's takes its place, where that is one of its own."""
    if spec.loop_outputs != "held":
        return NOTHING
    results = step.results()
    return Live(results.activations, max(0, results.logits - run.waiting))


def earlier_states(step: Step) -> int:
    """Bytes of the keys and values that the layers before the last one returned; its own are among its tensors."""
    return step.evaluated - step.evaluated_last


def encoded(spec: Spec) -> Live:
    """What is there while the images are encoded."""
    from lintfit.memory.micro_batch.vision.encoding import features

    return features(spec)


def encoder_without_graph(spec: Spec) -> Live:
    """What is there while an encoder reads, in front of what ``spec`` decodes."""
    from lintfit.memory.micro_batch.encoder_decoder import Encoder

    return Encoder(spec).without_graph()


def rolling_out(spec: Spec) -> Spec:
    """GRPO's evaluation generates for each of its batches by itself (``GRPOTrainer._prepare_inputs``)."""
    generation = replace(spec.generation, steps_per_generation=1) if spec.generation is not None else None
    return replace(spec, generation=generation, gradient_accumulation_steps=1)


def bare(run: Round) -> Live:
    """The head and the loss without a graph."""
    if not makes_whole_logits(run.spec):
        return run.step.head.bare
    spec, recipe = run.spec, run.step.recipe
    facts = local(language(spec.facts), spec.tensor_parallel)
    seq = spec.local_seq
    return head(facts, recipe, sequences(spec), seq, "full", stream=stream_bytes(facts, recipe)).bare


def at_the_loss(run: Round) -> Live:
    """The same with autocast's copies of weights, as far as they are there."""
    cached = copies_at_loss(run)
    if makes_whole_logits(run.spec):
        return bare(run).plus(Live(casts=cached))
    return bare_head(run.step, cached)


def logits_apart(run: Round) -> Live:
    """The end of that forward: the logits as the head makes them, beside autocast's copies of the weights; or, when
    these are gone, beside those that Accelerate hands on in fp32."""
    recipe = run.step.recipe
    given, item = returned_item(run.spec, recipe), 2 if recipe.autocast else recipe.weights
    half = run.made // given * item
    around = run.step.inputs + run.step.evaluated
    inside = Live(around + bare(run).activations, run.waiting + half, run.step.copies)
    outside = Live(around, run.waiting + half + (run.made if given != item else 0))
    return max(inside, outside, key=lambda live: live.total)


def copies_at_loss(run: Round) -> int:
    """The same at the loss: all of them where the head runs by itself."""
    fused = loss_path(run.spec) == "chunked" or (loss_path(run.spec) == "liger" and not makes_whole_logits(run.spec))
    return copies_without_head(run) if fused else run.step.copies


def answers(run: Round) -> int:
    """Bytes of the keys and values of all layers for the answers that are generated to a batch, of up to the sequence's
    length with its prompt; one layer's are there twice while the newest token is appended."""
    facts, recipe = language(run.spec.facts), run.step.recipe
    item = 2 if recipe.autocast else recipe.weights
    rows = sequences(run.spec) * run.evaluation.beams
    return (facts.layers + 1) * layer_cache(facts, item, rows * answered_tokens(run))


def answered_tokens(run: Round) -> int:
    """Tokens of a prompt with its answer: the sequence's length where nobody says more.

    A decoder keeps keys and values of its own tokens and of all that its encoder has read.
    """
    prompt, new = run.evaluation.prompt_len, run.evaluation.new_tokens
    if run.spec.encoded is not None:
        return run.spec.encoded.seq_len + (new or run.spec.seq_len)
    if prompt is None and new is None:
        return run.spec.seq_len
    return (prompt or run.spec.seq_len) + (new or generating.NEW_TOKENS)


def summoned(spec: Spec) -> int:
    """Bytes of the whole parameters, which FSDP 1 gathers to generate (``FSDP.summon_full_params``)."""
    if spec.engine != "fsdp" or (spec.fsdp is not None and spec.fsdp.version != 1):
        return 0
    return parameter_count(spec.facts) * (4 if spec.weights_dtype == "fp32" or spec.mixed_precision != "no" else 2)
