from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.models import DTYPES
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered, related
from lintfit.checks.helpers.runs import place_of
from lintfit.documents.model import FileEdit
from lintfit.findings.model import Applicability, Fix
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.settings.model import Place, Provenance, Setting
from lintfit.settings.values import Fsdp

_NAME = "bnb_4bit_quant_storage"
_TORCH = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    fsdp = run.value("fsdp")
    if run.training is None or run.value("engine") != "fsdp" or not isinstance(fsdp, Fsdp) or fsdp.version != 1:
        return
    asked = _asked(run) if run.value("quantization") in ("nf4", "nf4-double") else None
    if asked is None:
        return
    config, storage = asked
    dtype = run.value("weights_dtype")
    if storage is None or storage.value is None:
        yield Report(
            config,
            f"FSDP cannot flatten 4-bit weights that are stored as uint8 without {_NAME}: "
            "it stops with ValueError (Cannot flatten integer dtype tensors)",
            fix=_fix(run, dtype),
            help=(f"{_NAME}=torch.bfloat16" if run.recipe is None else f"--{_NAME} bfloat16")
            + ", the dtype that the model is loaded in",
        )
    elif storage.value in _TORCH and dtype in _TORCH and storage.value != dtype:
        weights = run.settings["weights_dtype"].provenance.place
        yield Report(
            storage.provenance.place or config,
            f"{_NAME} is {storage.value} and the other weights are {dtype}: FSDP stops with ValueError "
            "(Must flatten tensors with uniform dtype)",
            related=related(weights, "the dtype of the other weights"),
            fix=_fix(run, dtype),
            help="give both the same dtype",
        )


def _asked(run: Run) -> tuple[Place, Setting | None] | None:
    """Where 4 bits are asked for, and in what the packed weights are stored; None where that is not known."""
    if run.recipe is not None:
        storage = run.recipe.argument(_NAME)
        if storage is None:  # TRL before 0.29 stores them in the dtype of the model
            return None
        return place_of(run, "quantization"), replace(storage, value=DTYPES.get(str(storage.value), storage.value))
    config = run.script.facts.quantization_config if run.script is not None else None
    if config is None or config.taken is not True or config.spreads:
        return None
    passed = config.argument(_NAME)
    if passed is None:
        return config.place, None
    return config.place, Setting(_NAME, passed.value, Provenance("file", "", passed.place))


def _fix(run: Run, dtype: object) -> Fix | None:
    if dtype not in _TORCH:
        return None
    code = _TORCH[str(dtype)]
    edits: tuple[FileEdit, ...] | None = None
    if run.recipe is not None:
        edits = run.recipe.write_argument(_NAME, code.removeprefix("torch."))
    elif run.script is not None and run.script.facts.quantization_config is not None:
        edits = run.script.set_argument(run.script.facts.quantization_config, _NAME, code)
    return offered(f"store the packed weights as {dtype}", Applicability.SAFE, edits)
