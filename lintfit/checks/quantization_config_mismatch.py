from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.quantized import quant_method
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import milder, older, only_load
from lintfit.checks.helpers.runs import anchor
from lintfit.findings.model import Related, Severity
from lintfit.run.model import Run
from lintfit.settings.model import Place

_CLASSES = {
    "aqlm": "AqlmConfig",
    "awq": "AwqConfig",
    "bitsandbytes": "BitsAndBytesConfig",
    "compressed-tensors": "CompressedTensorsConfig",
    "eetq": "EetqConfig",
    "gptq": "GPTQConfig",
    "hqq": "HqqConfig",
    "mxfp4": "Mxfp4Config",
}
"""transformers ``AUTO_QUANTIZATION_CONFIG_MAPPING``; which class an ``fp8`` in a name means is not known."""
_ASKED = {
    "nf4": "BitsAndBytesConfig",
    "nf4-double": "BitsAndBytesConfig",
    "int8": "BitsAndBytesConfig",
    "gptq-int4": "GPTQConfig",
    "gptq-int8": "GPTQConfig",
}
_ALWAYS = ("awq", "gptq", "mxfp4")
"""Methods whose configs read attributes from the one that is passed, which ``BitsAndBytesConfig`` never had."""
_MERGED, _COMPARED = "4.38", "4.56"
"""The first transformers with ``merge_quantization_configs``, and the first in which it compares the classes."""

DECIDED_BY = ("model", "quantization")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    stated, model = run.settings.get("quantization"), run.settings.get("model")
    load = _load(run)
    if load is None or stated is None or model is None or not isinstance(model.value, str):
        return
    method = quant_method(run.facts.config if run.facts is not None else {}, model.value)
    asked, place = _ASKED.get(str(stated.value)), stated.provenance.place
    if method is None or asked is None or place is None or stated.provenance.kind == "derived":
        return
    known = _CLASSES.get(method)
    severity = _severity(run, method)
    if severity is None or known == asked or (known is None and method != "fp8"):
        return
    error = f'ValueError "The model is quantized with {known} but you are passing a {asked} config"'
    yield Report(
        place,
        f"{model.value} is quantized already ({method}), and not by {asked}: transformers stops"
        + (f" with {error}" if known is not None else ""),
        severity=severity,
        related=(Related(model.provenance.place or load, "the model is named here"),),
        help=f"leave the {asked} out, or name the model that this one was quantized from",
    )


def _severity(run: Run, method: str) -> Severity | None:
    """None where this transformers takes the checkpoint's method and merely warns."""
    if older((run,), "transformers", _MERGED):
        return None
    if method in _ALWAYS:
        return Severity.ERROR
    before = older((run,), "transformers", _COMPARED)
    if before is None:
        return milder(Severity.ERROR)
    return None if before else Severity.ERROR


def _load(run: Run) -> Place | None:
    """Where transformers loads the model, with the config that the run asks for."""
    if run.recipe is not None:
        return anchor(run) if run.recipe.uses_trl else None
    load = only_load(run)
    return load.place if load is not None else None
