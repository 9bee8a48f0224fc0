"""Runs that differ in their batch only, or in their GPU as well, for which most of an estimate is counted once."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from lintfit.frozen import names
from lintfit.memory.spec import Spec

BATCH = frozenset({"micro_batch_size", "seq_len"})
_MAPPINGS = frozenset({"deepspeed_config", "versions"})
_MODELS = ("facts", "gpu", "reward_model", "value_model", "frozen_models")
"""Fields that are compared by their identity: comparing models takes longer than estimating."""
_models = attrgetter(*_MODELS)
_others = [name for name in names(Spec) if name not in BATCH | _MAPPINGS and name not in _MODELS]
_settings = attrgetter(*_others)
_models_alone = attrgetter(*[name for name in _MODELS if name != "gpu"])
_settings_anywhere = attrgetter(*[name for name in _others if name != "capacity_bytes"])
_kernels = attrgetter("compute_capability", "native_bf16", "flash_attention_2")
"""What decides which kernels a GPU runs: all of one but its name and its size."""
_LARGEST = 1024


class Alike:
    """One object for all runs that differ in nothing but :data:`BATCH`: the owner of a :class:`.memo.Memo`'s entries.

    It keeps the models and the GPU, which are told apart by their identity.
    """

    __slots__ = ("models",)

    def __init__(self, models: tuple[object, ...]) -> None:
        self.models = models


class _Kinds:
    """The objects by what makes runs alike: ``models`` by identity, and ``settings``."""

    def __init__(
        self, models: Callable[[Spec], tuple[object, ...]], settings: Callable[[Spec], tuple[object, ...]]
    ) -> None:
        self._models, self._settings = models, settings
        self._found: dict[tuple[object, ...], Alike] = {}
        self._last: list[tuple[Spec, Alike]] = []

    def of(self, spec: Spec) -> Alike:
        """That of a run; the parts of an estimate ask one after the other."""
        for last, found in self._last:
            if last is spec:
                return found
        models = self._models(spec)
        mappings = repr(spec.deepspeed_config) if spec.deepspeed_config else "", tuple(spec.versions.items())
        key = (*map(id, models), *mappings, *self._settings(spec))
        if key not in self._found:
            if len(self._found) >= _LARGEST:
                self._found.clear()
            self._found[key] = Alike(models)
        # Beside a run stands at most one other that its spec may mean.
        self._last[:] = [(spec, self._found[key]), *self._last[:1]]
        return self._found[key]


def _anywhere(spec: Spec) -> tuple[object, ...]:
    kernels = _kernels(spec.gpu) if spec.gpu is not None else None
    share = spec.capacity_bytes if spec.generation is not None else None  # of which vLLM takes a share
    return (kernels, share, *_settings_anywhere(spec))


alike = _Kinds(_models, _settings).of
"""What a run shares with all that differ in their batch only."""
on_any_gpu = _Kinds(_models_alone, _anywhere).of
"""What it shares with those on GPUs of other names and sizes, too: where kernels are the same, tensors are."""
