"""An evaluation between steps on a batch of its own, with what is kept of its logits for metrics.

Sources: transformers ``Trainer.evaluation_loop``, ``Trainer.prediction_step``, ``EvalLoopContainer``,
``Seq2SeqTrainer.prediction_step``; accelerate ``utils/operations.py:_gpu_gather``; TRL ``SFTTrainer.prediction_step``;
Liger ``transformers/model/*.py:lce_forward``.
"""

from __future__ import annotations

from lintfit.frozen import frozen, replace
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.recipe import Recipe, evaluating, of
from lintfit.memory.components import components, plus
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.engines.states import States
from lintfit.memory.forward import bare_head, forward
from lintfit.memory.loss.logits import head
from lintfit.memory.loss.losses import UPCAST_IN_MODEL, own_loss
from lintfit.memory.loss.preference import loss_path, sequences
from lintfit.memory.micro_batch.alive import layer_without_graph, most_without_graph, together
from lintfit.memory.micro_batch.autocast import head_copy
from lintfit.memory.micro_batch.language import language
from lintfit.memory.micro_batch.model_step import record_model, stream_bytes
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.recording import record
from lintfit.memory.result import HostMemory, Moment
from lintfit.memory.rollouts.rollout import rollout
from lintfit.memory.spec import GIB, Evaluation, Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.tensor_parallel import local, logit_parts
from lintfit.memory.tensors.weights import parameter_count
from lintfit.memory.versions import release, since

GRAPH = "evaluation, with its graph"
GENERATION = "evaluation, generation"
ENCODED = "evaluation, images encoded"
LOGITS = "evaluation, logits"
GATHERED = "evaluation, logits gathered"

SKIPS_LOGITS = (5, 15)
"""The first transformers whose ``prediction_step`` asks Liger for the loss alone; before, Liger made whole logits of
every batch that is not trained on (``skip_logits`` in ``lce_forward``)."""

SFT_SKIPS_LOGITS = (0, 29)
"""The first TRL whose SFT trainer does so."""

HOST_ITEM = 4
"""Bytes of a logit on the host: numpy knows no bf16 (``nested_numpify``)."""


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


def points(spec: Spec, states: States, step: Step) -> list[Moment]:
    """Every candidate for the peak of an evaluation; none for a run that has none.

    Nothing is saved, dropped or checkpointed; adapters run and autocast copies weights as in training. One layer comes
    after the other, then the loss. ``step``: the training's micro-batch.
    """
    run = batch(spec, states, step)
    if run is None:
        return []
    if run.evaluation.graph:
        return [with_graph(run, states)]
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
        found.append((ENCODED, Live(0, run.waiting, step.copies).plus(encoded(run.spec))))
    if run.evaluation.predictions != "none" and makes_logits_apart(run.spec):
        found.append((LOGITS, logits_apart(run)))
    if run.keeps:
        found.append((GATHERED, Live(step.inputs, run.gathered)))
    result = [Moment(name, "evaluate", together(states.evaluate, alive)) for name, alive in found]
    if generates:
        held = plus(states.evaluate, components(communication_buffers=summoned(run.spec)))
        alive = Live(step.inputs + answers(run) + layer.activations, casts=copies_without_head(run))
        result.append(Moment(GENERATION, "evaluate", together(held, alive)))
    rolled = rollout(rolling_out(run.spec), states) if spec.generation is not None else ()
    return [*result, *(Moment(GENERATION, "evaluate", moment.components) for moment in rolled)]


def with_graph(run: Round, states: States) -> Moment:
    """The forward of a batch with gradients on, beside the graph of the batch before where a variable holds it.

    Layers are checkpointed while they train alone (``GradientCheckpointingLayer``: ``self.training``), and nothing is
    dropped.
    """
    step = graph_of(run, states)
    largest = max(forward(states, step, step.kept()), key=lambda moment: moment.allocated)
    return Moment(GRAPH, "evaluate", together(dict(largest.components), earlier_graph(run, step)))


