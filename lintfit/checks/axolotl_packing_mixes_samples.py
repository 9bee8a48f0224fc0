from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.axolotl import place, recipe_of
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.settings.model import UNKNOWN


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None or recipe.config.get("sample_packing").value is not True:
        return
    stated = recipe.config.attention()
    if (
        stated.provenance.kind != "default"
        or stated.value is UNKNOWN
        or recipe.config.states("gemma4_hybrid_attn_impl")
    ):
        return
    if recipe.config.range.older:
        return  # 0.4.0 masks Llama's packed samples itself (``hijack_llama_prepare_4d_mask``)
    newer = recipe.config.range.all_since("0.12")
    yield Report(
        place(context, recipe.config.get("sample_packing")),
        "sample_packing without an attention backend: every sample attends to those packed in front of it, and "
        "axolotl only warns that it “does not handle cross-sample decontamination”",
        help="attn_implementation: flash_attention_2" if newer else "flash_attention: true",
    )
