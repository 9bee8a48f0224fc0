from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.trees import data_of, without
from lintfit.checks.helpers.wording import listed
from lintfit.documents.model import DataDocument, Entry, KeyPath, Node
from lintfit.findings.model import Applicability, Related, Severity
from lintfit.run.model import Run
from lintfit.schema.sections import load, section_at
from lintfit.settings.model import Place
from lintfit.sources.deepspeed import DeepSpeedSource

_SECTION = "deepspeed_config"
_COMPARES = "0.16"
"""The first accelerate that looks for such keys (``utils/dataclasses.py:DeepSpeedPlugin._deepspeed_config_checks``); up
to 0.15 the DeepSpeed file was taken and they were not read."""

_IN_THE_FILE: dict[str, KeyPath] = {
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "gradient_clipping": ("gradient_clipping",),
    "zero_stage": ("zero_optimization", "stage"),
    "offload_optimizer_device": ("zero_optimization", "offload_optimizer", "device"),
    "offload_param_device": ("zero_optimization", "offload_param", "device"),
    "offload_optimizer_nvme_path": ("zero_optimization", "offload_optimizer", "nvme_path"),
    "offload_param_nvme_path": ("zero_optimization", "offload_param", "nvme_path"),
    "zero3_save_16bit_model": ("zero_optimization", "stage3_gather_16bit_weights_on_model_save"),
}
_ABSENT = {"offload_optimizer_device": "none", "offload_param_device": "none", "zero3_save_16bit_model": False}
"""What DeepSpeed takes where the file does not say."""


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "accelerate")
    if found is None:
        return
    document, root = found
    kind, section = root.get("distributed_type"), root.get(_SECTION)
    file = section.get("deepspeed_config_file") if section is not None else None
    if section is None or file is None or kind is None or kind.value != "DEEPSPEED":
        return
    clashing = _clashing(root, section, context.runs)
    if not clashing or older(context.runs, "accelerate", _COMPARES) is True:
        return
    settled = all(_agrees(path, entry, context.runs) for path, entry in clashing)
    yield Report(
        Place(document, clashing[0][1].key_span),
        f"{listed(entry.key for _, entry in clashing)} cannot stand beside deepspeed_config_file: accelerate stops "
        'with ValueError "When using `deepspeed_config_file`, the following accelerate config variables will be '
        'ignored"',
        severity=None if _is_started(document, context.runs) else Severity.INFO,
        related=(
            *(Related(Place(document, entry.key_span), "and here") for _, entry in clashing[1:]),
            Related(Place(document, file.span), "the file is named here"),
        ),
        fix=without(
            document,
            "delete what the DeepSpeed file says already",
            Applicability.SAFE if settled else Applicability.DISPLAY,
            *(path for path, _ in clashing),
        ),
        help="" if settled else "say it in the DeepSpeed file and delete it here",
    )


def _is_started(document: DataDocument, runs: tuple[Run, ...]) -> bool:
    """Whether a launch starts with this very file: it is the ``DeepSpeedPlugin`` of a Trainer or an ``Accelerator``
    that stops, not the launcher."""
    return any(
        run.launch is not None and run.accelerate is not None and run.accelerate.document is document for run in runs
    )


def _clashing(root: Node, section: Node, runs: tuple[Run, ...]) -> list[tuple[tuple[str, ...], Entry]]:
    known = section_at(load("accelerate"), _SECTION)["properties"]
    clashing: list[tuple[tuple[str, ...], Entry]] = [
        ((_SECTION, entry.key), entry)
        for entry in section.entries
        if known.get(entry.key, {}).get("x-not-beside") == "deepspeed_config_file"
    ]
    precision = root.entry("mixed_precision")
    # `accelerate launch --mixed_precision` takes the YAML's own value out of the comparison.
    given = any(run.launch is not None and "mixed_precision" in run.launch.settings for run in runs)
    if precision is not None and precision.value.value is not None and not given:
        clashing.append((("mixed_precision",), precision))
    return clashing


def _agrees(path: tuple[str, ...], entry: Entry, runs: tuple[Run, ...]) -> bool:
    """Whether the DeepSpeed file says the same, so that deleting the key changes nothing that was meant."""
    files = [run.deepspeed for run in runs if run.deepspeed is not None]
    return bool(files) and all(_says(file, path[-1], entry.value.value) for file in files)


def _says(file: DeepSpeedSource, key: str, value: object) -> bool:
    if key == "mixed_precision":
        on = {
            name: node is not None and node.value is True
            for name in ("bf16", "fp16")
            for node in [file.node(name, "enabled")]
        }
        return on == {"bf16": value == "bf16", "fp16": value == "fp16"}
    node = file.node(*_IN_THE_FILE[key])
    return (_ABSENT.get(key) if node is None else node.value) == value
