"""Runs that differ in their batch only, for which most of an estimate is counted once."""

from __future__ import annotations

from operator import attrgetter

from lintfit.frozen import names
from lintfit.memory.spec import Spec

BATCH = frozenset({"micro_batch_size", "seq_len"})
_MAPPINGS = frozenset({"deepspeed_config", "versions"})
_MODELS = ("facts", "gpu", "reward_model", "value_model", "frozen_models")
"""Fields that are compared by their identity: comparing models takes longer than estimating."""
_models = attrgetter(*_MODELS)
_settings = attrgetter(*[name for name in names(Spec) if name not in BATCH and name not in _MAPPINGS | {*_MODELS}])
_LARGEST = 1024


class Alike:
    """One object for all runs that differ in nothing but :data:`BATCH`: the owner of a :class:`.memo.Memo`'s entries.

    It keeps the models and the GPU, which are told apart by their identity.
    """

    __slots__ = ("models",)

    def __init__(self, models: tuple[object, ...]) -> None:
        self.models = models


_FOUND: dict[tuple[object, ...], Alike] = {}
_LAST: list[tuple[Spec, Alike]] = []


def alike(spec: Spec) -> Alike:
    """What a run shares with all that differ in their batch only; the parts of an estimate ask one after the other."""
    for last, found in _LAST:
        if last is spec:
            return found
    models = _models(spec)
    mappings = repr(spec.deepspeed_config) if spec.deepspeed_config else "", tuple(spec.versions.items())
    key = (*map(id, models), *mappings, *_settings(spec))
    if key not in _FOUND:
        if len(_FOUND) >= _LARGEST:
            _FOUND.clear()
        _FOUND[key] = Alike(models)
    # Beside a run stands at most one other that its spec may mean.
    _LAST[:] = [(spec, _FOUND[key]), *_LAST[:1]]
    return _FOUND[key]
