"""An Accelerate config file read as settings, and settings written back into it.

The keys and what ``accelerate launch`` makes of them follow ``accelerate.commands.launch`` and
``accelerate.utils.dataclasses`` of Accelerate 1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lintfit.documents.model import DataDocument, FileEdit, KeyPath, Node
from lintfit.errors import CannotWrite
from lintfit.frozen import replace
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, Special
from lintfit.sources.data_source import DataSource, Field
from lintfit.sources.values import coerced_integer, lowered, number, one_of, truth, word

DEEPSPEED = "deepspeed_config"
FSDP = "fsdp_config"

ENGINES: Mapping[str, str] = {
    "NO": "single",
    "MULTI_GPU": "ddp",
    "DEEPSPEED": "deepspeed",
    "FSDP": "fsdp",
}
"""The engine by ``distributed_type``; the other types run on other devices or engines than lintfit models."""

SHARDING_STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""FSDP 1's strategies; a number in the file counts from 1 (``accelerate.utils.constants``)."""

_device = lowered("none", "cpu", "nvme")


FIELDS: tuple[Field, ...] = (
    Field("nodes", ("num_machines",), coerced_integer),
    Field("zero_stage", (DEEPSPEED, "zero_stage"), coerced_integer, "deepspeed"),
    Field("offload_optimizer", (DEEPSPEED, "offload_optimizer_device"), _device, "deepspeed"),
    Field("offload_param", (DEEPSPEED, "offload_param_device"), _device, "deepspeed"),
    Field("gradient_accumulation_steps", (DEEPSPEED, "gradient_accumulation_steps"), coerced_integer, "deepspeed"),
    Field("max_grad_norm", (DEEPSPEED, "gradient_clipping"), number, "deepspeed"),
    Field("deepspeed_config_file", (DEEPSPEED, "deepspeed_config_file"), word, "deepspeed"),
    Field("zero3_init_flag", (DEEPSPEED, "zero3_init_flag"), truth, "deepspeed"),
    Field("zero3_save_16bit_model", (DEEPSPEED, "zero3_save_16bit_model"), truth, "deepspeed"),
    Field("gradient_checkpointing", (FSDP, "fsdp_activation_checkpointing"), truth, "fsdp"),
    Field("fsdp_auto_wrap_policy", (FSDP, "fsdp_auto_wrap_policy"), word, "fsdp"),
    Field("fsdp_min_num_params", (FSDP, "fsdp_min_num_params"), coerced_integer, "fsdp"),
    Field("fsdp_transformer_layer_cls_to_wrap", (FSDP, "fsdp_transformer_layer_cls_to_wrap"), word, "fsdp"),
    Field("fsdp_cpu_ram_efficient_loading", (FSDP, "fsdp_cpu_ram_efficient_loading"), truth, "fsdp"),
    Field("replicas", ("parallelism_config", "parallelism_config_dp_replicate_size"), coerced_integer),
    Field("tensor_parallel", ("parallelism_config", "parallelism_config_tp_size"), coerced_integer),
    Field("context_parallel", ("parallelism_config", "parallelism_config_cp_size"), coerced_integer),
    Field("sequence_parallel", ("parallelism_config", "parallelism_config_sp_size"), coerced_integer),
)

_FIELD_BY_NAME: Mapping[str, Field] = {field.name: field for field in FIELDS}

REFUSED_BESIDE_FILE = (
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "offload_optimizer_device",
    "offload_optimizer_nvme_path",
    "offload_param_device",
    "offload_param_nvme_path",
    "zero3_save_16bit_model",
)
"""Keys of ``deepspeed_config`` that may not stand beside ``deepspeed_config_file``, as ``mixed_precision`` at the top
may not (``DeepSpeedPlugin._deepspeed_config_checks``)."""

_EXCLUSIVE_WITH_FILE = frozenset(
    {"mixed_precision"}
    | {each.name for each in FIELDS if each.path in {(DEEPSPEED, key) for key in REFUSED_BESIDE_FILE}}
)
"""The same as settings."""


