from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import breaks_or_strains, of_cause, place_of
from lintfit.checks.helpers.wording import billions, gib, listed
from lintfit.findings.model import Severity

_TABLES = frozenset(
    {"embed_tokens", "lm_head", "wte", "word_embeddings", "embed_in", "embed_out", "output_layer", "tok_embeddings"}
)
"""Names of the modules with a row for every token of the vocabulary."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or spec.method != "lora" or breaks_or_strains(context) is None:
        return
    tables = [name for name in spec.lora_modules_to_save if name.rpartition(".")[2] in _TABLES]
    others = tuple(name for name in spec.lora_modules_to_save if name not in tables)
    without = context.what_if(lora_modules_to_save=others) if tables else None
    if without is None:
        return
    trained = len(tables) * spec.facts.vocab * spec.facts.hidden
    # The rows of new tokens must be trained.
    extended = run.script is not None and bool(run.script.calls("resize_token_embeddings"))
    yield Report(
        place_of(run, "lora_modules_to_save"),
        f"modules_to_save trains {listed(tables)} whole: {billions(trained)} parameters and a second copy of them, "
        f"peak {gib(estimate.peak.likely)}, without {gib(without.peak.likely)}",
        severity=Severity.INFO if extended else of_cause(context, without),
        help="trainable_token_indices trains the new tokens' rows only (peft 0.15 and up)",
    )
