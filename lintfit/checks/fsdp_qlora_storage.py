"""The rule fsdp-qlora-storage: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.findings.model import Applicability, Fix, Related
from lintfit.run.model import Run
from lintfit.settings.values import Fsdp
from lintfit.sources.script.model import Call

_NAME = "bnb_4bit_quant_storage"
_TORCH = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "fsdp" or run.value("quantization") not in ("nf4", "nf4-double"):
        return
    fsdp = run.value("fsdp")
    config = run.script.facts.quantization_config
    if not isinstance(fsdp, Fsdp) or fsdp.version != 1 or config is None or config.taken is not True or config.spreads:
        return
    storage, dtype = config.argument(_NAME), run.value("weights_dtype")
    if storage is None:
        yield Report(
            config.place,
            f"FSDP cannot flatten 4-bit weights that are stored as uint8 without {_NAME}: "
            "it stops with ValueError (Cannot flatten integer dtype tensors)",
            fix=_fix(run, config, dtype),
            help=f"{_NAME}=torch.bfloat16, the dtype that the model is loaded in",
        )
    elif storage.value in _TORCH and dtype in _TORCH and storage.value != dtype:
        weights = run.settings["weights_dtype"].provenance.place
        yield Report(
            storage.place,
            f"{_NAME} is {storage.value} and the other weights are {dtype}: FSDP stops with ValueError "
            "(Must flatten tensors with uniform dtype)",
            related=(Related(weights, "the dtype of the other weights"),) if weights is not None else (),
            fix=_fix(run, config, dtype),
            help="give both the same dtype",
        )


def _fix(run: Run, config: Call, dtype: object) -> Fix | None:
    assert run.script is not None
    if dtype not in _TORCH:
        return None
    edits = run.script.set_argument(config, _NAME, _TORCH[str(dtype)])
    return Fix(f"store the packed weights as {dtype}", Applicability.SAFE, edits) if edits else None
