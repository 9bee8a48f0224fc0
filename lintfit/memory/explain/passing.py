"""A micro-batch of a run, and the terms that several moments of its passes share."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.frozen import frozen
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.families import family
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.kinds import kinds, running
from lintfit.memory.activations.litgpt import layer as litgpt_layer
from lintfit.memory.activations.tape import ACTIVATION, INDEX, rounded
from lintfit.memory.engines.states import States
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.forward import at_the_loss
from lintfit.memory.loss.preference import FROM_WHOLE, Path, loss_path, scored, sequences
from lintfit.memory.micro_batch.embedding import DROPOUT, LEAF
from lintfit.memory.micro_batch.model import model_of, shape_of
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.recording import record
from lintfit.memory.rollouts.ppo import layer_of
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import local

TAPE = "docs/memory.md, Activations"

BESIDE = "the images' states beside the text, what they were projected from, and their mask"

ANSWERED = "the images' features, which the model gives back beside the loss"

CACHED = "torch autocast_mode.cpp cached_cast"


@frozen
class Pass:
    """One micro-batch of a run: what was recorded, and how many tokens and scored tokens a rank has."""

    spec: Spec
    states: States
    step: Step
    facts: ModelFacts
    batch: int
    seq: int

    @property
    def tokens(self) -> int:
        return self.batch * self.seq

    @property
    def scored(self) -> int:
        return self.batch * scored(self.spec, self.seq)


def micro_batch(spec: Spec, states: States) -> Pass:
    """The micro-batch of a run."""
    facts = local(language(spec.facts), spec.tensor_parallel)
    seq = spec.local_seq
    return Pass(spec, states, record(spec, states), facts, sequences(spec), seq)


def encoded(run: Pass) -> list[Term]:
    """The images while they become features without a graph."""
    from lintfit.memory.micro_batch.vision.encoding import features

    what, alive = "pixels, and one layer of the image encoder, or what makes features", features(run.spec)
    copies = term("temporaries", "half-precision copies of the weights (autocast)", alive.casts, source=CACHED)
    return [term("activations", what, alive.activations, source=TAPE), copies]


def encoded_with_graph(run: Pass) -> list[Term]:
    """The encoder's last layer, beside what those before keep and a mask that no graph does."""
    from lintfit.memory.micro_batch.vision.encoding import with_graph

    alive = with_graph(run.spec, run.step) or Live()
    return [
        term("activations", "pixels, the image encoder's graph and its mask", alive.activations, source=TAPE),
        term("temporaries", "half-precision copies of the encoder's weights (autocast)", alive.casts, source=CACHED),
    ]


def per_token(run: Pass, size: int) -> tuple[Factor, Factor]:
    """Bytes as so many for each token of the pass."""
    return (size / run.tokens, "bytes a token"), (run.tokens, "tokens")


def inputs(run: Pass) -> list[Term]:
    """The batch that the forward takes."""
    if run.spec.trainer == "ppo":
        return [term("activations", "the batch, for policy and value model", run.step.inputs)]
    factors = ((INDEX, "bytes"), (run.tokens, "token ids"))
    ids = rounded(INDEX * run.tokens)
    pixels = term("activations", "pixels of the images", run.step.inputs - ids)
    return [term("activations", "the batch", ids, *factors), pixels]


def fixed(run: Pass, *, masks: bool, gone: int = 0) -> list[Term]:
    """What is there throughout a pass, whatever the layers keep; ``gone``: bytes of masks that are not any more."""
    step = run.step
    model = model_of(run.spec)
    dropout, leaf = (feature.around(model, shape_of(run.spec, model)).graphed for feature in (DROPOUT, LEAF))
    factors = ((run.facts.hidden, "bytes"), (run.tokens, "tokens"))
    images = _image_leaf(run) if step.before else 0
    found = [
        *inputs(run),
        term(
            "activations",
            "cos and sin of the rotary embedding, masks that layers keep",
            step.front - dropout - leaf - images - step.exchanged,
        ),
        term("activations", "buffers that the stage receives in", step.exchanged, source="torch pipelining/stage.py"),
        term("activations", "the text embeddings' output beside the copy that images go into", images),
        term("activations", "the embeddings' output, made a leaf (enable_input_require_grads)", leaf),
        term("activations", "mask of the dropout behind the embeddings", dropout, *factors),
    ]
    if masks:
        found.append(
            term(
                "activations",
                "attention mask, tables that no layer keeps",
                step.masks - gone,
                source="transformers masking_utils.py",
            )
        )
    return found


