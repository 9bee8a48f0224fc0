from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.swift import stated_on, swift_of
from lintfit.findings.model import Applicability, Fix
from lintfit.settings.model import UNKNOWN

_FLASH = ("flash_attn", "flash_attention_2", "flash_attention_3", "flash_attention_4")


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = swift_of(context.run)
    if recipe is None or not recipe.arguments.since(3, 4) or not recipe.arguments.complete:
        return
    found = stated_on(recipe, "packing", "padding_free")
    kernel = recipe.arguments.get("attn_impl")
    if found is None or found[0].value is UNKNOWN or kernel is None:
        return
    if kernel.value in _FLASH or kernel.value is UNKNOWN:
        return
    name = "packing" if stated_on(recipe, "packing") is not None else "padding_free"
    written = recipe.arguments.write(("attn_impl",), "flash_attn")
    yield Report(
        found[1],
        f'{name} without attn_impl flash_attn: ms-swift stops with ValueError (The "{name}" feature requires a flash '
        "attention implementation)",
        fix=Fix("set attn_impl flash_attn", Applicability.UNSAFE, written) if written else None,
        help="set attn_impl: flash_attn, which needs flash-attn installed",
    )
