"""A DeepSpeed JSON read as settings, and settings written back into it.

The keys, their coercions and the deprecated forms follow ``deepspeed.runtime.config`` and
``deepspeed.runtime.zero.config`` of DeepSpeed 0.19.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lintfit.documents.model import DataDocument, FileEdit, KeyPath, Node
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, Special
from lintfit.sources.data_source import DataSource, Field
from lintfit.sources.values import coerced_integer, integer, number, one_of, truth, word

ZERO = "zero_optimization"


_device = one_of("none", "cpu", "nvme")

FIELDS: tuple[Field, ...] = (
    Field("micro_batch_size", ("train_micro_batch_size_per_gpu",), integer),
    Field("gradient_accumulation_steps", ("gradient_accumulation_steps",), integer),
    Field("train_batch_size", ("train_batch_size",), integer),
    Field("max_grad_norm", ("gradient_clipping",), number),
    Field("fp16", ("fp16", "enabled"), truth),
    Field("optimizer", ("optimizer", "type"), word),
    Field("learning_rate", ("optimizer", "params", "lr"), number),
    Field("adam_epsilon", ("optimizer", "params", "eps"), number),
    Field("weight_decay", ("optimizer", "params", "weight_decay"), number),
    Field("scheduler", ("scheduler", "type"), word),
    Field("warmup_min_lr", ("scheduler", "params", "warmup_min_lr"), number),
    Field("warmup_max_lr", ("scheduler", "params", "warmup_max_lr"), number),
    Field("warmup_steps", ("scheduler", "params", "warmup_num_steps"), integer),
    Field("max_steps", ("scheduler", "params", "total_num_steps"), integer),
    Field("overlap_comm", (ZERO, "overlap_comm"), truth),
    Field("contiguous_gradients", (ZERO, "contiguous_gradients"), truth),
    Field("reduce_bucket_size", (ZERO, "reduce_bucket_size"), coerced_integer),
    Field("allgather_bucket_size", (ZERO, "allgather_bucket_size"), coerced_integer),
    Field("sub_group_size", (ZERO, "sub_group_size"), coerced_integer),
    Field("stage3_prefetch_bucket_size", (ZERO, "stage3_prefetch_bucket_size"), coerced_integer),
    Field("stage3_param_persistence_threshold", (ZERO, "stage3_param_persistence_threshold"), coerced_integer),
    Field("stage3_max_live_parameters", (ZERO, "stage3_max_live_parameters"), coerced_integer),
    Field("stage3_max_reuse_distance", (ZERO, "stage3_max_reuse_distance"), coerced_integer),
    Field("stage3_gather_16bit_weights_on_model_save", (ZERO, "stage3_gather_16bit_weights_on_model_save"), truth),
    Field("grad_accum_dtype", ("data_types", "grad_accum_dtype"), word),
    Field("communication_data_type", ("communication_data_type",), one_of("fp16", "bf16", "fp32")),
    Field("sequence_parallel", ("sequence_parallel_size",), integer),
    Field("tensor_parallel", ("tensor_parallel", "autotp_size"), coerced_integer),
    Field("zero_allow_untested_optimizer", ("zero_allow_untested_optimizer",), truth),
    Field("zero_force_ds_cpu_optimizer", ("zero_force_ds_cpu_optimizer",), truth),
)

ZERO_SIZES: Mapping[str, str] = {
    field.name: str(field.path[1]) for field in FIELDS if field.path[0] == ZERO and field.read is coerced_integer
}
"""The keys of ``zero_optimization`` that say how large something is, by setting."""

_FIELD_BY_NAME: Mapping[str, Field] = {field.name: field for field in FIELDS}


@dataclass(frozen=True, slots=True, eq=False)
class DeepSpeedSource(DataSource):
    """One DeepSpeed JSON. ``config`` is its content as plain values; ``settings`` is what it states."""

    config: Mapping[str, Any]
    dialect: str = "deepspeed"

    def _assignments(self, name: str, value: Any) -> dict[KeyPath, Any] | None:
        from lintfit.sources.data_writer import REMOVE

        word_or_value = "auto" if value is AUTO else value
        if isinstance(word_or_value, Special):
            return None
        match name:
            case "zero_stage":
                return {**self._zero_object(), (ZERO, "stage"): word_or_value}
            case "offload_optimizer" | "offload_param":
                return self._offload(name, word_or_value)
            case "bf16":
                return {(bf16_section(self.document.root), "enabled"): word_or_value}
            case "adam_beta1" | "adam_beta2":
                return self._betas(name, word_or_value)
        field = _FIELD_BY_NAME.get(name)
        if field is None:
            return None
        path = _written_path(self.document.root, field.path)
        if word_or_value is None:
            return {path: REMOVE}
        prefix = self._zero_object() if path[0] == ZERO else {}
        return {**prefix, path: word_or_value}

    def _zero_object(self) -> dict[KeyPath, Any]:
        """What it takes for ``zero_optimization`` to be an object where it is DeepSpeed's old bare boolean."""
        node = self.node(ZERO)
        if node is None or node.shape == "mapping":
            return {}
        return {(ZERO,): {"stage": 1}} if node.value is True else {(ZERO,): {}}

    def write_offload(self, name: str, device: str, nvme_path: str | None) -> tuple[FileEdit, ...] | None:
        """The edits that offload to a device; ``nvme_path`` is the folder that nvme needs where the file names none."""
        from lintfit.sources.data_writer import edits

        assignments = self._offload(name, device, nvme_path)
        return edits(self.document, assignments) if assignments is not None else None

    def _offload(self, name: str, device: Any, nvme_path: str | None = None) -> dict[KeyPath, Any] | None:
        from lintfit.sources.data_writer import REMOVE

        drop: dict[KeyPath, Any] = {(ZERO, old): REMOVE for old in _DEPRECATED_OFFLOAD[name] if self.node(ZERO, old)}
        block = self.node(ZERO, name)
        if device == "none":
            return {**drop, **({(ZERO, name): REMOVE} if block else {})}
        path: dict[str, str] = {}
        if device == "nvme" and self.node(ZERO, name, "nvme_path") is None:
            if nvme_path is None:
                return None
            path = {"nvme_path": nvme_path}
        if block is not None and block.shape == "mapping":
            added: dict[KeyPath, Any] = {(ZERO, name, key): value for key, value in path.items()}
            return {**drop, (ZERO, name, "device"): device, **added}
        return {**self._zero_object(), **drop, (ZERO, name): {"device": device, **path}}

    def _betas(self, name: str, value: Any) -> dict[KeyPath, Any] | None:
        index = 0 if name == "adam_beta1" else 1
        betas = self.node("optimizer", "params", "betas")
        if betas is None or betas.shape != "sequence" or len(betas.elements) != 2:
            return None
        return {("optimizer", "params", "betas", index): value}