def _image_leaf(run: Pass) -> int:
    from lintfit.memory.micro_batch.vision.step import image_leaf

    return image_leaf(run.spec, run.step.recipe)


def kept(run: Pass, count: int, *, copies: int = 1) -> list[Term]:
    """What the first ``count`` layers keep until their backward, layers that keep the same together."""
    groups: dict[tuple[Live, bool], int] = {}
    first: dict[tuple[Live, bool], int] = {}
    layers = run.step.layers
    start = 0
    for stretch in run.step.stretches:
        number = max(0, min(stretch.length, count - start))
        if number:
            key = (run.step.keeps(stretch), stretch.checkpointed)
            groups[key] = groups.get(key, 0) + number
            first.setdefault(key, start)
        start += stretch.length
    what = "half-precision copy of the weight in front of the layers that the graph keeps (autocast)"
    found = [term("temporaries", what, copies * run.step.opening_casts)] if run.step.opening_casts else []
    for (live, checkpointed), number in groups.items():
        number *= copies
        marked = layers[first[(live, checkpointed)]].marked
        also = " and what selective checkpointing keeps" if marked else ""
        what = f"layer inputs{also}, kept by gradient checkpointing" if checkpointed else ""
        what = what or f"saved for the backward: {ingredients(run, first[(live, checkpointed)])}"
        factors: tuple[Factor, ...] = ((number, "layers"), *per_token(run, live.activations))
        found.append(term("activations", what, number * live.activations, *factors, source=TAPE))
        if live.casts:
            what = "half-precision copies of the weights that the graph keeps (autocast)"
            factors = ((number, "layers"), (live.casts, "bytes"))
            found.append(term("temporaries", what, number * live.casts, *factors, source="torch autocast_mode.cpp"))
        if live.logits:
            found.append(term("logits", "kept by the layers", number * live.logits))
    return found


def ingredients(run: Pass, index: int) -> str:
    """What one layer saves, as multiples of the model's widths in bytes a token: ``8 × 8,192 (hidden, 2 bytes)``."""
    facts, recipe = run.facts, run.step.recipe
    if index < run.step.before:
        return "a part of the image encoder, or what it hands over"
    index -= run.step.before
    if run.spec.trainer == "ppo":
        facts, recipe, index = layer_of(run.spec, index)
        if index < 0:
            return "a norm or an embedding"
    else:
        index = running(facts, beside=recipe.beside is not None)[index]
    window = kinds(facts)[index].window
    slides = window is not None and run.seq >= window
    t = Layer(facts, recipe, batched=run.batch > 1, slides=slides)
    x = t.new(facts.hidden, recipe.weights)
    (litgpt_layer if recipe.litgpt else family(facts))(t, x, index)
    counts: dict[int, int] = {}
    for storage in t.saved():
        if storage.kind == ACTIVATION:
            each = round(storage.size(run.batch, run.seq) / run.tokens)
            counts[each] = counts.get(each, 0) + 1
    names = _widths(run)
    parts = []
    for each in sorted(counts, reverse=True):
        name = names.get(each)
        parts.append(f"{counts[each]} × {each:,}" + (f" ({name})" if name else ""))
    return " + ".join(parts) + " bytes a token in a layer"


