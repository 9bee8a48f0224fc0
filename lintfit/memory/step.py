"""What one micro-batch keeps in memory on one rank: every layer, the head, and what lies around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memory.activations import Kind, known, stretches
from lintfit.memory.activations.attention import mask_bytes
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.profile import Profile, profile, without_graph
from lintfit.memory.activations.recipe import Recipe, of
from lintfit.memory.activations.tape import rounded
from lintfit.memory.autocast import cached_copies
from lintfit.memory.gradients import sums_out_of_place
from lintfit.memory.kv_cache import checkpointed_states, forward_states
from lintfit.memory.language import language
from lintfit.memory.logits import Head, head
from lintfit.memory.parameters import Inventory
from lintfit.memory.preference import Path, scored, sequences
from lintfit.memory.spec import Spec
from lintfit.memory.states import States
from lintfit.memory.tensor_parallel import local
from lintfit.memory.versions import transformers_version

SORTED_EMBEDDING = 3072
"""Tokens above which the embedding's backward sorts (``embedding_dense_backward_cuda``)."""

LEARNED_POSITIONS = frozenset({"gpt2", "gpt_bigcode", "opt", "bloom"})
"""Model types without rotary embeddings."""

SCALED_EMBEDDINGS = frozenset(
    {"gemma", "gemma2", "gemma3", "gemma3_text", "granite", "granitemoe", "minicpm", "minicpm3"}
)
"""Model types that multiply the embeddings before the first layer (``embedding_multiplier``, ``normalizer``)."""

CHANGED_EMBEDDINGS = SCALED_EMBEDDINGS | LEARNED_POSITIONS | {"gpt_neo"}
"""The same, and those that add learned positions or norm them."""

INDEX = 8
"""Bytes of a token id (int64)."""

NOTHING = Live()


class Stretch(NamedTuple):
    """Layers of one kind that follow one another: how many, one's profile, and whether they are checkpointed."""

    length: int
    layer: Profile
    checkpointed: bool


@frozen
class Step:
    """What one micro-batch of a run saves: its layers in order, its head, and the embedding's side."""

    stretches: tuple[Stretch, ...]
    head: Head
    recipe: Recipe
    copies: int
    inputs: int
    front: int
    cached: int
    masks: int
    kept_share: float
    retained: bool
    offloaded: bool
    in_flight: int
    embedding_scratch: int
    out_of_place: bool
    waiting: int
    """Bytes of the head's gradient where it waits in the engine for the embedding's, which has the same weight."""
    last_graph: int
    """What the last iteration's graph still holds while this one's forward runs: LitGPT's loop keeps its loss."""
    notes: tuple[str, ...]
    exchanged: int = 0
    """Of ``front`` the buffers that a pipeline's stage receives activations or gradients in."""
    before: int = 0
    """Of ``layers``, those of the image encoder, which run first."""
    outputs: Live = NOTHING
    """What variables of the training loop hold of a micro-batch's results until the next one has its own, apart from
    what the layers' ``pinned`` and the head's ``lingering`` say."""
    earlier: Live = NOTHING
    """What is there in the forward only: results of the last micro-batch, and outputs in two dtypes."""

    @property
    def count(self) -> int:
        """How many layers there are."""
        return sum([stretch.length for stretch in self.stretches])

    @property
    def checkpoints(self) -> bool:
        """Whether any layer is checkpointed."""
        return any(stretch.checkpointed for stretch in self.stretches)

    @property
    def layers(self) -> tuple[Profile, ...]:
        """Every layer, in the order of the forward pass."""
        return tuple([stretch.layer for stretch in self.stretches for _ in range(stretch.length)])

    @property
    def checkpointed(self) -> tuple[bool, ...]:
        """Whether it is, of every layer."""
        return tuple([stretch.checkpointed for stretch in self.stretches for _ in range(stretch.length)])

    def keeps(self, stretch: Stretch) -> Live:
        """What each layer of a stretch keeps on the GPU from its forward to its backward."""
        if not stretch.checkpointed:
            return stretch.layer.saved
        return NOTHING if self.offloaded else Live(stretch.layer.input + stretch.layer.marked)

    def kept(self, before: int | None = None) -> Live:
        """What layers keep together: the first ones, up to a number, or all."""
        counts: dict[int, tuple[int, Stretch]] = {}
        for stretch in self.stretches:
            count = stretch.length if before is None else max(0, min(stretch.length, before))
            known = counts.get(id(stretch.layer))
            counts[id(stretch.layer)] = (count, stretch) if known is None else (known[0] + count, stretch)
            before = None if before is None else before - count
        parts = [[count * size for size in self.keeps(stretch)] for count, stretch in counts.values()]
        return Live(*map(sum, zip(*parts, strict=True)))

    def waits(self) -> int:
        """Bytes of :attr:`waiting` that are no gradient of this rank's own while the layers run backward."""
        return self.waiting - int(self.kept_share * self.waiting)

    def results(self) -> Live:
        """What the loop's variables hold once the backward is done; LitGPT's loop holds a graph, in ``last_graph``."""
        if self.outputs is NOTHING:
            return self.outputs
        return Live(self.outputs.activations + _pinned(self.stretches), self.outputs.logits + self.head.lingering)


