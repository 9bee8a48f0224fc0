"""Terms of what runs without a graph: the reference model, an evaluation on the training's batch, generation."""

from __future__ import annotations

from lintfit.memory.activations.form import Live
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.engines import merging
from lintfit.memory.explain.passing import BESIDE, CACHED, TAPE, Pass, fixed, head_terms, inputs, kept, per_token
from lintfit.memory.explain.term import Term, term
from lintfit.memory.forward import bare_head
from lintfit.memory.micro_batch.alive import layer_without_graph
from lintfit.memory.moments import beside_the_graph, head_cast
from lintfit.memory.result import Moment
from lintfit.memory.rollouts.rollout import cache_bytes, generated, merged_for_vllm, selected_experts
from lintfit.memory.spec import DTYPE_BYTES
from lintfit.memory.tensors.parameters import model_dtype

SELECTED = "copies of the experts that the newest tokens go to, in one layer"
EXPERTS = "transformers integrations/moe.py:batched_mm_experts_forward"


def reference(run: Pass) -> list[Term]:
    """The reference's forward beside the policy's graph."""
    step, tail = run.step, run.step.head
    beside = beside_the_graph(run.spec, step)
    copies = beside.casts + (step.cast if run.spec.method == "full" else 0)
    source = "TRL does not freeze it; torch autocast_mode.cpp cached_cast"
    what = "the reference's states and logits" if beside is tail.bare else "one layer's tensors of the reference"
    return [
        *kept(run, step.count),
        *fixed(run, masks=step.checkpoints),
        term("activations", what, beside.activations, source=TAPE),
        *head_terms(
            run,
            Live(tail.saved.activations, tail.saved.logits + beside.logits, temporaries=beside.temporaries),
            "both heads",
            forward=True,
        ),
        *(
            [term("temporaries", "half-precision copy of the policy's head", tail.saved.casts)]
            if tail.saved.casts
            else []
        ),
        term("temporaries", "half-precision copies of the reference's weights (autocast)", copies, source=source),
    ]


def reference_alone(run: Pass) -> list[Term]:
    """The reference's forward before there is a graph."""
    beside = beside_the_graph(run.spec, run.step)
    return [
        *inputs(run),
        term("activations", "one layer's tensors of the reference, or its states", beside.activations, source=TAPE),
        *head_terms(run, Live(0, beside.logits, 0, beside.temporaries), "the reference's head"),
        copies(beside.casts),
    ]


def evaluation(run: Pass, moment: Moment) -> list[Term]:
    """The loss without a graph, or one layer."""
    step = run.step
    found = inputs(run)
    if moment.name == "evaluation":
        bare = bare_head(step, step.cast)
        found.append(copies(bare.casts))
        found += head_terms(run, Live(0, bare.logits), "the loss")
        return [*found, term("activations", "what the head takes", bare.activations)]
    alive = layer_without_graph(run.spec, step, evaluating(step.recipe))
    made = step.cast - head_cast(run.spec, step) + alive.casts
    return [*found, copies(made), *one_layer(run)]


def copies(size: int) -> Term:
    """Autocast's copies of the weights."""
    return term("temporaries", "half-precision copies of the weights (autocast)", size, source=CACHED)


def one_layer(run: Pass) -> list[Term]:
    """One layer's forward without a graph."""
    step = run.step
    size = layer_without_graph(run.spec, step, evaluating(step.recipe)).activations - step.around
    what = "one layer's tensors, and the embeddings' output"
    return [
        term("activations", "tables and masks that all layers share", step.around - step.named_bare),
        term("activations", BESIDE, step.named_bare),
        term("activations", what, size, *per_token(run, size), source=TAPE),
    ]


def handed(run: Pass) -> list[Term]:
    """What ZeRO-3 gathers so that adapters can be merged into the weights that vLLM gets."""
    source = "TRL vllm_generation.py:_iter_named_params"
    what = "the difference of the largest matrix that has adapters"
    return [
        term(
            "communication_buffers",
            "all weights gathered to merge the adapters",
            merged_for_vllm(run.spec),
            source=source,
        ),
        term("temporaries", what, merging.on_gpu(run.spec), source="PEFT tuners/lora/layer.py:get_delta_weight"),
    ]


def generation(run: Pass) -> list[Term]:
    """What a trainer that generates its samples holds meanwhile; PPO's rounds have a module of their own."""
    spec, facts = run.spec, run.spec.facts
    generation = spec.generation
    if generation is None or generation.vllm_server:
        return []
    item = DTYPE_BYTES[model_dtype(spec)]
    found = []
    if spec.gathers_to_generate:
        factors = ((item, "bytes"), (facts.parameters, "parameters"))
        what = "all weights gathered to generate"
        found.append(term("communication_buffers", what, item * facts.parameters, *factors))
    if generation.vllm_gpu_memory_utilization:
        if generation.vllm_sleeps:
            share = generation.vllm_gpu_memory_utilization
            card = spec.capacity_bytes or 0
            parts = ((share, "vllm_gpu_memory_utilization"), (card, "bytes of the GPU"))
            found.append(term("temporaries", "a colocated vLLM, awake", int(share * card), *parts))
        return found
    numbers = (2, facts.layers + 1, facts.kv_heads, facts.head_dim, item, generated(spec), spec.seq_len)
    units = ("keys and values", "layers, one of them twice", "key-value heads", "head size", "bytes")
    named = zip(numbers, (*units, "sequences generated at once", "tokens"), strict=True)
    found.append(
        term("activations", "the key-value cache", cache_bytes(spec), *named, source="transformers cache_utils.py")
    )
    chosen = selected_experts(spec, generated(spec))
    return [*found, term("temporaries", SELECTED, chosen, source=EXPERTS)]
