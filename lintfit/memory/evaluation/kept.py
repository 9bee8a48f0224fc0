"""Logits that an evaluation keeps, on the GPU and on the host, as far as the number of samples is known."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.recipe import of
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.loss.returned import logits_bytes
from lintfit.memory.result import HostMemory
from lintfit.memory.spec import GIB, Spec

HOST_ITEM = 4
"""Bytes of a logit on the host: numpy knows no bf16 (``nested_numpify``)."""


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


def kept_on_host_of_a_sample(spec: Spec) -> int:
    """Bytes of the logits of one sample in the memory of a process."""
    return spec.seq_len * spec.facts.vocab * HOST_ITEM


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
    return (
        evaluation.samples
        * kept_on_host_of_a_sample(spec)
        * (2 if evaluation.concat_batches else 1)
        * ranks_per_node(spec)
    )


def assumptions(spec: Spec) -> tuple[str, ...]:
    """What the estimate takes of the evaluation, where that is more than a batch."""
    evaluation = spec.evaluation
    if evaluation is None or evaluation.batch_size == 0 or evaluation.predictions != "kept" or evaluation.generates:
        return ()
    one = kept_on_host_of_a_sample(spec) / GIB
    if evaluation.samples is None and evaluation.accumulation_steps is not None:
        return (
            f"host memory without the evaluation's logits, {one:.1f} GiB for each sample on each rank "
            "(how many samples there are is not stated)",
        )
    return ()