def graph_of(run: Round, states: States) -> Step:
    """What a batch saves with gradients on.

    Checkpointing over adapters has opened the embeddings' output for gradients (``enable_input_require_grads``), whose
    hook stays.
    """
    spec = graphed(run.spec)
    if run.spec.gradient_checkpointing is False or run.spec.method != "lora" or run.spec.images:
        return record(spec, states)
    return record_model(spec, states, inventory(spec), loss_path(spec), seen=True)


def graphed(spec: Spec) -> Spec:
    """The run as its evaluation makes a graph of it."""
    return replace(spec, gradient_checkpointing=False, lora_dropout=0.0, evaluation=None)


def earlier_graph(run: Round, step: Step) -> Live:
    """What the graph of the batch before keeps, and its logits, which the loop's variable still has."""
    if not run.in_variable:
        return Live()
    saved, tail = step.kept(), step.head.saved
    return Live(saved.activations + tail.activations, saved.logits + tail.logits + run.made, saved.casts + tail.casts)


def earlier_states(step: Step) -> int:
    """Bytes of the keys and values that the layers before the last one returned; its own are among its tensors."""
    return step.evaluated - step.evaluated // max(1, step.count - step.before)


def encoded(spec: Spec) -> Live:
    """What is there while the images are encoded."""
    from lintfit.memory.micro_batch.vision import features

    return features(spec)


def rolling_out(spec: Spec) -> Spec:
    """GRPO's evaluation generates for each of its batches by itself (``GRPOTrainer._prepare_inputs``)."""
    generation = replace(spec.generation, steps_per_generation=1) if spec.generation is not None else None
    return replace(spec, generation=generation, gradient_accumulation_steps=1)


def batch(spec: Spec, states: States, step: Step) -> Round | None:
    """One batch of the run's evaluation; None where there is none (PPO's trainer evaluates with what it rolls out)."""
    evaluation = spec.evaluation
    if evaluation is None or evaluation.batch_size == 0 or spec.trainer == "ppo":
        return None
    if spec.generation is not None:  # ``GRPOTrainer.prediction_step`` gives back the loss alone
        evaluation = replace(evaluation, predictions="none", generates=False)
    seen = replace(spec, micro_batch_size=evaluation.batch_size)
    counted = step if seen.micro_batch_size == spec.micro_batch_size else record(seen, states)
    made = logits_bytes(seen, counted.recipe)
    return Round(seen, counted, evaluation, made, made * spec.data_parallel)


