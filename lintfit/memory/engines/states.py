"""Model states: what one rank holds at each point of a step apart from activations and logits."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.frozen import field, frozen
from lintfit.memory.engines.host import RankHost
from lintfit.memory.result import Components, HostMemory


class Flattening(NamedTuple):
    """The flat copy of all trained parameters that ZeRO-1 and 2 make when they start, in bytes.

    ``gpu``: beside the originals on the GPU. ``perhaps``: there only where DeepSpeed cannot ask the driver what is
    free. ``host``: on the host, for all ranks of a node.
    """

    gpu: int
    perhaps: int
    host: int


@frozen
class States:
    """Bytes of one rank by component, apart from activations, logits and the framework, moment by moment.

    ``load``: the largest point while the model gets onto the GPU. ``initialize``: the largest point while the
    engine wraps it. ``resume``: a checkpoint being read, for a run that goes on from one.
    ``forward``: the steady state between steps (from the second step on), with what the
    forward pass itself gathers; gradients that earlier micro-batches left count here. ``backward_start``: the
    loss's backward, when this micro-batch has no gradient yet. ``first_gradient``: the same once the first
    gradient has made the engine's buffers (IPG, all-gather window). ``layer_end``: inside the backward where one
    layer ends, if the engine then holds more than inside it. ``backward_end``: every gradient is there.
    ``reduced``: the backward's buffers are gone and the reduced gradients wait for the step.
    ``step``: the largest point of clipping and the optimizer step. ``evaluate``: a forward pass between steps.
    ``save``: the weights being gathered for a checkpoint; nothing for a run that saves none.

    Gradients grow from ``first_gradient`` to ``backward_end`` in the order of the backward pass, so that a
    point in between is ``first_gradient`` plus the share of parameters whose backward is done.
    Autocast's copies of the weights are not in here: they live and die with the forward pass.
    """

    load: Components = field(default_factory=dict)
    initialize: Components = field(default_factory=dict)
    resume: Components = field(default_factory=dict)
    forward: Components = field(default_factory=dict)
    backward_start: Components = field(default_factory=dict)
    first_gradient: Components = field(default_factory=dict)
    layer_end: Components | None = None
    backward_end: Components = field(default_factory=dict)
    reduced: Components = field(default_factory=dict)
    step: Components = field(default_factory=dict)
    evaluate: Components = field(default_factory=dict)
    save: Components = field(default_factory=dict)
    host: HostMemory = field(default_factory=HostMemory)
    rank_host: RankHost = field(default_factory=RankHost)
    """What one rank keeps on the host, before rounding: :attr:`host` is the node's."""
    flattening: Flattening | None = None
    """Where ZeRO-1 and 2 flatten the parameters in ``initialize``, if that is the largest point of it."""
    assumptions: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
