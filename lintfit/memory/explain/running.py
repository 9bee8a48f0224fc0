"""Terms of what a micro-batch adds to the states: activations, logits, temporaries of the passes."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memory.activations import family, kinds
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.litgpt import layer as litgpt_layer
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.activations.tape import ACTIVATION, rounded
from lintfit.memory.embedding import INDEX, dropout_mask, input_leaf
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.model_step import embedding_bytes
from lintfit.memory.moments import beside_the_graph, embedded, layer_without_graph, worst_layer
from lintfit.memory.parameters import model_dtype
from lintfit.memory.ppo import layer_of
from lintfit.memory.preference import Path, loss_path, scored, sequences
from lintfit.memory.recording import record
from lintfit.memory.result import Moment
from lintfit.memory.rollout import cache_bytes, generated
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.states import States
from lintfit.memory.step import Step
from lintfit.memory.tensor_parallel import local

TAPE = "docs/memory.md, Activations"


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
    facts = local(spec.facts, spec.tensor_parallel)
    seq = -(-spec.seq_len // spec.sequence_parallel)
    return Pass(spec, states, record(spec, states), facts, sequences(spec), seq)


def terms(run: Pass, moment: Moment) -> list[Term]:
    """What stands beside the states at a moment; nothing at load, initialization and save."""
    if run.spec.trainer != "ppo":
        return _passes(run, moment)
    from lintfit.memory.explain import ppo

    held = ppo.held(run.spec, run.step, moment.name)
    return [*_passes(run, moment), *held, *ppo.rounds(run.spec, run.states, run.step, moment)]


def _passes(run: Pass, moment: Moment) -> list[Term]:
    step = run.step
    if moment.in_evaluation and run.spec.evaluation is not None:
        from lintfit.memory.explain import evaluating as own_batch

        return own_batch.terms(run, moment)
    match moment.name:
        case "loss, forward":
            tail = step.head
            return [
                *_forward(run),
                *head_terms(
                    run, Live(*map(sum, zip(tail.saved, tail.forward, strict=True))), "the head and the loss", True
                ),
                *_casts(run, head=True),
            ]
        case "reference, forward":
            return _beside(run)
        case "images encoded":
            from lintfit.memory.vision import features

            what = "pixels, and one layer of the image encoder"
            return [term("activations", what, features(run.spec).activations, source=TAPE)]
        case "loss, backward":
            return [*_kept(run, step.count), *_below(run), *head_terms(run, step.head.loss, "the loss's backward")]
        case "head, backward":
            return [*_kept(run, step.count), *_below(run), *head_terms(run, step.head.head, "the head's backward")]
        case "end of backward":
            return [*inputs(run), *_embedding(run)]
        case "evaluation" | "evaluation, a layer":
            return _evaluation(run, moment)
        case "generation":
            return _generation(run) if run.spec.trainer != "ppo" else []
    if moment.name.endswith(", end of its backward"):
        return _layer_end(run)
    if moment.name.endswith(", forward"):
        return _last_layer(run)
    return _layer(run) if moment.name.startswith("layer ") else []


def per_token(run: Pass, size: int) -> tuple[Factor, Factor]:
    """Bytes as so many for each token of the pass."""
    return (size / run.tokens, "bytes a token"), (run.tokens, "tokens")


def _kept(run: Pass, count: int, *, copies: int = 1) -> list[Term]:
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
    found = []
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
        return "a part of the image encoder"
    index -= run.step.before
    if run.spec.trainer == "ppo":
        facts, recipe, index = layer_of(run.spec, index)
        if index < 0:
            return "a norm or an embedding"
    window, _ = kinds(facts)[index]
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


def inputs(run: Pass) -> list[Term]:
    """The batch that the forward takes."""
    if run.spec.trainer == "ppo":
        return [term("activations", "the batch, for policy and value model", run.step.inputs)]
    factors = ((INDEX, "bytes"), (run.tokens, "token ids"))
    ids = rounded(INDEX * run.tokens)
    pixels = term("activations", "pixels of the images", run.step.inputs - ids)
    return [term("activations", "the batch", ids, *factors), pixels]


def _fixed(run: Pass, *, masks: bool) -> list[Term]:
    step = run.step
    dropout = dropout_mask(run.facts, step.recipe, run.tokens, step.checkpoints)
    factors = ((run.facts.hidden, "bytes"), (run.tokens, "tokens"))
    leaf = input_leaf(run.spec, step.checkpoints, run.tokens, embedding_bytes(step.recipe))
    images = _image_leaf(run) if step.before else 0
    found = [
        *inputs(run),
        term(
            "activations",
            "cos and sin of the rotary embedding, causal masks in buffers",
            step.front - dropout - leaf - images - step.exchanged,
        ),
        term("activations", "buffers that the stage receives in", step.exchanged, source="torch pipelining/stage.py"),
        term("activations", "the text embeddings' output beside the copy that images go into", images),
        term("activations", "the embeddings' output, made a leaf (enable_input_require_grads)", leaf),
        term("activations", "mask of the dropout behind the embeddings", dropout, *factors),
    ]
    if masks:
        found.append(term("activations", "attention mask", step.masks, source="transformers masking_utils.py"))
    return found


def _image_leaf(run: Pass) -> int:
    from lintfit.memory.vision import image_leaf

    return image_leaf(run.spec, run.step.recipe)


def _below(run: Pass) -> list[Term]:
    """What lives throughout the backward; further micro-batches in flight in a pipeline."""
    step = run.step
    found = _fixed(run, masks=step.checkpoints)
    if step.in_flight > 1:
        for item in _kept(run, step.count, copies=step.in_flight - 1):
            what = f"{step.in_flight - 1} further micro-batches in the pipeline: {item.what}"
            found.append(Term(item.component, what, item.size, item.factors, item.over, item.source))
    return found


def head_terms(run: Pass, live: Live, where: str, forward: bool = False, path: Path | None = None) -> list[Term]:
    """The final norm, the head and the loss at one point; ``path``: the loss's, where it is not the training's."""
    found = [term("activations", f"final norm and input of the head at {where}", live.activations, source=TAPE)]
    path = path or loss_path(run.spec)
    vocabulary = 1 if path == "score" else -(-run.facts.vocab // run.step.recipe.logit_parts)
    entries = run.scored * vocabulary
    factors = ((live.logits / entries, "bytes"), (run.scored, "tokens"), (vocabulary, "vocabulary entries"))
    copies = "copies of the logits and their log-softmax" if path in ("full", "selective") else "logits"
    source = {"full": "transformers loss/loss_utils.py", "selective": "TRL trainer/utils.py"}.get(path, "")
    found.append(term("logits", f"{copies} at {where}", live.logits, *factors, source=source))
    if live.casts and not forward:
        found.append(term("temporaries", "half-precision copy of the head (autocast)", live.casts))
    found.append(term("temporaries", f"gradients and scratch at {where}", live.temporaries))
    found.append(term("gradients", f"parameter gradients made at {where}", live.gradients))
    return found


def _forward(run: Pass) -> list[Term]:
    """What is there at the end of the layers' forward."""
    step = run.step
    return [
        *_kept(run, step.count),
        *_fixed(run, masks=True),
        term("activations", "the last iteration's graph, which the loop's loss holds", step.last_graph),
        term("activations", "keys and values that the model returns (use_cache)", step.cached + _returned(run)),
    ]