@dataclass(frozen=True, slots=True, eq=False)
class AccelerateSource(DataSource):
    """One Accelerate config file. ``settings`` is what it states under its own ``distributed_type``."""

    config: Mapping[str, Any]
    dialect: str = "accelerate"
    chosen: str | None = None
    """The engine that the command line chooses instead of ``distributed_type``."""

    @property
    def engine(self) -> str | Special | None:
        """The engine that ``distributed_type`` asks for; UNKNOWN for one that is not modelled, None unsaid."""
        setting = self.settings.get("engine")
        return self.chosen or (setting.value if setting else None)

    def under(self, engine: str) -> AccelerateSource:
        """The file as it counts under another engine; its own ``distributed_type`` stays to be overridden."""
        own = {name: setting for name, setting in self.settings.items() if name == "engine"}
        return replace(self, settings={**self.settings_for(engine), **own}, chosen=engine)

    def settings_for(self, engine: str) -> Mapping[str, Setting]:
        """The settings that count where the command line chooses the engine (``--use_deepspeed``, ``--use_fsdp``,
        ``--multi_gpu``): the file's ``distributed_type`` is then not looked at."""
        root = self.document.root
        if root is None or root.shape != "mapping":
            return {}
        found = {setting.name: setting for setting in _settings(self.document, root, engine)}
        found.pop("engine", None)
        return found

    def _assignments(self, name: str, value: Any) -> dict[KeyPath, Any] | None:
        value = "auto" if value is AUTO else value
        if isinstance(value, Special) or (name in _EXCLUSIVE_WITH_FILE and "deepspeed_config_file" in self.settings):
            return None
        match name:
            case "gpus":
                return None if self.engine == "single" else {("num_processes",): value}
            case "mixed_precision":
                return {("mixed_precision",): value}
            case "engine":
                return self._engine(value)
            case "fsdp":
                return self._fsdp(value)
            case "offload_optimizer" | "offload_param" if value == "nvme":
                # The launcher never hands the nvme paths on: this needs a DeepSpeed JSON.
                return None
            case "offload_optimizer" | "offload_param" if value == "none" and self.engine == "deepspeed":
                if self.node(*_FIELD_BY_NAME[name].path) is None:
                    return {}
        field = _FIELD_BY_NAME.get(name)
        if field is None or (field.engine is not None and field.engine != self.engine):
            return None
        return {field.path: value}

    def _engine(self, value: Any) -> dict[KeyPath, Any] | None:
        """``distributed_type``; the section of the engine that was goes, for nothing reads it any more."""
        from lintfit.sources.data_writer import REMOVE

        types = {engine: kind for kind, engine in ENGINES.items()}
        if value not in types:
            return None
        parallel = self.node("parallelism_config")
        if value != "fsdp" and parallel is not None and parallel.value is not None:
            raise CannotWrite("parallelism_config is for FSDP alone")
        old = {"deepspeed": FSDP, "fsdp": DEEPSPEED}.get(value)
        left: dict[KeyPath, Any] = {(old,): REMOVE} if old is not None and self.entry(old) is not None else {}
        return {("distributed_type",): types[value], **left}

    def stated_of_zero(self, by_trainer: bool) -> dict[str, Any]:
        """What the file says of DeepSpeed, as settings of a DeepSpeed JSON; "auto" is what it leaves to others.

        A Trainer fills in accumulation and clipping from its own arguments, which have to be the same.
        """
        values: dict[str, Any] = {"zero_stage": 2, "offload_optimizer": "none", "offload_param": "none"}
        keys = {"zero3_save_16bit_model": "stage3_gather_16bit_weights_on_model_save"}
        for name in (*values, *keys):
            setting = self.settings.get(name)
            if setting is not None and setting.known:
                values[keys.get(name, name)] = setting.value
        for name in ("max_grad_norm", "gradient_accumulation_steps"):
            setting = self.settings.get(name)
            values[name] = AUTO if by_trainer or setting is None or not setting.known else setting.value
        return {**values, "micro_batch_size": AUTO, "train_batch_size": AUTO}

    def hand_over(self, path: str) -> tuple[FileEdit, ...] | None:
        """The edits that name a DeepSpeed JSON and take out what Accelerate refuses beside one."""
        from lintfit.sources.data_writer import REMOVE, edits

        refused: list[KeyPath] = [(DEEPSPEED, key) for key in REFUSED_BESIDE_FILE]
        present = [each for each in (*refused, ("mixed_precision",), ("fp16",)) if self.node(*each) is not None]
        file: dict[KeyPath, Any] = {(DEEPSPEED, "deepspeed_config_file"): path}
        return edits(self.document, {**file, **dict.fromkeys(present, REMOVE)})

    def _fsdp(self, value: Any) -> dict[KeyPath, Any] | None:
        from lintfit.settings.values import Fsdp

        if not isinstance(value, Fsdp) or self.engine != "fsdp":
            return None
        if value.version == 2:
            if value.strategy not in ("FULL_SHARD", "SHARD_GRAD_OP"):
                return None
            strategy: dict[KeyPath, Any] = {(FSDP, "fsdp_reshard_after_forward"): value.strategy == "FULL_SHARD"}
        else:
            node = self.node(FSDP, "fsdp_sharding_strategy")
            same = node is not None and sharding_strategy(node.value) == value.strategy
            strategy = {} if same else {(FSDP, "fsdp_sharding_strategy"): value.strategy}
        version: dict[KeyPath, Any] = {}
        policy = self.settings.get("fsdp_auto_wrap_policy")
        if value.auto_wrap and (policy is None or policy.value == "NO_WRAP"):
            version = {(FSDP, "fsdp_auto_wrap_policy"): "TRANSFORMER_BASED_WRAP"}
        if _fsdp_version(self.node(FSDP)) != value.version:
            version[FSDP, "fsdp_version"] = value.version
        return {**version, **strategy, (FSDP, "fsdp_offload_params"): value.cpu_offload}


