"""What Unsloth does to a run that the memory model does not count: such a run has no verdict.

Read in ``unsloth/models/loader.py``, ``rl.py`` and ``rl_replacements.py`` of August 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lintfit.catalog.facts import ModelFacts
from lintfit.settings.model import Setting
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.source import ScriptSource

_OWN_EXPERTS = frozenset({"gpt_oss"})
"""Models whose experts Unsloth makes linear layers of its own, so that bitsandbytes quantizes them, too; transformers'
are one parameter, which stays in 16 bits (``unsloth/gpt-oss-20b-unsloth-bnb-4bit``)."""


def not_counted(script: ScriptSource, settings: Mapping[str, Setting], facts: ModelFacts | None) -> tuple[str, ...]:
    """The reasons why the memory of a run is not known, as they are reported."""
    load = script.reading.found.trained_load
    return tuple(_reasons(load, settings, facts)) if load is not None and models.by_unsloth(load) else ()


def _reasons(load: Record, settings: Mapping[str, Setting], facts: ModelFacts | None) -> Iterator[str]:
    stored = settings.get("quantization")
    if facts is not None and facts.model_type in _OWN_EXPERTS and stored is not None and stored.value is not None:
        yield f"not modelled: the experts of {facts.model_type} as Unsloth quantizes them"
    fast = load.keyword("fast_inference")
    if fast is not None and operators.truth(fast) is not False:
        yield "not modelled: vLLM within Unsloth, which shares the weights and takes what is left (fast_inference)"