def _pinned(stretches: Iterable[Stretch]) -> int:
    """Bytes of what layers keep beyond their backward, until the graph goes."""
    return sum([stretch.length * stretch.layer.pinned for stretch in stretches])


def record_model(spec: Spec, states: States, held: Inventory, path: Path, *, seen: bool = False) -> Step:
    """Count the layers, the head and the embedding of one model of a micro-batch, with its way through the loss.

    ``held``: all that is trained together. ``seen``: whether features of images that need a gradient are put in
    between the embeddings.
    """
    recipe = of(spec)
    facts = local(language(spec.facts), spec.tensor_parallel)
    batch, seq = sequences(spec), -(-spec.seq_len // spec.sequence_parallel)
    stream = stream_bytes(facts, recipe)
    kept = _kept(spec, states, held)
    checkpoints = spec.gradient_checkpointing is not False
    frozen_input = recipe.frozen and not seen and not checkpoints and (recipe.litgpt or not recipe.quantized)
    embedded = embedding_bytes(recipe)

    def one(index: int, stream: int = stream, flows: bool = True) -> Profile:
        return profile(
            facts,
            recipe,
            batch,
            seq,
            index,
            stream=stream,
            flows=flows,
            checkpointed=checkpoints,
            selective=spec.gradient_checkpointing == "selective",
            reentrant=spec.use_reentrant,
            kept=kept,
        )

    counted: dict[Kind, Profile] = {}
    layers: list[Stretch] = []
    count = -(-facts.layers // spec.pipeline_parallel)
    for kind, start, length in stretches(facts):
        if start >= count:
            break
        if kind not in counted:
            counted[kind] = one(start)
        layers.append(Stretch(min(length, count - start), counted[kind], checkpoints))
    if frozen_input or embedded != stream:
        first = Stretch(1, one(0, stream=embedded, flows=not frozen_input), checkpoints)
        rest = layers[0]._replace(length=layers[0].length - 1)
        layers[:1] = [first, rest] if rest.length else [first]
    some = scored(spec, seq)
    part = some if some < seq else None
    last = spec.pipeline_stage == "last"
    tail = head(facts, recipe, batch, seq, path, stream=stream, kept=kept, scored=part)
    if spec.pipeline_stage == "first":
        tail = NO_HEAD
    tokens = batch * seq
    exchanged = _exchanged(spec, tokens * facts.hidden * stream)
    rope = 0 if facts.model_type in LEARNED_POSITIONS else 2 * rounded(seq * facts.head_dim * stream)
    if recipe.litgpt:
        rope = 2 * rounded(seq * (facts.rotary_dim or facts.head_dim) * 4)
    trains_embedding = any(w.role == "embedding" for w in held.trainables)
    notes = () if known(facts) else (f"activations of {facts.model_type} follow the nearest architecture's layer",)
    if spec.facts.vision is not None and spec.images is None:
        notes = (*notes, "activations of the vision tower (the spec does not say how many images a sample has)")
    return Step(
        stretches=tuple(layers),
        head=tail,
        recipe=recipe,
        copies=0 if spec.engine == "fsdp" else cached_copies(recipe, held),
        inputs=rounded(tokens * INDEX),
        front=rope
        + exchanged
        + _triangles(facts)
        + _embedding_dropout(facts, recipe, tokens, checkpoints)
        + _input_leaf(spec, checkpoints, tokens, embedded),
        cached=checkpointed_states(spec, tokens, stream) if checkpoints else 0,
        masks=_masks(facts, recipe, batch, seq, stream),
        kept_share=kept,
        retained=checkpoints and _retains_inputs(spec),
        offloaded=spec.activation_offload,
        in_flight=1 if last else min(spec.pipeline_parallel, spec.gradient_accumulation_steps),
        embedding_scratch=_embedding_scratch(tokens, facts.hidden, stream) if trains_embedding and not last else 0,
        waiting=tail.weights if trains_embedding and facts.tied and spec.pipeline_stage is None else 0,
        last_graph=tail.pinned + _pinned(layers) if recipe.litgpt else 0,
        out_of_place=trains_embedding and facts.tied and spec.pipeline_stage is None and sums_out_of_place(spec),
        exchanged=exchanged,
        notes=notes,
        earlier=NOTHING if checkpoints else Live(forward_states(spec, facts, recipe, tokens, stream)),
    )


NO_HEAD = Head(NOTHING, NOTHING, NOTHING, NOTHING, 0, NOTHING)
"""The head of a stage that has none."""


def _exchanged(spec: Spec, size: int) -> int:
    """Bytes of what a stage receives, one buffer of ``size`` bytes for each micro-batch.

    torch makes the buffers of all micro-batches beforehand (``pipelining/stage.py:_prepare_forward_infra``), DeepSpeed
    one, and at least two, for every micro-batch in flight (``pipe/schedule.py:TrainSchedule.num_pipe_buffers``).
    """
    if spec.pipeline_stage is None or spec.pipeline_parallel == 1:
        return 0
    flying = 1 if spec.pipeline_stage == "last" else min(spec.pipeline_parallel, spec.gradient_accumulation_steps)
    count = max(2, flying) if spec.engine == "deepspeed" else spec.gradient_accumulation_steps
    return count * rounded(size)


def without_gradients(spec: Spec, recipe: Recipe) -> int:
    """Bytes at the worst point of any layer's forward pass without gradients."""
    facts = local(language(spec.facts), spec.tensor_parallel)
    batch, seq = sequences(spec), -(-spec.seq_len // spec.sequence_parallel)
    stream = stream_bytes(facts, recipe)
    first = {kind: start for kind, start, _ in reversed(stretches(facts))}
    return max(without_graph(facts, recipe, batch, seq, index, stream=stream) for index in first.values())


def stream_bytes(facts: ModelFacts, recipe: Recipe) -> int:
    """Bytes of an element of the residual stream.

    A quantised linear layer gives back the dtype that it was given: where the norms are fp32, or run in fp32 because
    autocast has LayerNorm do so, what the MLP adds to the stream is fp32, and the stream with it (bitsandbytes
    ``Linear4bit.forward``, ``out.to(inp_dtype)``). So does a norm at the end of a layer (OPT-350m).
    """
    ends = facts.model_type == "opt" and not facts.config.get("do_layer_norm_before", True)
    behind = recipe.autocast and facts.norm == "layernorm" and (recipe.quantized or ends)
    upcast = recipe.upcast_norms or behind
    return 4 if upcast else recipe.weights


def embedding_bytes(recipe: Recipe) -> int:
    """Bytes of an element of the embeddings' output, which the first layer takes."""
    return 4 if recipe.upcast_head else recipe.weights


def _kept(spec: Spec, states: States, held: Inventory) -> float:
    """The share of a parameter gradient that stays with the rank once it is made."""
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    return min(1.0, max(0.0, grown / held.trainable_bytes)) if held.trainable_bytes else 0.0


def _retains_inputs(spec: Spec) -> bool:
    """FSDP 1 over frozen layers with reentrant checkpointing: no layer's input dies before the backward ends.

    ``_register_post_backward_reshard_only_hook`` keeps a hook on the detached input of every frozen unit, and the
    hook its gradient accumulator, until ``_post_backward_final_callback``: input and gradient stay.
    """
    first = spec.fsdp is None or spec.fsdp.version == 1
    return spec.engine == "fsdp" and first and spec.method == "lora" and spec.use_reentrant


OPENS_EVERY_INPUT = (5, 0)
"""The first transformers whose ``gradient_checkpointing_enable`` calls ``enable_input_require_grads`` for every model
that takes ids; before, it did so only for adapters of transformers' own loader."""


def opens_inputs(spec: Spec) -> bool:
    """Whether checkpointing over a frozen base makes the embeddings' output a leaf that needs a gradient.

    Reentrant checkpointing works with nothing else, so that PEFT, TRL or the script see to it; since
    ``OPENS_EVERY_INPUT`` transformers does so for either kind.
    """
    if spec.method != "lora" or spec.gradient_checkpointing is False:
        return False
    version = transformers_version(spec)
    return spec.use_reentrant or (version >= OPENS_EVERY_INPUT and spec.front_end != "litgpt")


def _input_leaf(spec: Spec, checkpoints: bool, tokens: int, item: int) -> int:
    """The embeddings' output where it is a leaf (:func:`opens_inputs`) and not the first layer's input.

    A leaf stays as long as the graph; a model that scales it or adds positions keeps both. The fms runs of PowerLM-3b
    with LoRA (Granite) show it: 2h bytes a token.
    """
    kind = language(spec.facts).model_type
    inside = kind in SCALES_ITSELF and (kind.startswith("gemma3") or transformers_version(spec) >= (5, 0))
    scaled = kind in CHANGED_EMBEDDINGS and not inside
    return rounded(tokens * spec.facts.hidden * item) if scaled and checkpoints and opens_inputs(spec) else 0


def _triangles(facts: ModelFacts) -> int:
    """Bytes of boolean causal masks over all positions, which old models hold as buffers: one, or one a layer."""
    count = {"gpt_bigcode": 1, "gpt_neo": facts.layers}.get(facts.model_type, 0)
    return count * rounded((facts.max_positions or 0) ** 2) if count else 0


SCALES_ITSELF = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
"""Model types whose embedding is a module that scales its own output (``Gemma3TextScaledWordEmbedding``), Gemma 1 and 2
since transformers 5."""


def _masks(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    windows = {window for (window, _), _, _ in stretches(facts)}
    bites = any(window is not None and seq >= window for window in windows)
    return mask_bytes(recipe, len(windows), bites, batch, seq, item)


def _embedding_dropout(facts: ModelFacts, recipe: Recipe, tokens: int, checkpoints: bool) -> int:
    """The mask of GPT-2's dropout behind the embeddings (one byte an element).

    Frozen ones have a gradient only where checkpointing over adapters asks for one.
    """
    if recipe.frozen and not checkpoints:
        return 0
    rate = facts.config.get("embd_pdrop", 0.1 if facts.model_type in ("gpt2", "gpt_bigcode") else 0.0)
    return rounded(tokens * facts.hidden) if rate and recipe.dropout else 0


def _embedding_scratch(tokens: int, hidden: int, item: int) -> int:
    """The embedding's incoming gradient, and above 3072 tokens fp32 rows and sorted indices.

    ``aten/src/ATen/native/cuda/Embedding.cu``: the sorting kernel sums rows in fp32 and holds six int64 a token.
    """
    scratch = tokens * hidden * item
    return scratch + (tokens * (4 * hidden + 6 * INDEX) if tokens > SORTED_EMBEDDING else 0)
