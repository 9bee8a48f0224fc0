"""Ranks that split a model or a sequence, as a script asks for them.

``from_pretrained(tp_plan="auto")`` and its ``tp_size`` (transformers), ``DistributedConfig`` in the same place, and
Accelerate's ``ParallelismConfig``, wherever it is handed. Projects that split sequences with packages of their own
(EasyContext, ring-flash-attention, DeepSpeed's Ulysses) call these by telling names; into how many parts is not read.
"""

from __future__ import annotations

import re

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.values import Object, Record
from lintfit.sources.script.reading.collector import Reading, something, sure_none
from lintfit.sources.script.reading.facts import certain

ALL = "all"
"""As many ranks as there are: what ``tp_plan="auto"`` takes where no size is given."""

_SIZES = {
    "tp_size": "tensor_parallel",
    "cp_size": "context_parallel",
    "sp_size": "sequence_parallel",
    "dp_replicate_size": "replicas",
}

_OF_SEQUENCES = re.compile(
    r"(?:apply|enable|extract|init|initialize|patch|prepare|replace|setup|split|substitute)_\w*"
    r"(?:seq(?:uence)?_parallel|context_parallel|ring_(?:flash_)?attn|ulysses)\w*",
    re.IGNORECASE,
)
"""``prepare_seq_parallel_inputs``, ``initialize_sequence_parallel``, …: what a project calls to split sequences."""


def read(reading: Reading) -> None:
    """Note over how many ranks a replica is split, where the script says so."""
    split = next((r for r in reading.records if r.taken is not False and _OF_SEQUENCES.fullmatch(r.name)), None)
    if split is not None:
        reading.state("sequence_parallel", UNKNOWN, split.node, f"{split.name} splits sequences over the ranks")
    load = reading.found.trained_load
    if load is not None:
        _load(reading, load)
    made = certain(reading.called("ParallelismConfig"))
    if made is not None:
        _sizes(reading, made, _SIZES)


def _load(reading: Reading, load: Record) -> None:
    plan, config = load.keyword("tp_plan"), load.keyword("distributed_config")
    if something(plan):
        size = load.keyword("tp_size")
        if size is None or sure_none(size):
            reading.put("tensor_parallel", plan, load, to=ALL)
        else:
            reading.put("tensor_parallel", size, load)
    if isinstance(config, Object) and config.call is not None:
        _sizes(reading, config.call, {"tp_size": "tensor_parallel"})
        others = [
            config.call.keyword(name)
            for name in ("tp_plan", "fsdp_size", "dp_replicate_size", "ep_size", "pp_size", "enable_expert_parallel")
        ]
        if any(something(each) for each in others):
            reading.put("tensor_parallel", config, load, to=UNKNOWN)
    elif something(config):
        reading.put("tensor_parallel", config, load, to=UNKNOWN)


def _sizes(reading: Reading, made: Record, names: dict[str, str]) -> None:
    for keyword, name in names.items():
        value = made.keyword(keyword)
        if something(value):
            reading.put(name, value, made)
