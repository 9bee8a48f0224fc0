"""Terms of the moments inside the layers: the forward of one, and the backward of all."""

from __future__ import annotations

from lintfit.memory.explain.passing import (
    BESIDE,
    CACHED,
    TAPE,
    Pass,
    below,
    casts,
    fixed,
    forward,
    ingredients,
    kept,
    per_token,
    returned,
)
from lintfit.memory.explain.term import Term, term
from lintfit.memory.forward import embedded
from lintfit.memory.micro_batch.alive import copies_by, without_gradients
from lintfit.memory.moments import worst_layer
from lintfit.memory.result import Moment

LOOP = "the embeddings' output, in a variable of the model's loop"


def index_of(moment: Moment) -> int:
    """The layer whose forward a moment is in."""
    return int(moment.name.removeprefix("layer ").removesuffix(", forward"))


def passed(run: Pass, index: int) -> list[Term]:
    """A layer's forward: what it and those before it keep, and what its operations have beside it."""
    layer, count = run.step.layers[index], index + 1
    passing = max(0, layer.forward - layer.saved.total)
    what = f"tensors of layer {index} on their way"
    return [
        *forward(run, count=count, inside=True),
        term("activations", LOOP, embedded(run.step, index) + run.step.named_result(index)),
        term("activations", f"{BESIDE}, which no layer saves", run.step.named - run.step.named_saved),
        term("temporaries", what, passing, *per_token(run, passing), source=TAPE),
        *(casts(run, head=False) if count == run.step.count else []),
    ]


def in_the_last_norm(run: Pass) -> list[Term]:
    """The forward of the norm behind the last layer."""
    step = run.step
    size = max(0, step.last_norm)
    return [
        *forward(run, inside=True),
        term("activations", LOOP, embedded(step, step.count) + step.named_result(step.count)),
        term("activations", f"{BESIDE}, which no layer saves", step.named - step.named_saved),
        term("temporaries", "tensors of the last norm", size, *per_token(run, size), source=TAPE),
        *casts(run, head=False),
    ]


def checkpointed(run: Pass) -> list[Term]:
    """The last layer's forward under checkpointing, beside the attention weights that the one before gave back."""
    step = run.step
    working = without_gradients(run.spec, step.recipe)
    size = working.activations - step.layers[-1].input
    what = "one layer's tensors, and the attention weights that the layer before gave back"
    return [
        *kept(run, step.count),
        *fixed(run, masks=True),
        returned(run),
        term("activations", what, size, *per_token(run, size), source=TAPE),
        term("temporaries", "half-precision copies of the weights (autocast)", copies_by(step, working), source=CACHED),
    ]


def layer(run: Pass) -> list[Term]:
    """The layer at whose backward most is alive."""
    step = run.step
    worst = worst_layer(step, step.kept())
    if worst is None:
        return []
    index = worst[0]
    layers = step.layers
    layer, number = layers[index], f"layer {index}"
    done = layers[index + 1 :]
    found = [*kept(run, index), *below(run, gone=step.gone(index)), *_loop(run)]
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
    embedding = step.embedded if index < step.before else 0
    share = int(step.kept_share * (step.head.weights + sum(part.weights for part in done) + embedding))
    what = f"gradients of the head and of {len(done)} layers whose backward is done"
    if step.kept_share != 1:
        what += f" ({step.kept_share:.2f} of each stays on the rank)"
    what += ", and of the embedding, which was looked up behind the images" if embedding else ""
    found.append(term("gradients", what, share))
    waiting = step.waits_at(index)
    found.append(term("temporaries", f"gradients that wait for what lies before {number}", waiting))
    found.append(term("gradients", f"gradients of {number}", peak.gradients))
    pinned = "inputs of 4-bit products above, which the graph holds (bitsandbytes up to 0.43.1)"
    if run.spec.loop_outputs != "dropped":
        pinned = "keys and values of the layers above, which the loop's variable holds"
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


def layer_end(run: Pass) -> list[Term]:
    """The first norm of a layer's backward under FSDP 1 with adapters, when the layer below has been fetched."""
    step = run.step
    index = 1 if step.retained else step.count - 1
    layer = step.layers[index]
    found = [*kept(run, index), *below(run), *_loop(run)]
    if step.checkpointed[index]:
        found.append(term("activations", f"the input of layer {index}", layer.input))
    found.append(term("activations", "the norm's input in fp32", 2 * layer.input, (2, "times"), (layer.input, "bytes")))
    what = "gradients of the norm's input and of the stream"
    found.append(term("temporaries", what, 2 * layer.input, (2, "gradients"), (layer.input, "bytes")))
    if step.retained:
        found += _retained(sum(part.input for part in step.layers[index + 1 :]))
    return found


def embedding(run: Pass) -> list[Term]:
    """The embedding's backward, the last of all."""
    step = run.step
    waiting = run.states.backward_end.get("temporaries", 0) if step.out_of_place else 0
    size = max(0, step.embedding_scratch - waiting // 2)
    what = "the embedding's incoming gradient, and fp32 rows above 3072 tokens"
    return [term("temporaries", what, size, source="torch aten/src/ATen/native/cuda/Embedding.cu")]
