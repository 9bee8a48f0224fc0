from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.checkpointing import how_known, stated_place, with_reentrant
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.script_calls import calls_of, on_trained_model
from lintfit.memory.micro_batch.opened import opens_inputs
from lintfit.memory.tensors.frozen_parts import frozen_parts
from lintfit.run.model import Run
from lintfit.sources.script.model import Call

_OPENS = (
    "enable_input_require_grads",
    "make_inputs_require_grad",
    "prepare_model_for_",
    "requires_grad_(True)",
    "inputs_embeds",
    "prepare_model_for_gradient_checkpointing",
)
"""Each of these makes the first layer's input carry a gradient."""
_OPENS_BY_NAME = ("enable_input_require_grads", "make_inputs_require_grad", "inputs_embeds", "output.requires_grad_")

DECIDED_BY = ("gradient_checkpointing", "use_reentrant", "method")


def check_run(context: RunContext) -> Iterator[Report]:
    yield from _adapters(context.run)
    yield from _frozen_embedding(context.run)


def _frozen_embedding(run: Run) -> Iterator[Report]:
    """Layers that are trained behind an embedding that is not: their checkpoints have no input with a gradient."""
    spec, script = run.spec, run.script
    if spec is None or script is None or run.doubtful or run.mentions(*_OPENS_BY_NAME):
        return
    left = frozen_parts(spec)
    trained = spec.facts.layers - len(left.layers)
    checkpoints = spec.gradient_checkpointing is not False and spec.use_reentrant and not opens_inputs(spec)
    known = how_known(run)
    if not left.embedding or not trained or not checkpoints or known not in ("stated", "default"):
        return
    many = "all" if trained == spec.facts.layers else trained
    yield Report(
        stated_place(run) or anchor(run),
        f"reentrant checkpointing behind a frozen embedding: no gradient reaches the layers, {many} of which are to be "
        "trained; torch only warns (None of the inputs have requires_grad=True)",
        fix=with_reentrant(run, False),
        help='pass gradient_checkpointing_kwargs={"use_reentrant": False}, or call model.enable_input_require_grads()',
    )


def _adapters(run: Run) -> Iterator[Report]:
    if run.script is None or run.script.facts.trainer is not None or not run.script.facts.trains:
        return
    if run.value("method") != "lora" or run.value("use_reentrant") is not True or run.mentions(*_OPENS):
        return
    known = how_known(run)
    if known not in ("stated", "default") or _embedding_trains(run):
        return
    wraps = [call for call in calls_of(run.script, "get_peft_model") if call.taken is True]
    for call in calls_of(run.script, "gradient_checkpointing_enable"):
        if call.taken is True and on_trained_model(run.script, call) and _after(call, wraps):
            yield Report(
                call.place,
                "reentrant checkpointing on a frozen base: no input of a checkpointed layer requires a gradient, and "
                "backward stops with RuntimeError (element 0 of tensors does not require grad)",
                help="call model.enable_input_require_grads() before training, or pass "
                'gradient_checkpointing_kwargs={"use_reentrant": False}',
            )
            return


def _after(call: Call, wraps: list[Call]) -> bool:
    """peft opens the input itself where checkpointing is on before the model is wrapped."""
    return bool(wraps) and all(wrap.order < call.order for wrap in wraps)


def _embedding_trains(run: Run) -> bool:
    for name in ("lora_modules_to_save", "lora_targets"):
        value = run.value(name)
        if name in run.settings and value is None:
            return True
        if isinstance(value, (list, tuple)) and any("embed" in str(part) or "wte" in str(part) for part in value):
            return True
    return False
