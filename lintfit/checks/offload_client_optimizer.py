from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.runs import stated_at
from lintfit.sources.script.model import Call

_ON_HOST = frozenset({"DeepSpeedCPUAdam", "DeepSpeedCPULion"})
"""The optimizers that DeepSpeed takes for an offloaded step (``engine._configure_optimizer``)."""
_KNOWN = re.compile(r"^(torch\.optim|bitsandbytes|transformers|apex|deepspeed\.ops)\b")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    device = run.value("offload_optimizer")
    if run.script is None or run.value("zero_stage") not in (1, 2, 3) or device not in ("cpu", "nvme"):
        return
    initialize = run.script.facts.initialize
    if initialize is None or initialize.name != "initialize" or initialize.taken is not True:
        return
    if run.deepspeed is not None and run.deepspeed.config.get("zero_force_ds_cpu_optimizer", True) is not True:
        return
    handed = initialize.argument("optimizer")
    if handed is None and len(initialize.positional) > 2:
        handed = initialize.positional[2]
    made = handed.value if handed is not None else None
    if handed is None or not isinstance(made, Call) or not _KNOWN.match(made.function) or made.name in _ON_HOST:
        return
    yield Report(
        handed.whole,
        f"{made.name} cannot step an offloaded optimizer: deepspeed.initialize stops with ZeRORuntimeException "
        "(You are using ZeRO-Offload with a client provided optimizer)",
        related=related(stated_at(run, "offload_optimizer"), "the optimizer is offloaded here"),
        help="build deepspeed.ops.adam.DeepSpeedCPUAdam instead, or hand in no optimizer and name one in the JSON",
    )