def _widths(run: Pass) -> dict[int, str]:
    """Names of the sizes that a layer's tensors have, in bytes a token."""
    facts = run.facts
    attention, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    found: dict[int, str] = {}
    widths = (
        (facts.hidden, "hidden"),
        (facts.intermediate, "MLP"),
        (attention, "heads"),
        (keys, "key-value heads"),
        (facts.heads * run.seq, "attention matrix"),
    )
    for width, name in widths:
        for item, dtype in ((2, "16 bit"), (4, "fp32"), (1, "mask")):
            found.setdefault(width * item, f"{name}, {dtype}")
    if run.step.recipe.lora is not None:
        lora = run.step.recipe.lora
        found.setdefault(lora.rank * lora.item, "LoRA's rank")
        found.setdefault(lora.rank * 2, "LoRA's rank, 16 bit")
    found.setdefault(4, "fp32 statistic")
    found.setdefault(4 * facts.heads, "logsumexp")
    return found


def below(run: Pass, *, gone: int = 0) -> list[Term]:
    """What lives throughout the backward; further micro-batches in flight in a pipeline. ``gone``: see
    :func:`fixed`."""
    step = run.step
    found = fixed(run, masks=step.checkpoints, gone=gone + step.untaken)
    if step.in_flight > 1:
        for item in kept(run, step.count, copies=step.in_flight - 1):
            what = f"{step.in_flight - 1} further micro-batches in the pipeline: {item.what}"
            found.append(Term(item.component, what, item.size, item.factors, item.over, item.source))
    return found


def forward(run: Pass, *, count: int | None = None, inside: bool = False) -> list[Term]:
    """What is there at the end of the forward of the first ``count`` layers, or all; ``inside``: still within the last
    of them."""
    step = run.step
    return [
        *kept(run, step.count if count is None else count),
        *fixed(run, masks=inside or step.checkpoints, gone=0 if inside else step.untaken),
        term("activations", "the last iteration's graph, which the loop's loss holds", step.last_graph),
        returned(run),
    ]


def returned(run: Pass) -> Term:
    """Keys and values of this micro-batch that no layer saves; PPO's results have terms of their own."""
    held = run.step.earlier if run.spec.loop_outputs == "dropped" else run.step.outputs
    size = 0 if run.spec.trainer == "ppo" else held.activations
    return term("activations", "keys and values that the model returns (use_cache)", run.step.cached + size)


def casts(run: Pass, *, head: bool) -> list[Term]:
    """Autocast's cache, as far as the graph does not keep the same copies."""
    step = run.step
    kept = step.kept().casts
    saved = step.head.saved.casts
    found = [term("temporaries", "half-precision copy of the head (autocast)", saved)] if saved and head else []
    cache = (at_the_loss(step, step.kept()).casts if head else step.cast) - kept - saved
    if cache > 0:
        what = "half-precision copies of trained fp32 weights until autocast ends"
        factors = ((2, "bytes"), (cache / 2, "weights"))
        found.append(term("temporaries", what, cache, *factors, source="torch autocast_mode.cpp cached_cast"))
    return found


def head_terms(run: Pass, live: Live, where: str, *, forward: bool = False, path: Path | None = None) -> list[Term]:
    """The final norm, the head and the loss at one point; ``path``: the loss's, where it is not the training's."""
    found = [term("activations", f"final norm and input of the head at {where}", live.activations, source=TAPE)]
    path = path or loss_path(run.spec)
    vocabulary = 1 if path == "score" else -(-run.facts.vocab // run.step.recipe.logit_parts)
    entries = run.scored * vocabulary
    factors = ((live.logits / entries, "bytes"), (run.scored, "tokens"), (vocabulary, "vocabulary entries"))
    copies = "copies of the logits and their log-softmax" if path == "full" or path in FROM_WHOLE else "logits"
    sources = {"full": "transformers loss/loss_utils.py", **dict.fromkeys(FROM_WHOLE, "TRL trainer/utils.py")}
    sources["tempered"] = "torchtune rlhf/sequence_processing.py"
    source = sources.get(path, "")
    found.append(term("logits", f"{copies} at {where}", live.logits, *factors, source=source))
    if live.casts and not forward:
        found.append(term("temporaries", "half-precision copy of the head (autocast)", live.casts))
    found.append(term("temporaries", f"gradients and scratch at {where}", live.temporaries))
    found.append(term("gradients", f"parameter gradients made at {where}", live.gradients))
    return found
