"""A model of an encoder and a decoder: what the encoder adds to the decoder's step, which is counted like any other.

The encoder reads ``seq_len`` tokens and runs first; its backward comes after the decoder's. Every layer of the decoder
attends to its states. Source: transformers ``modeling_t5.py``.
"""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.attention import mask_bytes
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.kinds import stretches
from lintfit.memory.activations.profile import Profile, counted, recorded, without_graph
from lintfit.memory.activations.recipe import ALIGNED, Beside, Recipe, evaluating, of
from lintfit.memory.activations.t5 import masks_in_biases
from lintfit.memory.activations.tape import INDEX, rounded
from lintfit.memory.engines.states import States
from lintfit.memory.loss.logits import norm_forward
from lintfit.memory.loss.preference import loss_path, sequences
from lintfit.memory.micro_batch.aside import keeps_input
from lintfit.memory.micro_batch.embedding import DROPOUT, LEAF, NORM, SUMMANDS, drops, scratch
from lintfit.memory.micro_batch.halves import halves
from lintfit.memory.micro_batch.layers import gives_gradient, layers_of, waiting_beside
from lintfit.memory.micro_batch.model import model_of
from lintfit.memory.micro_batch.model_step import kept_share, record_model
from lintfit.memory.micro_batch.step import Step, Stretch
from lintfit.memory.micro_batch.stream import Shape, embedding_bytes, stream_bytes
from lintfit.memory.micro_batch.vision.step import handed_over
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import FrozenParts
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.tensor_parallel import local

MASK = 8
"""Bytes of a token in the mask that comes with a batch (int64)."""


def both_halves(spec: Spec, states: States) -> Step:
    """One micro-batch of the decoder that ``spec`` describes, with its encoder in front."""
    encoder, held = Encoder(spec), inventory(spec)
    kept = kept_share(spec, states, held)
    layers = encoder.layers(kept)
    beside = encoder.beside(flows=gives_gradient(layers))
    step = record_model(spec, states, held, loss_path(spec), beside=beside)
    own, zeros = encoder.biases(spec.seq_len, spec.seq_len), encoder.zeros(spec.seq_len)
    saved = zeros if encoder.saves_zeros else 0
    again = encoder.biases(encoder.seq, encoder.seq) if encoder.checkpoints and encoder.facts.layers > 1 else 0
    words = encoder.embedding_gradient() if step.embedding_scratch else 0
    waits = (own if encoder.trains_biases else 0) + (zeros if beside.opens else 0)
    decoder = waiting_beside(list(step.stretches), _waiting(step.count, waits, encoder.answers_all))
    between = (*handed_over(spec, step.recipe), *_looked_up_before(words, step))
    front = (*layers, encoder.end(kept, flows=beside.flows), *between)
    return replace(
        step,
        stretches=(*front, *decoder),
        before=sum(part.length for part in front),
        inputs=step.inputs + encoder.inputs(),
        front=step.front + saved + again + encoder.mask() + encoder.opening(),
        opening=step.opening + again + encoder.opening(),
        masks=step.masks + own + zeros - saved,
        let_go=(*step.let_go, *_let_go(encoder, own, zeros, saved)),
        answered=step.answered + encoder.answered(kept=keeps_input(step.recipe, encoder.item, "k", "v")),
        answered_bare=step.answered + encoder.states(),
        last_norm=norm_forward(
            encoder.decoder, step.recipe, encoder.shape.batch, spec.seq_len, stream=encoder.shape.stream
        ),
        summands=encoder.summands(spec.seq_len),
        embedding_scratch=scratch(encoder.tokens, spec.facts.hidden, encoder.shape.stream) + words if words else 0,
        embedded=0 if spec.facts.tied else words,
        words_again=words,
    )


def _looked_up_before(words: int, step: Step) -> tuple[Stretch, ...]:
    """The backward of the decoder's embedding, which comes before the encoder's: the gradient of the table, ``words``
    bytes, and where it is added to the head's, the sum."""
    if not words:
        return ()
    made = words * (2 if step.out_of_place else 1)
    return (Stretch(1, Profile(0, Live(), Live(temporaries=made), 0, 0), False),)


