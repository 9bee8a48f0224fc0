"""The rule fsdp-no-wrap: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import breaks_or_strains
from lintfit.checks.trees import assigned
from lintfit.checks.wording import gib
from lintfit.findings import Applicability, Fix, Severity
from lintfit.memory.result import Verdict
from lintfit.memory.spec import DTYPE_BYTES
from lintfit.run.model import Run


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.accelerate is None or run.value("engine") != "fsdp":
        return
    policy = run.accelerate.settings.get("fsdp_auto_wrap_policy")
    if policy is None or policy.provenance.place is None or _elsewhere(run):
        return
    if policy.value == "NO_WRAP":
        yield from _unwrapped(context)
    elif policy.value == "TRANSFORMER_BASED_WRAP":
        yield from _wrong_class(run)


def _elsewhere(run: Run) -> bool:
    """Whether the launch line overrides the policy or the class."""
    options = run.launch.invocation.options if run.launch is not None else {}
    return "fsdp_auto_wrap_policy" in options or "fsdp_transformer_layer_cls_to_wrap" in options


def _unwrapped(context: RunContext) -> Iterator[Report]:
    run = context.run
    assert run.accelerate is not None
    place = run.accelerate.settings["fsdp_auto_wrap_policy"].provenance.place
    assert place is not None
    severity = Severity.WARNING if context.verdict is Verdict.UNKNOWN else breaks_or_strains(context)
    yield Report(
        place,
        f"fsdp_auto_wrap_policy NO_WRAP makes the whole model one unit: each GPU gathers {_size(run)} in every "
        "forward, and sharding the weights saves nothing at the peak",
        severity=min(severity, Severity.WARNING) if severity is not None else Severity.INFO,
        fix=_by_layers(run),
        help="wrap each transformer layer: fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
    )


def _size(run: Run) -> str:
    spec = run.spec
    if spec is None:
        return "all of its weights"
    dtype = spec.mixed_precision if spec.mixed_precision != "no" else spec.weights_dtype
    return gib(spec.facts.parameters * DTYPE_BYTES[dtype])


def _by_layers(run: Run) -> Fix | None:
    assert run.accelerate is not None
    written = run.accelerate.node("fsdp_config", "fsdp_auto_wrap_policy") is not None
    if not written or run.facts is None or not run.facts.code.layer:
        return None
    return assigned(
        run.accelerate.document,
        "wrap each transformer layer",
        Applicability.SAFE,
        {("fsdp_config", "fsdp_auto_wrap_policy"): "TRANSFORMER_BASED_WRAP"},
    )


def _wrong_class(run: Run) -> Iterator[Report]:
    """A layer class of another family: FSDP looks it up in the model and stops."""
    assert run.accelerate is not None
    named = run.accelerate.settings.get("fsdp_transformer_layer_cls_to_wrap")
    right = run.facts.code.layer if run.facts is not None else ""
    if named is None or named.provenance.place is None or not right or not isinstance(named.value, str):
        return
    others = [name for name in (part.strip() for part in named.value.split(",")) if name != right]
    wrong = [name for name in others if name in _layers()]
    if not wrong or run.facts is None or run.facts.vision is not None:
        return
    yield Report(
        named.provenance.place,
        f"{run.facts.name} has no {wrong[0]}: FSDP stops with ValueError "
        f"(Could not find the transformer layer class {wrong[0]} in the model)",
        severity=Severity.ERROR,
        fix=assigned(
            run.accelerate.document,
            f"name {right}",
            Applicability.SAFE,
            {("fsdp_config", "fsdp_transformer_layer_cls_to_wrap"): right},
        ),
        help=f"name {right}, or leave the key out",
    )


def _layers() -> frozenset[str]:
    """The classes of all families' layers."""
    from lintfit.catalog import architectures

    return frozenset(filter(None, (architectures.known(name).code.layer for name in architectures.names())))
