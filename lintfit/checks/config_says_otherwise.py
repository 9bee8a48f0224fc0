from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.documents.model import DataDocument, Span
from lintfit.settings.model import Place, Setting
from lintfit.sources.accelerate import AccelerateSource
from lintfit.sources.deepspeed import DeepSpeedSource

_STAGE = re.compile(r"(?:zero|stage|(?<![a-z])z)[ _-]?([0-3])(?![0-9])", re.IGNORECASE)
_OFFLOAD = re.compile(r"offload", re.IGNORECASE)
_WITHOUT = re.compile(r"(no|non|not|without|wo|w/o|un)[ _-]?offload", re.IGNORECASE)


def check_file(context: FileContext) -> Iterator[Report]:
    source, document = context.source, context.document
    if not isinstance(source, DeepSpeedSource | AccelerateSource) or not isinstance(document, DataDocument):
        return
    if isinstance(source, AccelerateSource) and (source.engine != "deepspeed" or "zero_stage" not in source.settings):
        return
    name = document.path.stem
    stages = {int(digit) for digit in _STAGE.findall(name)}
    stage = source.settings.get("zero_stage")
    if len(stages) == 1 and stage is not None and stage.known and stage.value not in stages:
        yield _report(document, stage, f"the file is named {document.path.name}, but its stage is {stage.value}")
    offloads = [source.settings.get(key) for key in ("offload_optimizer", "offload_param")]
    stated = [setting for setting in offloads if setting is not None]
    devices = {setting.value for setting in stated}
    if not _OFFLOAD.search(name):
        return
    if _WITHOUT.search(name):
        if devices & {"cpu", "nvme"}:
            wrong = next(setting for setting in stated if setting.value in ("cpu", "nvme"))
            yield _report(document, wrong, f"the file is named {document.path.name}, but it offloads to {wrong.value}")
    elif stated and devices == {"none"}:
        yield _report(document, stated[0], f'the file is named {document.path.name}, but its device is "none"')


def _report(document: DataDocument, setting: Setting, message: str) -> Report:
    place = setting.provenance.place or Place(document, Span(0, min(1, len(document.text))))
    return Report(place, message, help="rename the file, or correct the value")
