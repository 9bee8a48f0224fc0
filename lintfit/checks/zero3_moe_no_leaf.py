from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import recipe_of
from lintfit.checks.helpers.readers import milder, older
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.swift import swift_of
from lintfit.checks.helpers.trees import assigned
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run

_WAYS = (
    "set_z3_leaf_module",
    "leaf_module",
    "deepspeed_moe_layer_cls_names",
    "transformer_moe_cls_names",
    "module_granularity_threshold",
    "z3_leaf",
)
"""Each of these marks leaves."""


_ALL, _VISITED = "4.40", "4.52"
"""The transformers from which on every rank calls all experts, some with no token, and from which on again those alone
that a token visits (``modeling_mixtral.py`` and ``modeling_qwen2_moe.py`` of 4.38.2, 4.40.2, 4.51.3 and 4.52.4)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    block = run.facts.code.moe_block if run.facts is not None else ""
    if not block or not run.training.trains or run.mentions(*_WAYS):
        return
    severity = _severity(run)
    if severity is None or _marked_by_front_end(run, block):
        return
    yield Report(
        place_of(run, "zero_stage"),
        f"{block} is no leaf of ZeRO-3: a rank whose tokens visit other experts does not join the gathering of their "
        "weights, and the run hangs",
        severity=severity,
        fix=_fix(run, block),
        help=f"name {block} in deepspeed_moe_layer_cls_names of the Accelerate file"
        if run.recipe is not None
        else f"call deepspeed.utils.set_z3_leaf_modules(model, [{block}]) before training",
    )


_BY_LLAMAFACTORY = {
    "MixtralSparseMoeBlock": "0.7",
    "Qwen2MoeSparseMoeBlock": "0.7",
    "DeepseekV3MoE": "0.9.3",
    "OlmoeSparseMoeBlock": "0.9.3",
    "Qwen3MoeSparseMoeBlock": "0.9.3",
}
"""The blocks that LLaMA-Factory marks, and since which release (``model/model_utils/moe.py:add_z3_leaf_module``)."""
_BY_SWIFT = frozenset({"Qwen2MoeSparseMoeBlock", "Qwen3MoeSparseMoeBlock"})
"""Those that ms-swift 3.9 and later mark (``llm/model/register.py:deepspeed_set_z3_leaf_modules``)."""


def _marked_by_front_end(run: Run, block: str) -> bool:
    factory, swift = recipe_of(run), swift_of(run)
    if factory is not None and block in _BY_LLAMAFACTORY:
        return factory.arguments.since(_BY_LLAMAFACTORY[block])
    return swift is not None and block in _BY_SWIFT and swift.arguments.since(3, 9)


def _severity(run: Run) -> Severity | None:
    """transformers 5 keeps all experts of a layer in one tensor, which every rank gathers."""
    assert run.facts is not None
    if older((run,), "transformers", _ALL) is False and older((run,), "transformers", _VISITED) is True:
        return None
    separate = older((run,), "transformers", "5")
    since = run.facts.code.moe_leaf_since
    marked = older((run,), "deepspeed", since) if since else True
    if separate is False or marked is False:
        return None
    return Severity.WARNING if separate and marked else milder(Severity.WARNING)


def _fix(run: Run, block: str) -> Fix | None:
    if run.accelerate is None or run.accelerate.node("deepspeed_config") is None:
        return None
    return assigned(
        run.accelerate.document,
        f"name {block} as a leaf",
        Applicability.SAFE,
        {("deepspeed_config", "deepspeed_moe_layer_cls_names"): block},
    )
