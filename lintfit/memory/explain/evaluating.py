"""Terms of an evaluation on a batch of its own (:mod:`lintfit.memory.evaluation`)."""

from __future__ import annotations

from dataclasses import replace

from lintfit.memory import evaluation
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.evaluation import Round
from lintfit.memory.explain import scoring
from lintfit.memory.explain.passing import (
    BESIDE,
    CACHED,
    TAPE,
    Pass,
    casts,
    encoded,
    forward,
    head_terms,
    inputs,
    per_token,
)
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.loss.preference import Path, sequences
from lintfit.memory.micro_batch.alive import layer_without_graph
from lintfit.memory.result import Moment
from lintfit.memory.spec import Spec

KEPT = "logits of earlier batches, kept for compute_metrics"
HELD = "logits of the batch before, which the loop's variable holds"
GRAPHED = "the graph of the batch before, which the loop's variable holds"
LOOP = "transformers Trainer.evaluation_loop"


def terms(run: Pass, moment: Moment) -> list[Term]:
    """What stands beside the states at a moment of the evaluation."""
    one = evaluation.batch(run.spec, run.states, run.step)
    if one is None:
        return []
    seen = Pass(one.spec, run.states, one.step, run.facts, sequences(one.spec), run.seq)
    if moment.name == evaluation.GENERATION and run.spec.generation is not None:
        return scoring.generation(replace(seen, spec=evaluation.rolling_out(one.spec)))
    if moment.name == evaluation.ENCODED:
        return [*encoded(seen), _waiting(one)]
    if moment.name == evaluation.GRAPH:
        return _graph(one, seen)
    found = inputs(seen)
    if moment.name == "evaluation, logits gathered":
        return [*found, _logits(one, one.gathered, "logits of all ranks, gathered and put to those before them")]
    found.append(_copies(_casts(one, moment.name)))
    found.append(_waiting(one))
    match moment.name:
        case "evaluation":
            bare = evaluation.bare(one)
            whole: Path | None = "full" if evaluation.makes_whole_logits(one.spec) else None
            found += head_terms(seen, Live(0, bare.logits), "the evaluation's loss", path=whole)
            found.append(term("activations", "what the head takes", bare.activations))
            found.append(_returned(one.step.evaluated))
        case "evaluation, logits":
            apart = evaluation.logits_apart(one)
            found.append(term("activations", "what the head takes", apart.activations - one.step.inputs))
            made = apart.logits - one.waiting
            found.append(_logits(one, made, "logits of a second forward, for compute_metrics"))
        case evaluation.GENERATION:
            found += [*_answers(one), *_layer(seen)]
        case _:
            found += [*_layer(seen), _returned(evaluation.earlier_states(one.step))]
    return found


def _waiting(one: Round) -> Term:
    own = one.evaluation.predictions in ("held", "listed")
    return _logits(one, one.waiting, HELD) if own else _logits(one, one.waiting, KEPT)


def _graph(one: Round, seen: Pass) -> list[Term]:
    """A forward with gradients on, and the graph of the one before."""
    step = evaluation.graph_of(one, seen.states)
    run = replace(seen, spec=evaluation.graphed(one.spec), step=step)
    tail, earlier = step.head, evaluation.earlier_graph(one, step)
    live = tail.saved.plus(tail.forward)
    return [
        *forward(run),
        *head_terms(run, live, "the head and the loss", True),
        *casts(run, head=True),
        term("activations", GRAPHED, earlier.activations, source=TAPE),
        term("logits", GRAPHED, earlier.logits, source=TAPE),
        term("temporaries", GRAPHED, earlier.casts, source=CACHED),
    ]


def _returned(size: int) -> Term:
    what = "keys and values that a vision-language model returns, because text_config.use_cache is on"
    return term("activations", what, size, source="transformers cache_utils.py")


def _casts(one: Round, name: str) -> int:
    match name:
        case "evaluation":
            return evaluation.copies_at_loss(one)
        case "evaluation, logits":
            return evaluation.logits_apart(one).casts
    return evaluation.copies_without_head(one)


def _copies(size: int) -> Term:
    return term("temporaries", "half-precision copies of the weights (autocast)", size, source=CACHED)


def _layer(seen: Pass) -> list[Term]:
    layer = layer_without_graph(seen.spec, seen.step, evaluating(seen.step.recipe)).activations
    around = seen.step.front - seen.step.opening + seen.step.masks + seen.step.named
    what = "one layer's tensors, and the embeddings' output"
    return [
        term("activations", "tables and masks that all layers share", around - seen.step.named),
        term("activations", BESIDE, seen.step.named),
        term("activations", what, layer - around, *per_token(seen, layer - around), source=TAPE),
    ]


def _logits(one: Round, size: int, what: str) -> Term:
    """Logits as so many times those of a batch on one rank."""
    tokens = sequences(one.spec) * -(-one.spec.seq_len // one.spec.sequence_parallel)
    if not size:
        return term("logits", what, 0)
    entries = one.made // evaluation.returned_item(one.spec, one.step.recipe)
    factors: tuple[Factor, ...] = (
        (size / entries, "bytes"),
        (tokens, "tokens of a batch"),
        (entries // tokens, "vocabulary entries"),
    )
    return term("logits", what, size, *factors, source=LOOP)


def _answers(one: Round) -> list[Term]:
    gathered = term("communication_buffers", "all parameters, gathered to generate", evaluation.summoned(one.spec))
    cache = evaluation.answers(one)
    tokens = sequences(one.spec) * one.evaluation.beams * one.spec.seq_len
    factors = ((cache / tokens, "bytes a token"), (tokens, "tokens of all beams"))
    what = "keys and values of the answers, one layer's twice"
    return [gathered, term("activations", what, cache, *factors, source="transformers cache_utils.py")]


def host_terms(spec: Spec) -> list[Term]:
    """Logits that every rank keeps on the host, where the number of samples is known."""
    size, chosen = evaluation.kept_on_host(spec), spec.evaluation
    if not size or chosen is None or chosen.samples is None:
        return []
    ranks = ranks_per_node(spec)
    factors: list[Factor] = [(evaluation.HOST_ITEM, "bytes"), (chosen.samples, "samples"), (spec.seq_len, "tokens")]
    factors.append((spec.facts.vocab, "vocabulary entries"))
    factors += [(2, "copies")] if chosen.concat_batches else []
    factors += [(ranks, "ranks of a node")] if ranks > 1 else []
    return [term("host", "the evaluation's logits, for compute_metrics", size, *factors, source=LOOP)]