_DEPRECATED_OFFLOAD: Mapping[str, tuple[str, ...]] = {
    "offload_optimizer": ("cpu_offload",),
    "offload_param": ("cpu_offload_param", "cpu_offload_params"),
}
"""Old switches; until 0.6.7 the second was written ``cpu_offload_params`` (``runtime/zero/constants.py``)."""


def read_deepspeed(document: DataDocument) -> DeepSpeedSource:
    """The settings that a DeepSpeed JSON states, each with the span of its value.

    Keys that the file does not mention are absent; what DeepSpeed would refuse is ``UNKNOWN``. A file whose
    root is no mapping states nothing.
    """
    root = document.root
    if root is None or root.shape != "mapping":
        return DeepSpeedSource(document, {}, config={})
    settings = {setting.name: setting for setting in _settings(document, root)}
    plain = root.plain()
    return DeepSpeedSource(document, settings, config=plain if isinstance(plain, dict) else {})


def _settings(document: DataDocument, root: Node) -> Iterator[Setting]:
    for field in FIELDS:
        node = root.get(*_written_path(root, field.path))
        if node is not None:
            value = field.read(node.value) if node.shape == "scalar" else UNKNOWN
            yield Setting(field.name, value, Provenance.at(document, node.span))
    yield from _zero_stage(document, root)
    for name in _DEPRECATED_OFFLOAD:
        yield from _offload_device(document, root, name)
    yield from _bf16(document, root)
    yield from _betas(document, root)


def _written_path(root: Node | None, path: KeyPath) -> KeyPath:
    """The path under which a key stands: pydantic takes ``stage3_*`` also by the field's name, without the prefix."""
    if root is not None and path[0] == ZERO and str(path[1]).startswith("stage3_") and root.get(*path) is None:
        short = (ZERO, str(path[1]).removeprefix("stage3_"))
        return short if root.get(*short) is not None else path
    return path


def _zero_stage(document: DataDocument, root: Node) -> Iterator[Setting]:
    zero = root.get(ZERO)
    if zero is None:
        return
    if zero.shape == "scalar":
        # A bare boolean is DeepSpeed's first format; a bare number never was one and raises a TypeError.
        value = int(zero.value) if isinstance(zero.value, bool) else UNKNOWN
        yield Setting("zero_stage", value, Provenance.at(document, zero.span, "old boolean form"))
        size = root.get("allgather_size")
        if zero.value is True and size is not None:
            yield Setting("allgather_bucket_size", integer(size.value), Provenance.at(document, size.span))
        return
    stage = zero.get("stage")
    if stage is not None:
        yield Setting("zero_stage", _stage(stage), Provenance.at(document, stage.span))


def _stage(node: Node) -> int | Special:
    value = int(node.value) if isinstance(node.value, bool) else coerced_integer(node.value)
    return value if isinstance(value, Special) or 0 <= value <= 3 else UNKNOWN


