from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.device_maps import refused_map
from lintfit.checks.helpers.script_calls import may_quantize
from lintfit.checks.helpers.script_edits import without_argument
from lintfit.findings.model import Applicability, Fix


def check_run(context: RunContext) -> Iterator[Report]:
    run, refused = context.run, refused_map(context.run)
    if run.script is None or refused is None:
        return
    ranks, load, argument = refused
    quantized = run.settings.get("quantization") is not None or load.argument("quantization_config") is not None
    quantized = quantized or may_quantize(load)
    message = "drop the argument: the trainer moves the model to the rank's own GPU"
    yield Report(
        argument.whole,
        f'device_map="{argument.value}" spreads each of the {ranks} ranks\' models over all GPUs: the trainer stops '
        "with ValueError (You can't train a model that has been loaded with `device_map='auto'` in any distributed "
        "mode)",
        fix=None if quantized else Fix(message, Applicability.SAFE, without_argument(run.script, load, argument)),
        help='drop it; for a quantized model pass device_map={"": local_rank}',
    )
