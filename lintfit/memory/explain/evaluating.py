"""Terms of an evaluation on a batch of its own (:mod:`lintfit.memory.evaluation`)."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.evaluation import generating, graph, kept, points
from lintfit.memory.evaluation.batch import Round, batch, copies_without_head, makes_whole_logits
from lintfit.memory.explain import layers, scoring
from lintfit.memory.explain.passing import ANSWERED, CACHED, TAPE, Pass, casts, encoded, forward, head_terms, inputs
from lintfit.memory.explain.scoring import copies, one_layer
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.forward import LAST_NORM
from lintfit.memory.loss.preference import Path, sequences
from lintfit.memory.loss.returned import returned_item
from lintfit.memory.micro_batch.alive import layer_without_graph
from lintfit.memory.micro_batch.halves import of_decoder
from lintfit.memory.result import Moment
from lintfit.memory.spec import Spec

KEPT = "logits of earlier batches, kept for compute_metrics"
HELD = "logits of the batch before, which the loop's variable holds"
GATHERED = "logits of all ranks, gathered and put to those before them"
GRAPHED = "the graph of the batch before, which the loop's variable holds"
GENERATED = "transformers generation/utils.py"
LOOP = "transformers Trainer.evaluation_loop"


def terms(run: Pass, moment: Moment) -> list[Term]:
    """What stands beside the states at a moment of the evaluation."""
    one = batch(of_decoder(run.spec), run.states, run.step)
    if one is None:
        return []
    seen = Pass(one.spec, run.states, one.step, run.facts, sequences(one.spec), run.seq)
    match moment.name:
        case points.GENERATION if run.spec.generation is not None:
            return scoring.generation(replace(seen, spec=points.rolling_out(one.spec)))
        case points.ENCODED:
            return [*encoded(seen), _waiting(one)]
        case graph.GRAPH:
            return _graph(one, seen)
        case points.GATHERED:
            return [*inputs(seen), _logits(one, one.gathered, GATHERED)]
        case generating.READING | generating.GENERATING:
            return _generated(one, seen, moment.name)
    found = [*inputs(seen), copies(_casts(one, moment.name)), _waiting(one)]
    match moment.name:
        case "evaluation":
            return [*found, *_loss(one, seen)]
        case points.LOGITS:
            return [*found, *_logits_apart(one)]
        case points.GENERATION:
            return [*found, *_answers(one), *one_layer(seen)]
    return [*found, *one_layer(seen), _returned(points.earlier_states(one.step))]


def _waiting(one: Round) -> Term:
    return _logits(one, one.waiting, HELD if one.in_variable else KEPT)


def _loss(one: Round, seen: Pass) -> list[Term]:
    """The head and the loss without a graph."""
    bare = points.at_the_loss(one)
    path: Path | None = "full" if makes_whole_logits(one.spec) else None
    return [
        *head_terms(seen, Live(0, bare.logits), "the evaluation's loss", path=path),
        term("activations", "what the head takes", bare.activations),
        _returned(one.step.evaluated),
    ]


def _logits_apart(one: Round) -> list[Term]:
    """A second forward, for logits that the loss does not make."""
    apart = points.logits_apart(one)
    return [
        term("activations", "what the head takes", apart.activations - one.step.inputs),
        _logits(one, apart.logits - one.waiting, "logits of a second forward, for compute_metrics"),
    ]


def _graph(one: Round, seen: Pass) -> list[Term]:
    """A forward with gradients on, and the graph of the one before."""
    step = graph.graph_of(one, seen.states)
    run = replace(seen, spec=graph.graphed(one.spec), step=step)
    tail, earlier = step.head, graph.earlier_graph(one, step)
    largest = graph.largest(seen.states, step)
    if largest.name == "loss, forward":
        live = tail.saved.plus(tail.forward)
        passing = [*forward(run), *head_terms(run, live, "the loss", forward=True), *casts(run, head=True)]
        passing.append(term("activations", ANSWERED, step.answered))
    elif largest.name == LAST_NORM:
        passing = layers.in_the_last_norm(run)
    else:
        passing = layers.passed(run, layers.index_of(largest))
    return [
        *passing,
        term("activations", GRAPHED, earlier.activations, source=TAPE),
        term("logits", GRAPHED, earlier.logits, source=TAPE),
        term("temporaries", GRAPHED, earlier.casts, source=CACHED),
    ]


def _returned(size: int) -> Term:
    what = "keys and values that a vision-language model returns, because text_config.use_cache is on"
    return term("activations", what, size, source="transformers cache_utils.py")


def _casts(one: Round, name: str) -> int:
    match name:
        case "evaluation, a layer":
            layer = layer_without_graph(one.spec, one.step, evaluating(one.step.recipe))
            return copies_without_head(one) + layer.casts
        case "evaluation":
            return points.at_the_loss(one).casts
        case points.LOGITS:
            return points.logits_apart(one).casts
    return copies_without_head(one)


def _logits(one: Round, size: int, what: str) -> Term:
    """Logits as so many times those of a batch on one rank."""
    tokens = sequences(one.spec) * one.spec.local_seq
    if not size:
        return term("logits", what, 0)
    entries = one.made // returned_item(one.spec, one.step.recipe)
    factors: tuple[Factor, ...] = (
        (size / entries, "bytes"),
        (tokens, "tokens of a batch"),
        (entries // tokens, "vocabulary entries"),
    )
    return term("logits", what, size, *factors, source=LOOP)


def _answers(one: Round) -> list[Term]:
    gathered = term("communication_buffers", "all parameters, gathered to generate", points.summoned(one.spec))
    cache = points.answers(one)
    tokens = sequences(one.spec) * one.evaluation.beams * points.answered_tokens(one)
    factors = ((cache / tokens, "bytes a token"), (tokens, "tokens of all beams"))
    what = "keys and values of the answers, one layer's twice"
    return [gathered, term("activations", what, cache, *factors, source="transformers cache_utils.py")]


def _generated(one: Round, seen: Pass, name: str) -> list[Term]:
    """What an evaluation that only generates has while it reads prompts, or makes the last token."""
    reads = name == generating.READING
    live = generating.reading(one) if reads else generating.generating(one)
    tokens = one.spec.seq_len if reads else generating.answered(one)
    cache = generating.cached(one, tokens)
    rows = one.spec.micro_batch_size
    parts = ((cache / tokens / rows, "bytes a token"), (tokens, "tokens"), (rows, "prompts"))
    what = "keys and values of the prompts" if reads else "keys and values of prompts and answers"
    found = [
        *inputs(seen),
        term("activations", what, cache, *parts, source="transformers cache_utils.py"),
        copies(live.casts),
        term("temporaries", scoring.SELECTED, live.temporaries, source=scoring.EXPERTS),
        term("communication_buffers", "all parameters, gathered to generate", points.summoned(one.spec)),
        term("logits", "logits that the next token is chosen by", live.logits, source=GENERATED),
    ]
    rest = live.activations - one.step.inputs - cache
    if reads and not live.logits:
        return [*found, *one_layer(seen)]
    return [*found, term("activations", "what a layer makes of it, or the head takes", rest, source=TAPE)]


def host_terms(spec: Spec) -> list[Term]:
    """Logits that every rank keeps on the host, where the number of samples is known."""
    size, chosen = kept.kept_on_host(spec), spec.evaluation
    if not size or chosen is None or chosen.samples is None:
        return []
    ranks = ranks_per_node(spec)
    factors: list[Factor] = [(kept.HOST_ITEM, "bytes"), (chosen.samples, "samples"), (spec.seq_len, "tokens")]
    factors.append((spec.facts.vocab, "vocabulary entries"))
    factors += [(2, "copies")] if chosen.concat_batches else []
    factors += [(ranks, "ranks of a node")] if ranks > 1 else []
    return [term("host", "the evaluation's logits, for compute_metrics", size, *factors, source=LOOP)]