def _returned(run: Pass) -> int:
    """Keys and values of a vision-language model that no layer saves; PPO's results have terms of their own."""
    return 0 if run.spec.trainer == "ppo" else run.step.earlier.activations


def _last_layer(run: Pass) -> list[Term]:
    """The last layer's forward: what all layers keep, and what the last one's operations have beside it."""
    layers = run.step.layers
    passing = layers[-1].forward - layers[-1].saved.total
    what = f"tensors of layer {len(layers) - 1} on their way"
    return [
        *_forward(run),
        term("activations", "the embeddings' output, in a variable of the model's loop", embedded(run.step)),
        term("temporaries", what, passing, *per_token(run, passing), source=TAPE),
        *_casts(run, head=False),
    ]


def _casts(run: Pass, *, head: bool) -> list[Term]:
    """Autocast's cache, as far as the graph does not keep the same copies."""
    step = run.step
    kept = step.kept().casts
    saved = step.head.saved.casts
    found = [term("temporaries", "half-precision copy of the head (autocast)", saved)] if saved and head else []
    cache = step.copies - kept - saved
    if cache > 0:
        what = "half-precision copies of trained fp32 weights until autocast ends"
        factors = ((2, "bytes"), (cache / 2, "weights"))
        found.append(term("temporaries", what, cache, *factors, source="torch autocast_mode.cpp cached_cast"))
    return found


