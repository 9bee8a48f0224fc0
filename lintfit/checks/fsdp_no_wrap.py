from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import breaks_or_strains, place_of
from lintfit.checks.helpers.trees import assigned
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.result import Verdict
from lintfit.run.called import model_name
from lintfit.run.engines import wrap_policy
from lintfit.run.model import Run
from lintfit.settings.model import Setting
from lintfit.settings.values import Fsdp


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.value("engine") != "fsdp":
        return
    fsdp, policy = run.value("fsdp"), wrap_policy(run.launch, run.accelerate)
    if isinstance(fsdp, Fsdp) and not fsdp.auto_wrap and _gathers(run) and not _left_open(run):
        yield _unwrapped(context, policy)
    elif policy is not None and policy.value == "TRANSFORMER_BASED_WRAP" and not _names_class(run):
        yield from _wrong_class(run)


def _left_open(run: Run) -> bool:
    return _left_to_the_script(run) or _left_to_the_launch(run)


def _left_to_the_script(run: Run) -> bool:
    """Whether an Accelerate file on its own says nothing of how FSDP wraps: the script's plugin may."""
    return run.origin.kind == "config" and run.accelerate is not None and run.accelerate.node("fsdp_config") is None


def _left_to_the_launch(run: Run) -> bool:
    """Whether Accelerate's plugin takes its policy from what an unseen launch exports (``FSDP_AUTO_WRAP_POLICY``)."""
    if run.script is None or run.launch is not None or run.accelerate is not None:
        return False
    return any(True for _ in run.script.calls("FullyShardedDataParallelPlugin"))


def _names_class(run: Run) -> bool:
    """Whether the launch line overrides the policy or the class."""
    options = run.launch.invocation.options if run.launch is not None else {}
    return "fsdp_auto_wrap_policy" in options or "fsdp_transformer_layer_cls_to_wrap" in options


def _gathers(run: Run) -> bool:
    """Whether there are shards to gather, as far as is known."""
    if run.spec is None or run.count_open:
        return True
    from lintfit.memory.engines.fsdp import one_unit

    return one_unit(run.spec)


def _unwrapped(context: RunContext, policy: Setting | None) -> Report:
    run = context.run
    severity = Severity.WARNING if context.verdict is Verdict.UNKNOWN else breaks_or_strains(context)
    cause, remedy = _cause(run, policy)
    return Report(
        (policy.provenance.place if policy is not None else None) or place_of(run, "fsdp", "engine"),
        f"{cause} makes the whole model one unit: each GPU gathers {_size(run)} in every "
        "forward, and sharding the weights saves nothing at the peak",
        severity=min(severity, Severity.WARNING) if severity is not None and not _of_any_size(run) else Severity.INFO,
        fix=_by_layers(run),
        help=f"wrap each transformer layer: {remedy}",
    )


def _of_any_size(run: Run) -> bool:
    """Whether a script builds a model that nobody knows, which may be a toy, or takes it from a command line that
    nobody knows, which may quantize it as well."""
    named = run.settings.get("model")
    guessed = run.launch is None and named is not None and named.provenance.kind == "assumed"
    return run.script is not None and (run.facts is None or guessed)


def _cause(run: Run, policy: Setting | None) -> tuple[str, str]:
    """Why the whole model is one unit, and what would wrap its layers."""
    by_layers = "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP"
    if run.accelerate is not None and policy is None:
        return "no fsdp_auto_wrap_policy (NO_WRAP is Accelerate's default)", by_layers
    by_trainer = run.script is not None and run.script.argument("fsdp") is not None
    remedy = 'fsdp="full_shard auto_wrap"' if by_trainer else "auto_wrap_policy=transformer_auto_wrap_policy"
    if policy is not None:
        return "fsdp_auto_wrap_policy NO_WRAP", remedy if run.accelerate is None else by_layers
    return "fsdp without auto_wrap" if by_trainer else "FSDP without a policy that wraps layers", remedy


def _size(run: Run) -> str:
    spec = run.spec
    if spec is None:
        return "all of its weights"
    from lintfit.memory.engines.fsdp import gathered_bytes, stored

    return gib(sum(gathered_bytes(spec, weight) for weight in stored(spec).weights))


def _by_layers(run: Run) -> Fix | None:
    if run.accelerate is None or wrap_policy(run.launch, None) is not None:
        return None
    if run.accelerate.node("fsdp_config") is None or run.facts is None or not run.facts.code.layer:
        return None
    return assigned(
        run.accelerate.document,
        "wrap each transformer layer",
        Applicability.SAFE,
        {("fsdp_config", "fsdp_auto_wrap_policy"): "TRANSFORMER_BASED_WRAP"},
    )


def _wrong_class(run: Run) -> Iterator[Report]:
    """A layer class of another family: FSDP looks it up in the model and stops."""
    if run.accelerate is None:
        return
    named, facts = run.accelerate.settings.get("fsdp_transformer_layer_cls_to_wrap"), run.facts
    if named is None or named.provenance.place is None or facts is None or not isinstance(named.value, str):
        return
    from lintfit.catalog import architectures

    # A model that sees may have layers of its own class in its language model (Qwen3VLTextDecoderLayer).
    sees = facts.vision is not None
    right = facts.text_code.layer if sees else facts.code.layer
    layers = {architectures.known(name).code.layer for name in architectures.names()} - {"", right}
    wrong = [name for name in (part.strip() for part in named.value.split(",")) if name in layers]
    if not wrong or not right:
        return
    fix = assigned(
        run.accelerate.document,
        f"name {right}",
        Applicability.SAFE,
        {("fsdp_config", "fsdp_transformer_layer_cls_to_wrap"): right},
    )
    yield Report(
        named.provenance.place,
        f"{model_name(run)} has no {wrong[0]}: FSDP stops with ValueError "
        f"(Could not find the transformer layer class {wrong[0]} in the model)",
        severity=Severity.ERROR,
        fix=None if sees else fix,
        help=f"name {'the class of its layers' if sees else right}, or leave the key out",
    )
