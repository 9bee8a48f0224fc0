from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.script_edits import without_argument
from lintfit.checks.helpers.zero3_loads import refused_loads
from lintfit.findings.model import Applicability, Fix


def check_run(context: RunContext) -> Iterator[Report]:
    source = context.run.script
    if source is None:
        return
    for load, argument in refused_loads(context.run):
        passing = "passing a `device_map`" if argument.name == "device_map" else "`low_cpu_mem_usage=True`"
        yield Report(
            argument.whole,
            f"{argument.name} under ZeRO-3: {load.name} stops with ValueError "
            f"(DeepSpeed Zero-3 is not compatible with {passing})",
            fix=Fix(
                "drop the argument: ZeRO-3 places the parameters",
                Applicability.SAFE,
                without_argument(source, load, argument),
            ),
            help="drop it: ZeRO-3 places the parameters",
        )