def _layer(run: Pass) -> list[Term]:
    """The layer at whose backward most is alive."""
    step = run.step
    worst = worst_layer(step, step.kept())
    if worst is None:
        return []
    index = worst[0]
    layers = step.layers
    layer, number = layers[index], f"layer {index}"
    done = layers[index + 1 :]
    found = [*_kept(run, index), *_below(run), *_loop(run)]
    if step.checkpointed[index]:
        copies = 2 if step.offloaded else 1
        factors = ((copies, "inputs"), *per_token(run, layer.input))
        what = f"the input of {number}" + (" and of the next, fetched ahead" if copies > 1 else "")
        found.append(term("activations", what, copies * layer.input, *factors))
        found.append(term("activations", f"what selective checkpointing keeps of {number}", layer.marked))
    how = "recomputed and saved" if step.checkpointed[index] else "saved"
    what = f"{how} tensors of {number} at the worst point of its backward: {ingredients(run, index)}"
    peak = layer.peak
    found.append(term("activations", what, peak.activations, *per_token(run, peak.activations), source=TAPE))
    found.append(term("logits", f"in {number}", peak.logits))
    found.append(term("temporaries", f"half-precision copies of the weights of {number} (autocast)", peak.casts))
    what = f"gradients on their way through {number} and its kernels' scratch"
    found.append(term("temporaries", what, peak.temporaries, *per_token(run, peak.temporaries), source=TAPE))
    share = int(step.kept_share * (step.head.weights + sum(part.weights for part in done)))
    what = f"gradients of the head and of {len(done)} layers whose backward is done"
    if step.kept_share != 1:
        what += f" ({step.kept_share:.2f} of each stays on the rank)"
    found.append(term("gradients", what, share))
    found.append(term("gradients", f"gradients of {number}", peak.gradients))
    pinned = "inputs of 4-bit products above, which the graph holds (bitsandbytes up to 0.43.1)"
    if run.spec.trainer == "ppo":
        pinned = "inputs and key-value cache of the layers above, which the loop's output holds"
    found.append(term("activations", pinned, sum(part.pinned for part in done)))
    if step.retained and done:
        found += _retained(sum(part.input for part in done), layer.output)
    return found


def _loop(run: Pass) -> list[Term]:
    """What the head's graph and the loop's variable hold while the layers run backward (LitGPT)."""
    tail = run.step.head
    return [
        term("activations", "inputs of the 4-bit head, which the graph holds", tail.pinned),
        term("logits", "logits that the training loop still holds", tail.lingering),
        term("temporaries", "the head's gradient, which waits for the embedding's (one weight)", run.step.waits()),
    ]


def _retained(size: int, shared: int = 0) -> list[Term]:
    """Inputs and gradients of the layers above that FSDP 1 holds on to; one gradient is the one that comes in."""
    what = "inputs of the layers above that FSDP 1's hooks hold (frozen layers, reentrant checkpointing)"
    source = "torch/distributed/fsdp/_runtime_utils.py _register_post_backward_reshard_only_hook"
    gradients = "gradients of those inputs" + (", but the one that comes in" if shared else "")
    return [
        term("activations", what, size, source=source),
        term("temporaries", gradients, size - shared, source=source),
    ]


