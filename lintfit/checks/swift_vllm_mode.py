from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.swift import stated_on, swift_of
from lintfit.settings.model import UNKNOWN


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = swift_of(context.run)
    if recipe is None or recipe.kind not in ("grpo", "gkd") or not recipe.arguments.since(3, 11):
        return
    if not recipe.arguments.complete:
        return
    uses, mode = recipe.arguments.get("use_vllm"), stated_on(recipe, "vllm_mode")
    if uses is None or uses.value is UNKNOWN:
        return
    if uses.value is True and mode is None and uses.provenance.place is not None:
        yield Report(
            uses.provenance.place,
            "use_vllm without vllm_mode: ms-swift stops with ValueError (vllm_mode is required when use_vllm is true)",
            help="set vllm_mode: colocate shares the trainer's GPUs, server asks those of swift rollout",
        )
    elif uses.value is not True and mode is not None:
        yield Report(
            mode[1],
            "vllm_mode without use_vllm: ms-swift stops with ValueError (vllm_mode is not supported when use_vllm is "
            "false)",
            help="set use_vllm true, or leave vllm_mode out",
        )
