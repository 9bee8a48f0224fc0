from __future__ import annotations

import json
from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.trees import dotted
from lintfit.checks.helpers.values import FoundMistake, found_in
from lintfit.documents.model import Edit, Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Severity
from lintfit.settings.model import Place

_READ = lazy_pattern(
    r"(train_.*|gradient_.*|(optimizer|scheduler)\.params\..*|(bf16|fp16)\.enabled|zero_optimization\."
    r"(stage|offload_\w+\.(device|nvme_path)|stage3_gather_16bit_weights_on_model_save))"
)
"""Keys of which transformers 5.23 (``integrations/deepspeed.py``) or accelerate 1.15 (``utils/dataclasses.py``,
``utils/deepspeed.py``) makes something itself. What both only hold against ``"auto"`` is none of them
(``zero_optimization.reduce_bucket_size``: ``fill_only``, ``deepspeed_config_process(must_match=False)``)."""


def check_file(context: FileContext) -> Iterator[Report]:
    for found in found_in(context):
        if found.mistake.stringly and not _is_number_in_json(found):
            read = _READ.fullmatch(dotted(found.mistake.path)) is not None
            harmless = found.mistake.coerced and found.dialect == "deepspeed" and not (read and _is_compared(context))
            yield _report(found, harmless)


def _is_as_meant(found: FoundMistake) -> bool:
    """Whether nobody checks the value, and its word for true is as true as any other."""
    mistake = found.mistake
    return mistake.literal == "true" and not mistake.refused and not mistake.coerced and not found.fails_later


def _is_number_in_json(found: FoundMistake) -> bool:
    """Whether a DeepSpeed JSON is only called a YAML, in which ``5e8`` is a word: accelerate and transformers read what
    they are handed with ``json.load`` (``HfDeepSpeedConfig``)."""
    document, node = found.document, found.mistake.node
    if document.kind is not Kind.YAML or found.dialect != "deepspeed" or not document.text.lstrip().startswith("{"):
        return False
    return not document.slice(node.span).startswith(("'", '"'))


def _is_compared(context: FileContext) -> bool:
    """Whether transformers or accelerate read the file, as far as anybody knows: DeepSpeed alone takes it as meant."""
    return not context.runs or reader_of(context.runs) != "deepspeed"


def _report(found: FoundMistake, harmless: bool) -> Report:
    mistake = found.mistake
    consequence = "DeepSpeed reads it as meant" if harmless else found.consequence
    text = mistake.literal if mistake.literal is not None else json.dumps(str(mistake.node.value))
    what = f"{'is a string' if mistake.literal is not None else 'is not a string'}; write {text}"
    if found.document.kind is Kind.YAML and mistake.literal is None:
        text = f"'{mistake.node.value}'"
    return Report(
        Place(found.document, mistake.node.span),
        f"{found.statement} {what} ({mistake.allowed}): {consequence}",
        severity=Severity.INFO if harmless or _is_as_meant(found) else found.severity,
        fix=spliced(found.document, f"write {text}", Applicability.SAFE, [Edit(mistake.node.span, text)]),
    )