def _let_go(encoder: Encoder, own: int, zeros: int, saved: int) -> tuple[tuple[int, int], ...]:
    """What the decoder's layers share, which is gone when the encoder runs backward; or when the first of them does,
    which non-reentrant checkpointing has make it once more."""
    if not encoder.checkpoints:
        return ((0, saved),)
    return ((0, own + zeros),) if encoder.spec.use_reentrant else ((1, own), (0, zeros))


def _waiting(layers: int, size: int, zeros: bool) -> tuple[int, ...]:
    """Bytes of a gradient that the last of so many layers makes and the others add to, as it waits beside each;
    ``zeros``: the last adds to it as well."""
    return (*[size] * (layers - 1), size if zeros else 0)


class Encoder:
    """The encoder of one micro-batch; ``spec`` is its decoder's. All sizes are bytes of one rank."""

    def __init__(self, spec: Spec) -> None:
        found = halves(spec.facts)
        assert found is not None
        assert spec.encoded is not None
        self.spec, self.padded = spec, spec.encoded.padded
        self.recipe: Recipe = replace(of(spec), padded=self.padded)
        self.facts, self.decoder = (local(half, spec.tensor_parallel) for half in found)
        self.model = replace(
            model_of(spec),
            facts=self.facts,
            how=frame(self.facts),
            recipe=self.recipe,
            lookup=self.recipe,
            left=FrozenParts(),
            stream=stream_bytes(self.facts, self.recipe),
            embedded=embedding_bytes(self.recipe),
        )
        how = self.model.own.halves
        assert how is not None
        self.how = how
        self.seq = -(-spec.encoded.seq_len // spec.sequence_parallel)
        self.shape = Shape(sequences(spec), self.seq, self.model.stream)
        self.tokens = self.shape.batch * self.seq
        self.checkpoints = self.model.checkpoints
        # LayerNorm, which ends all halves but T5's, runs in fp32 under autocast.
        wide = self.recipe.upcast_norms or (self.recipe.autocast and self.facts.norm == "layernorm")
        self.item = 4 if wide else self.recipe.weights

    @property
    def answers_all(self) -> bool:
        """Whether the gradient of what a layer gives back is made of zeros where nobody takes it: reentrant
        checkpointing is a function of autograd's own, and T5's layers give their biases back."""
        return self.checkpoints and self.spec.use_reentrant

    @property
    def trains_biases(self) -> bool:
        """Whether the biases of positions have a gradient: reentrant checkpointing asks for one of all that a layer
        gives back."""
        return self.how.biased and (self.answers_all or self.recipe.trains("relative_attention_bias"))

    @property
    def saves_zeros(self) -> bool:
        """Whether SDPA takes the decoder's biases over the encoder's states as they are."""
        return self.recipe.attention == "sdpa" and not self.padded and self.seq % ALIGNED == 0

    def layers(self, kept: float) -> list[Stretch]:
        """Its layers, in which the gradient of the biases waits for each but the last."""
        words = any(weight.words for weight in inventory(self.spec).trainables)
        found = layers_of(self.spec, self.model, self.shape, kept, flows=words or self.model.opens)
        found = [replace(part, length=1) for part in found for _ in range(part.length)]
        size = self.biases(self.seq, self.seq) if self.trains_biases else 0
        return waiting_beside(found, _waiting(self.facts.layers, size, self.answers_all))

    def end(self, kept: float, *, flows: bool) -> Stretch:
        """The norm and the dropout behind them."""
        t = Layer(self.facts, self.recipe, batched=self.shape.batch > 1)
        x = t.new(self.facts.hidden, self.shape.stream, flows)
        form = recorded(t, x, self.how.ending(t, x))
        return Stretch(1, counted(form, self.shape.batch, self.seq, kept=kept), False)

    def beside(self, *, flows: bool) -> Beside:
        """What the decoder's layers attend to."""
        eager = self.recipe.attention == "eager"
        item = (self.recipe.weights if eager else 1) if self.padded else 0
        return Beside(self.seq, self.item, flows, item, hands_in=False, opens=self.checkpoints and self.how.biased)

    def biases(self, rows: int, columns: int) -> int:
        """Biases that all layers of a half share."""
        if not self.how.biased:
            return 0
        several = self.shape.batch if masks_in_biases(self.recipe) else 1
        return rounded(several * self.facts.heads * rows * columns * self.recipe.weights)

    def zeros(self, rows: int) -> int:
        """The decoder's biases over the encoder's states, in the queries' dtype."""
        if not self.how.biased:
            return 0
        several = self.shape.batch if masks_in_biases(self.recipe) else 1
        item = 2 if self.recipe.autocast else self.recipe.weights
        return rounded(several * self.facts.heads * rows * self.seq * item)

    def mask(self) -> int:
        """The mask of its own tokens, as far as layers or checkpoints keep it."""
        # Trained biases are picked by it; of a boolean mask itself SDPA makes a copy in every layer.
        picks = self.recipe.attention == "sdpa" and self.trains_biases
        if not self.padded or not (self.checkpoints or picks):
            return 0
        return mask_bytes(self.recipe, 1, False, self.shape.batch, self.seq, self.recipe.weights)

    def answered(self, *, kept: bool) -> int:
        """The last states, which the model gives back: as they are where nothing in the decoder ``kept`` them, and in
        fp32 where Accelerate hands on what comes out of autocast so."""
        copied = self.recipe.autocast and self.recipe.upcast_outputs and self.item == 2
        return (0 if kept else self.states()) + (rounded(self.tokens * self.facts.hidden * 4) if copied else 0)

    def states(self) -> int:
        """Its last states."""
        return rounded(self.tokens * self.facts.hidden * self.item)

    def inputs(self) -> int:
        """The tokens that it reads with their mask, and the labels, which the decoder's tokens are a copy of."""
        mask = rounded(self.tokens * MASK) if self.padded else 0
        return rounded(self.tokens * INDEX) + mask + rounded(self.shape.batch * self.spec.seq_len * INDEX)

    def opening(self) -> int:
        """The mask of the dropout behind its embeddings, and these where they are a leaf."""
        return sum(feature.around(self.model, self.shape).graphed for feature in (DROPOUT, LEAF, NORM))

    def embeddings(self, seq: int) -> int:
        """The words' embeddings for so many tokens of each sequence."""
        return rounded(self.shape.batch * seq * self.facts.hidden * self.model.embedded)

    def summands(self, seq: int) -> int:
        """What the decoder has names for while its layers run, where their input is another tensor: the words'
        embeddings, and learned positions, looked up once for all sequences."""
        if not self.model.how.learned:
            return self.embeddings(seq) if drops(self.model) else 0
        return self.embeddings(seq) + rounded(seq * self.facts.hidden * self.model.embedded)

    def embedding_gradient(self) -> int:
        """The gradient of the table of words, made a second time for the words that the encoder reads."""
        return rounded(self.facts.vocab * self.facts.hidden * self.recipe.weights)

    def without_graph(self) -> Live:
        """The worst layer where nothing is trained, with what stands beside it; ``casts``: autocast's copies by
        then."""
        recipe = evaluating(self.recipe)
        words = max(self.embeddings(self.seq), SUMMANDS.around(self.model, self.shape).summands)
        if self.model.how.learned:  # an encoder looks positions up for every sequence
            words = 2 * self.embeddings(self.seq)
        around = self.inputs() + words + self.biases(self.seq, self.seq)
        found = Live()
        for _, start, _ in stretches(self.facts):
            form = without_graph(self.facts, recipe, self.shape.batch, self.seq, start, stream=self.shape.stream)
            alive = form.peak(self.shape.batch, self.seq)
            copies = self.facts.layers * form.cached(self.shape.batch, self.seq) if recipe.autocast else 0
            found = max(found, Live(around + alive.activations, casts=copies), key=lambda live: live.total)
        return found