def read_accelerate(document: DataDocument) -> AccelerateSource:
    """The settings that an Accelerate file states, each with the span of its value.

    Sections that its ``distributed_type`` leaves unread (``deepspeed_config`` under ``MULTI_GPU``) state nothing.
    """
    root = document.root
    if root is None or root.shape != "mapping":
        return AccelerateSource(document, {}, config={})
    settings = {setting.name: setting for setting in _settings(document, root, None)}
    plain = root.plain()
    return AccelerateSource(document, settings, config=plain if isinstance(plain, dict) else {})


def _settings(document: DataDocument, root: Node, engine: str | None) -> Iterator[Setting]:
    stated = _engine(document, root)
    chosen = engine if engine is not None else stated.value if stated else None
    if stated is not None:
        yield stated
    yield from _processes(document, root, stated if engine is None else None)
    yield from _mixed_precision(document, root)
    for field in FIELDS:
        node = _nested(root, field.path)
        if node is not None and field.engine in (None, chosen):
            value = field.read(node.value) if node.shape == "scalar" else UNKNOWN
            if value is not UNKNOWN or node.value is not None:
                yield Setting(field.name, value, Provenance.at(document, node.span))
    if chosen == "fsdp":
        yield from _fsdp(document, root)
    gpu_ids = root.get("gpu_ids")
    if gpu_ids is not None and gpu_ids.value not in (None, "all"):
        yield Setting("visible_devices", gpu_ids.value, Provenance.at(document, gpu_ids.span))


def _nested(root: Node, path: KeyPath) -> Node | None:
    """The value at a path; ``fsdp_config`` keys may also be written without their prefix."""
    node = root.get(*path)
    if node is None and path[0] == FSDP:
        node = root.get(FSDP, str(path[1]).removeprefix("fsdp_"))
    return node


def _engine(document: DataDocument, root: Node) -> Setting | None:
    node = root.get("distributed_type")
    if node is None:
        return None
    # PyYAML reads an unquoted NO as false, which Accelerate takes for "no distribution".
    kind = "NO" if node.value is False else node.value
    engine = ENGINES.get(kind, UNKNOWN) if isinstance(kind, str) else UNKNOWN
    return Setting("engine", engine, Provenance.at(document, node.span, str(kind)))


def _processes(document: DataDocument, root: Node, engine: Setting | None) -> Iterator[Setting]:
    node = root.get("num_processes")
    stated: Setting | None = None
    if node is not None and node.value not in (None, -1):
        stated = Setting("gpus", coerced_integer(node.value), Provenance.at(document, node.span))
    if engine is not None and engine.value == "single":
        detail = "distributed_type NO starts one process"
        place = engine.provenance.place
        yield Setting("gpus", 1, Provenance("derived", detail, place)).over(
            stated if stated is not None and stated.value != 1 else None
        )
    elif stated is not None:
        yield stated


def _mixed_precision(document: DataDocument, root: Node) -> Iterator[Setting]:
    node = root.get("mixed_precision")
    if node is not None and node.value is not None:
        value = "no" if node.value is False else one_of("no", "fp16", "bf16", "fp8")(node.value)
        yield Setting("mixed_precision", value, Provenance.at(document, node.span))
        return
    old = root.get("fp16")
    if node is None and old is not None:
        value = "fp16" if old.value else "no"
        yield Setting("mixed_precision", value, Provenance.at(document, old.span, "old key"))


def _fsdp_version(section: Node | None) -> Literal[1, 2]:
    node = (section.get("fsdp_version") or section.get("version")) if section else None
    return 2 if node is not None and coerced_integer(node.value) == 2 else 1


def _fsdp(document: DataDocument, root: Node) -> Iterator[Setting]:
    from lintfit.settings.values import Fsdp

    section = root.get(FSDP)
    entry = root.entry(FSDP) or root.entry("distributed_type")
    if entry is None:
        return
    version = _fsdp_version(section)
    offload = _nested(root, (FSDP, "fsdp_offload_params"))
    value = Fsdp(
        version=version,
        strategy=_strategy(root, version),
        cpu_offload=offload is not None and truth(offload.value) is True,
    )
    yield Setting("fsdp", value, Provenance.at(document, entry.key_span))


def _strategy(root: Node, version: int) -> str:
    """The sharding strategy in FSDP 1's names.

    Under version 1 ``fsdp_reshard_after_forward`` has no effect: the launcher always exports a sharding strategy.
    """
    if version == 2:
        node = _nested(root, (FSDP, "fsdp_reshard_after_forward"))
        return "SHARD_GRAD_OP" if node is not None and truth(node.value) is False else "FULL_SHARD"
    node = _nested(root, (FSDP, "fsdp_sharding_strategy"))
    return sharding_strategy(node.value if node is not None else None)


def sharding_strategy(value: Any) -> str:
    """FSDP 1's name of a strategy that is given by name or number; ``FULL_SHARD`` for nothing or nonsense."""
    if value is None:
        return "FULL_SHARD"
    index = coerced_integer(value)
    if isinstance(index, int) and 1 <= index <= len(SHARDING_STRATEGIES):
        return SHARDING_STRATEGIES[index - 1]
    name = str(value).upper()
    return name if name in SHARDING_STRATEGIES else "FULL_SHARD"