def _layer_end(run: Pass) -> list[Term]:
    """The first norm of a layer's backward under FSDP 1 with adapters, when the layer below has been fetched."""
    step = run.step
    index = 1 if step.retained else step.count - 1
    layer = step.layers[index]
    found = [*_kept(run, index), *_below(run), *_loop(run)]
    if step.checkpointed[index]:
        found.append(term("activations", f"the input of layer {index}", layer.input))
    found.append(term("activations", "the norm's input in fp32", 2 * layer.input, (2, "times"), (layer.input, "bytes")))
    what = "gradients of the norm's input and of the stream"
    found.append(term("temporaries", what, 2 * layer.input, (2, "gradients"), (layer.input, "bytes")))
    if step.retained:
        found += _retained(sum(part.input for part in step.layers[index + 1 :]))
    return found


def _embedding(run: Pass) -> list[Term]:
    step = run.step
    waiting = run.states.backward_end.get("temporaries", 0) if step.out_of_place else 0
    size = max(0, step.embedding_scratch - waiting // 2)
    what = "the embedding's incoming gradient, and fp32 rows above 3072 tokens"
    return [term("temporaries", what, size, source="torch aten/src/ATen/native/cuda/Embedding.cu")]


def _beside(run: Pass) -> list[Term]:
    """The reference's forward beside the policy's graph."""
    step, tail = run.step, run.step.head
    copies = step.copies if run.spec.method == "full" else 0
    source = "TRL does not freeze it; torch autocast_mode.cpp cached_cast"
    beside = beside_the_graph(run.spec, step)
    what = "the reference's states and logits" if beside is tail.bare else "one layer's tensors of the reference"
    return [
        *_kept(run, step.count),
        *_fixed(run, masks=step.checkpoints),
        term("activations", what, beside.activations, source=TAPE),
        *head_terms(run, Live(tail.saved.activations, tail.saved.logits + beside.logits), "both heads", True),
        *(
            [term("temporaries", "half-precision copy of the policy's head", tail.saved.casts)]
            if tail.saved.casts
            else []
        ),
        *_graph_casts(step),
        term("temporaries", "half-precision copies of the reference's weights (autocast)", copies, source=source),
    ]


def _graph_casts(step: Step) -> list[Term]:
    size = step.kept().casts
    return [term("temporaries", "half-precision copies of weights that the policy's graph keeps", size)] if size else []


def _evaluation(run: Pass, moment: Moment) -> list[Term]:
    """The loss without a graph, or one layer."""
    step = run.step
    found = [
        *inputs(run),
        term("temporaries", "half-precision copies of the weights (autocast)", step.copies, source=CACHED),
    ]
    if moment.name == "evaluation":
        bare = step.head.bare
        found += head_terms(run, Live(0, bare.logits), "the loss")
        return [*found, term("activations", "what the head takes", bare.activations)]
    layer = layer_without_graph(run.spec, step, evaluating(step.recipe)).activations
    around = step.front + step.masks
    what = "one layer's tensors, and the embeddings' output"
    return [
        *found,
        term("activations", "tables and masks that all layers share", around),
        term("activations", what, layer - around, *per_token(run, layer - around), source=TAPE),
    ]


CACHED = "torch autocast_mode.cpp cached_cast"


def _generation(run: Pass) -> list[Term]:
    spec, facts = run.spec, run.spec.facts
    generation = spec.generation
    if generation is None:
        return []
    item = DTYPE_BYTES[model_dtype(spec)]
    found = []
    if generation.gather_weights:
        factors = ((item, "bytes"), (facts.parameters, "parameters"))
        what = "all weights gathered to generate"
        found.append(term("communication_buffers", what, item * facts.parameters, *factors))
    if generation.vllm_gpu_memory_utilization:
        if generation.vllm_sleeps:
            share = generation.vllm_gpu_memory_utilization
            card = spec.capacity_bytes or 0
            parts = ((share, "vllm_gpu_memory_utilization"), (card, "bytes of the card"))
            found.append(term("temporaries", "a colocated vLLM, awake", int(share * card), *parts))
        return found
    numbers = (2, facts.layers + 1, facts.kv_heads, facts.head_dim, item, generated(spec), spec.seq_len)
    units = ("keys and values", "layers, one of them twice", "key-value heads", "head size", "bytes")
    named = zip(numbers, (*units, "sequences generated at once", "tokens"), strict=True)
    found.append(
        term("activations", "the key-value cache", cache_bytes(spec), *named, source="transformers cache_utils.py")
    )
    return found