def _offload_device(document: DataDocument, root: Node, name: str) -> Iterator[Setting]:
    old = next((node for key in _DEPRECATED_OFFLOAD[name] if (node := root.get(ZERO, key)) is not None), None)
    deprecated: Setting | None = None
    if old is not None:
        enabled = truth(old.value)
        device = enabled if isinstance(enabled, Special) else "cpu" if enabled else "none"
        deprecated = Setting(name, device, Provenance.at(document, old.span, "deprecated key"))
    block = root.get(ZERO, name)
    if block is None or (block.shape == "scalar" and block.value is None):
        if deprecated is not None:
            yield deprecated
        return
    if block.shape != "mapping":
        yield Setting(name, UNKNOWN, Provenance.at(document, block.span)).over(deprecated)
        return
    node = block.get("device")
    if node is None:
        yield Setting(name, "none", Provenance.at(document, block.span, "no device given")).over(deprecated)
    else:
        yield Setting(name, _device(node.value), Provenance.at(document, node.span)).over(deprecated)


def bf16_section(root: Node | None) -> str:
    """The section that decides bf16: ``bfloat16``, its old name, only where there is no ``bf16`` or a null one."""
    old = root is not None and not root.states("bf16") and root.get("bfloat16") is not None
    return "bfloat16" if old else "bf16"


def _bf16(document: DataDocument, root: Node) -> Iterator[Setting]:
    section = bf16_section(root)
    node = root.get(section, "enabled")
    if node is None:
        return
    value = truth(node.value)
    if value is AUTO and section != "bf16":
        yield Setting("bf16", True, Provenance.at(document, node.span, _NOT_FILLED))
    else:
        yield Setting("bf16", value, Provenance.at(document, node.span))


_NOT_FILLED = 'nobody fills "auto" under the old name, and DeepSpeed takes the word for true'
"""transformers fills ``bf16.enabled`` alone (4.28 ``deepspeed.py``, 4.16 neither), accelerate stops at the word
(``DeepSpeedPlugin.fill_match``), and so does DeepSpeed since 0.17.1 (``precision_config.py``, a field of type bool).
Before, ``get_bfloat16_enabled`` gave the word back, which is true."""


def _betas(document: DataDocument, root: Node) -> Iterator[Setting]:
    betas = root.get("optimizer", "params", "betas")
    if betas is None:
        return
    for index, name in enumerate(("adam_beta1", "adam_beta2")):
        node = betas.get(index) or betas
        value = number(node.value) if node.shape == "scalar" else UNKNOWN
        yield Setting(name, value, Provenance.at(document, node.span))


def new_config(changes: Mapping[str, Any], template: Literal["transformers", "deepspeed"] = "transformers") -> str:
    """The text of a fresh DeepSpeed JSON that says ``changes``, indented by two spaces with a final newline.

    ``transformers``: for the Trainer and Accelerate, which fill ``"auto"``; everything that the script decides is
    ``"auto"``. ``deepspeed``: for ``deepspeed.initialize``, which fills nothing, so only ``changes`` is written.
    Raises ValueError for a setting that a DeepSpeed JSON has no key for.
    """
    changes, folder = {name: value for name, value in changes.items() if name != "nvme_path"}, changes.get("nvme_path")
    stage = changes.get("zero_stage", 0)
    config: dict[str, Any] = _transformers_template(stage, changes) if template == "transformers" else {}
    for name, value in changes.items():
        path, plain = _fresh(name, "auto" if value is AUTO else value)
        if plain == "none" and path[-1] == "device":
            continue
        section = config
        for step in path[:-1]:
            section = section.setdefault(str(step), {})
        section[str(path[-1])] = plain
        if plain == "nvme" and folder is not None:
            section["nvme_path"] = folder
    return _ROUND.sub(lambda found: f"{found[1]}e{len(found[2])}", json.dumps(config, indent=2)) + "\n"


_ROUND = re.compile(r"(?<=: )(\d)(0{6,20})(?=,?\n)")
"""A size as people do not write it: DeepSpeed's own pages have ``5e8``."""


def _fresh(name: str, value: Any) -> tuple[KeyPath, Any]:
    match name:
        case "zero_stage":
            return (ZERO, "stage"), value
        case "bf16":
            return ("bf16", "enabled"), value
        case "offload_optimizer" | "offload_param":
            return (ZERO, name, "device"), value
    if name not in _FIELD_BY_NAME:
        raise ValueError(f"a DeepSpeed JSON has no key for {name}")
    return _FIELD_BY_NAME[name].path, value


def _transformers_template(stage: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What the Trainer fills is left to it; ``"auto"`` buckets follow the hidden size instead of 5e8 elements."""
    zero: dict[str, Any] = {"stage": stage}
    if stage:
        zero["reduce_bucket_size"] = "auto"
    if stage == 3:
        zero["stage3_prefetch_bucket_size"] = "auto"
        zero["stage3_param_persistence_threshold"] = "auto"
        # The step copies one sub-group's gradients to fp32 at a time; the default of 1e9 elements is 5.6 GiB of copies.
        zero["sub_group_size"] = 100_000_000
        zero["stage3_gather_16bit_weights_on_model_save"] = True
    precision = "fp16" if changes.get("fp16") and not changes.get("bf16") else "bf16"
    return {
        precision: {"enabled": "auto"},
        ZERO: zero,
        "gradient_clipping": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto",
    }
