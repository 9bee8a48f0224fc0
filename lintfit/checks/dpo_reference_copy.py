from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.runs import breaks_or_strains, fits, of_cause, place_of
from lintfit.checks.helpers.script_calls import hands_over
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import replace
from lintfit.memory.result import Verdict
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.sources.script.model import Argument

if TYPE_CHECKING:
    from lintfit.sources.script.source import ScriptSource

_KINDS = ("dpo", "kto")
_AHEAD = "precompute_ref_log_probs"
_ROOM = 0.15
"""Share of the GPU that must be left for a waste to be information only."""
_ASKED_FOR = "force_use_ref_model"
"""What TRL's trainers (0.9 and later) have to be told to take a reference model beside adapters: somebody wants it."""
_TRAINED_BEFORE = ("PeftModel.from_pretrained(", "AutoPeftModel", "load_adapter(", "merge_and_unload(")
"""How a policy goes on with adapters that were trained before, or a reference has some: the base without adapters is
another model."""
_WORTH = 0.05
"""And the share that a sharded reference model must take to be worth a word."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("trainer") not in _KINDS:
        return
    if run.script is not None and run.value("method") == "lora":
        handed = _handed(run.script)
        if handed is not None and not run.mentions(*_TRAINED_BEFORE):
            yield _beside_adapters(context, handed)
    elif run.value("method") == "full" and run.value("reference_model") is True:
        yield from _beside_full(context)


def _handed(script: ScriptSource) -> Argument | None:
    """The reference model that the trainer is surely handed; a recipe has no word for one."""
    trainer = script.facts.trainer
    handed = trainer.argument("ref_model") if trainer is not None else None
    if trainer is None or trainer.taken is not True or not hands_over(script, trainer, "ref_model"):
        return None
    arguments = script.facts.training_arguments
    asked = [call.argument(_ASKED_FOR) for call in (trainer, arguments) if call is not None]
    return None if any(each is not None and each.value is not False for each in asked) else handed


def _beside_adapters(context: RunContext, handed: Argument) -> Report:
    script = context.run.script
    size = _size(context.run.spec, script is not None and _in_few_bits(script))
    return Report(
        handed.whole,
        f"a reference model{f' of {gib(size)}' if size else ''} is loaded beside the adapters: "
        "the same model with its adapter switched off is one",
        severity=_severity(context, size),
        help="ref_model=None, and do not load it",
    )


_BITS = ("quantization_config", "load_in_4bit", "load_in_8bit")


def _in_few_bits(script: ScriptSource) -> bool:
    """Whether what the script loads beside the trained model is quantized as well, or the same load makes both."""
    trained = script.facts.trained_load
    others = [load for load in script.facts.loads if load is not trained and load.taken is not False]
    asked = [[load.argument(name) for name in _BITS] for load in others]
    return all(any(each is not None and each.value not in (None, False) for each in given) for given in asked)


def _size(spec: Spec | None, in_few_bits: bool) -> int | None:
    """Bytes of a second copy of the base on one GPU; None where the model is not known."""
    if spec is None:
        return None
    from lintfit.memory.rollouts.reference import frozen_share, on_host, reference_bytes

    if spec.quantization is not None and in_few_bits:
        return reference_bytes(replace(spec, reference_model=True))
    return 0 if on_host(spec) else frozen_share(spec, spec.facts.parameters * DTYPE_BYTES[spec.weights_dtype])


def _severity(context: RunContext, size: int | None) -> Severity:
    """A waste, whatever it decides; information where there is room for it."""
    estimate, alone = context.estimate, context.what_if(reference_model=False)
    if estimate is None or alone is None or size is None or context.verdict is Verdict.UNKNOWN:
        return Severity.WARNING
    if estimate.capacity_bytes is None:
        return Severity.WARNING
    room = estimate.capacity_bytes - alone.peak.likely - size
    return Severity.INFO if room >= _ROOM * estimate.capacity_bytes else Severity.WARNING


def _beside_full(context: RunContext) -> Iterator[Report]:
    from lintfit.memory.rollouts.reference import reference_bytes

    run = context.run
    assert run.training is not None
    precomputed = run.training.argument(_AHEAD)
    without = context.what_if(reference_model=False)
    if breaks_or_strains(context) is None or without is None or run.spec is None:
        return
    if precomputed is None or precomputed.value is not False:
        return
    taken = reference_bytes(run.spec)
    capacity = context.estimate.capacity_bytes if context.estimate is not None else None
    if not taken or taken < _WORTH * (capacity or 0):
        return
    enough = context.verdict is Verdict.DOES_NOT_FIT and fits(without)
    yield Report(
        place_of(run, "reference_model"),
        f"the reference model takes {gib(taken)} on each GPU through all of the training",
        severity=of_cause(context, without),
        fix=_precompute(context) if enough else None,
        help=f"{run.training.spelled(_AHEAD, True)} computes its log probabilities before training and frees it",
    )


def _precompute(context: RunContext) -> Fix | None:
    assert context.run.training is not None
    edits = context.run.training.write_argument(_AHEAD, True)
    return offered("compute its log probabilities first", Applicability.SAFE, edits)
