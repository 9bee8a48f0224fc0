from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.swift import stated_on, swift_of
from lintfit.settings.model import Place, is_count

if TYPE_CHECKING:
    from lintfit.sources.recipes.swift import SwiftRecipe


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = swift_of(context.run)
    if recipe is None or not recipe.spreads_layers:
        return
    found = next(_refusals(recipe), None)
    if found is None:
        return
    what, error, place = found
    count = recipe.spread.stages
    visible = recipe.spread.gpus.value if is_count(recipe.spread.gpus.value) else count
    alone = "NPROC_PER_NODE is not set" if not recipe.spread.distributed else "there are more GPUs than processes"
    yield Report(
        place,
        f"{what} with {count} GPUs in one process ({alone}): device_map spreads the model over them: ms-swift stops "
        f"with ValueError ({error})",
        help=f"set NPROC_PER_NODE={visible} to start a process on each GPU, or leave one GPU visible",
    )


def _refusals(recipe: SwiftRecipe) -> Iterator[tuple[str, str, Place]]:
    """What ``is_mp()`` refuses: the argument, the error that comes, and where it is stated."""
    arguments = recipe.arguments
    newer = arguments.since(3, 1)
    sharded = "DeepSpeed is not compatible with `device_map`" if newer else "DeepSpeed is not compatible with MP"
    if (stated := stated_on(recipe, "deepspeed")) is not None:
        yield "DeepSpeed", sharded, stated[1]
    if (stated := stated_on(recipe, "fsdp")) is not None and arguments.since(3, 12):
        yield "FSDP", "FSDP2 is not compatible with `device_map`", stated[1]
    if (stated := stated_on(recipe, "use_liger_kernel")) is not None and arguments.since(3, 5):
        yield "Liger's kernels", "liger_kernel does not support device_map", stated[1]
    if recipe.kind == "grpo" and arguments.since(3, 6) and (stated := stated_on(recipe, "use_vllm")) is not None:
        yield "vLLM", "GRPO with vLLM is not compatible with `device_map`", stated[1]