def bare(run: Round) -> Live:
    """The head and the loss without a graph."""
    if not makes_whole_logits(run.spec):
        return run.step.head.bare
    spec, recipe = run.spec, run.step.recipe
    facts = local(language(spec.facts), spec.tensor_parallel)
    seq = -(-spec.seq_len // spec.sequence_parallel)
    return head(facts, recipe, sequences(spec), seq, "full", stream=stream_bytes(facts, recipe)).bare


def at_the_loss(run: Round) -> Live:
    """The same with autocast's copies of weights, as far as they are there."""
    cached = copies_at_loss(run)
    if makes_whole_logits(run.spec):
        return bare(run).plus(Live(casts=cached))
    return bare_head(run.step, cached)


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


def copies_without_head(run: Round) -> int:
    """Bytes of autocast's copies of the weights before the head makes its own, which a fused loss never does."""
    if not run.step.copies:
        return 0
    return max(0, run.step.copies - head_copy(inventory(run.spec)))


def copies_at_loss(run: Round) -> int:
    """The same at the loss: all of them where the head runs by itself."""
    fused = loss_path(run.spec) == "chunked" or (loss_path(run.spec) == "liger" and not makes_whole_logits(run.spec))
    return copies_without_head(run) if fused else run.step.copies


def logits_bytes(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the logits that the model gives back for a batch, on one rank."""
    if loss_path(spec) == "score":
        return 0
    tokens = sequences(spec) * -(-spec.seq_len // spec.sequence_parallel)
    return tokens * -(-spec.facts.vocab // logit_parts(spec)) * returned_item(spec, recipe)


def returned_item(spec: Spec, recipe: Recipe) -> int:
    """Bytes of a logit as the model gives it back: Accelerate hands autocast's on in fp32, models of transformers up to
    4.45 upcast them."""
    upcasts = recipe.transformers < UPCAST_IN_MODEL and not own_loss(spec.facts, recipe)
    return 4 if recipe.autocast or upcasts or recipe.upcast_head else recipe.weights


def answers(run: Round) -> int:
    """Bytes of the keys and values of all layers for the answers that are generated to a batch, of up to the sequence's
    length with its prompt; one layer's are there twice while the newest token is appended."""
    facts, recipe = language(run.spec.facts), run.step.recipe
    item = 2 if recipe.autocast else recipe.weights
    rows = sequences(run.spec) * run.evaluation.beams
    return (facts.layers + 1) * 2 * facts.kv_heads * facts.head_dim * item * rows * run.spec.seq_len


def summoned(spec: Spec) -> int:
    """Bytes of the whole parameters, which FSDP 1 gathers to generate (``FSDP.summon_full_params``)."""
    if spec.engine != "fsdp" or (spec.fsdp is not None and spec.fsdp.version != 1):
        return 0
    return parameter_count(spec.facts) * (4 if spec.weights_dtype == "fp32" or spec.mixed_precision != "no" else 2)


def _window(spec: Spec, evaluation: Evaluation) -> int:
    if evaluation.predictions == "gathered":
        return 1
    batches = None
    if evaluation.samples is not None:
        batches = -(-evaluation.samples // (evaluation.batch_size * spec.data_parallel))
    known = [steps for steps in (evaluation.accumulation_steps, batches) if steps is not None]
    return min(known, default=1)


def open_ended(spec: Spec) -> bool:
    """Whether the logits of the whole evaluation set stay on the GPU, and nobody says how many samples it has."""
    evaluation = spec.evaluation
    return (
        evaluation is not None
        and evaluation.predictions in ("kept", "listed")
        and not evaluation.generates
        and evaluation.batch_size > 0
        and evaluation.samples is None
        and evaluation.accumulation_steps is None
        and spec.generation is None
        and loss_path(spec) != "score"
    )


def without_end(spec: Spec) -> tuple[str, ...]:
    """A line where no estimate can say how much the GPU has to keep."""
    if not open_ended(spec):
        return ()
    if spec.evaluation is not None and spec.evaluation.graph:
        return ("the graphs of all batches of the evaluation, which nothing frees until it is over",)
    one = kept_of_a_sample(spec) / GIB
    return (
        f"the logits of all samples of the evaluation, which stay on the GPU until it is over: {one:.1f} GiB each, and "
        "how many there are is not stated",
    )


def kept_of_a_sample(spec: Spec) -> int:
    """Bytes of the logits of one sample, as the model gives them back."""
    return logits_bytes(replace(spec, micro_batch_size=1), of(spec))


def on_the_host(spec: Spec, host: HostMemory) -> HostMemory:
    """The host's memory with the logits that every rank keeps there, as far as the number of samples is known."""
    return replace(host, steady=host.steady + kept_on_host(spec))


def gathered_at_least(spec: Spec) -> int:
    """Bytes of logits on each rank where every one evaluates one sample at a time and none waits for the next."""
    ranks = spec.data_parallel
    return kept_of_a_sample(spec) * (ranks + 1 if ranks > 1 else 1)


def kept_on_host(spec: Spec) -> int:
    """Bytes of logits on one node's host; 0 where none are kept, or nobody says of how many samples."""
    evaluation = spec.evaluation
    if evaluation is None or evaluation.predictions != "kept" or evaluation.samples is None or evaluation.generates:
        return 0
    one = spec.seq_len * spec.facts.vocab * HOST_ITEM
    return evaluation.samples * one * (2 if evaluation.concat_batches else 1) * ranks_per_node(spec)


def assumptions(spec: Spec) -> tuple[str, ...]:
    """What the estimate takes of the evaluation, where that is more than a batch."""
    evaluation = spec.evaluation
    if evaluation is None or evaluation.batch_size == 0 or evaluation.predictions != "kept" or evaluation.generates:
        return ()
    one = spec.seq_len * spec.facts.vocab * HOST_ITEM / GIB
    if evaluation.samples is None and evaluation.accumulation_steps is not None:
        return (
            f"host memory without the evaluation's logits, {one:.1f} GiB for each sample on each rank "
            "(how many samples there are is not stated)",
        )
    return ()
