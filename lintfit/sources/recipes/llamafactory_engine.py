"""How a LLaMA-Factory run is spread over GPUs: DeepSpeed's config, FSDP, and backends of others.

``deepspeed`` is a path relative to the working directory, which usually is a checkout of LLaMA-Factory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.catalog import llamafactory as catalog
from lintfit.documents.model import DataDocument
from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments
from lintfit.sources.recipes.zero_section import of_zero

FOLDER = "examples/deepspeed"
"""Where LLaMA-Factory's checkout has its DeepSpeed configs."""
_MEGATRON = ("USE_MCA", "USE_MEGATRON_BRIDGE")
MEGATRON_KEYS = {
    "tensor_model_parallel_size": "tensor_parallel",
    "pipeline_model_parallel_size": "pipeline_parallel",
    "expert_model_parallel_size": "expert_parallel",
}
"""Keys that only the backends of Megatron have (``mcore_adapter``, ``hparams/megatron_bridge_args.py``)."""
TRUE = ("true", "y", "1")
"""What a variable says for yes (``extras/misc.py:is_env_enabled``)."""


def enabled(arguments: LlamaFactoryArguments, name: str) -> bool:
    """Whether an environment variable of the launch switches something on."""
    return arguments.keys.launch.environment.get(name, "0").lower() in TRUE


def content(arguments: LlamaFactoryArguments) -> Mapping[str, Any] | None:
    """What the DeepSpeed config says; None for none, and for a file that is not at hand."""
    found = arguments.stated("deepspeed")
    if found is None or found.value in (None, "", False):
        return None
    if isinstance(found.value, Mapping):
        return found.value
    if not isinstance(found.value, str):
        return None
    document = arguments.open_file(found.value)
    if isinstance(document, DataDocument) and document.root is not None:
        plain = document.root.plain()
        return plain if isinstance(plain, Mapping) else None
    return packaged(found.value)


def packaged(path: str) -> Mapping[str, Any] | None:
    """The config that comes with LLaMA-Factory's checkout under this path."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    return catalog.deepspeed_file(name) if f"/{folder}".endswith(f"/{FOLDER}") else None


def zero_stage(arguments: LlamaFactoryArguments) -> Any:
    """ZeRO's stage; None without DeepSpeed, UNKNOWN where its config is not at hand."""
    if arguments.value("deepspeed") in (None, "", False):
        return None
    said = content(arguments)
    zero = said.get("zero_optimization") if said is not None else None
    if said is None:
        return UNKNOWN
    stage = zero.get("stage", 0) if isinstance(zero, Mapping) else 0
    return stage if isinstance(stage, int) else UNKNOWN


def is_fsdp(arguments: LlamaFactoryArguments) -> Any:
    """Whether FSDP shards: by ``fsdp``, or by Accelerate's own options and file."""
    if arguments.value("fsdp") not in (None, "", False, []):
        return True
    launch = arguments.keys.launch
    if launch.launcher != "accelerate":
        return False
    said = _of_accelerate(arguments)
    if "use_fsdp" in launch.invocation.options or (said is not None and said.get("distributed_type") == "FSDP"):
        return True
    return UNKNOWN if said is None and "config_file" in launch.invocation.options else False


def is_fsdp_2(arguments: LlamaFactoryArguments) -> bool:
    """Whether Accelerate's file asks for FSDP 2."""
    said = _of_accelerate(arguments)
    config = said.get("fsdp_config") if said is not None else None
    return isinstance(config, Mapping) and str(config.get("fsdp_version", 1)) == "2"


def _of_accelerate(arguments: LlamaFactoryArguments) -> Mapping[str, Any] | None:
    option = arguments.keys.launch.invocation.options.get("config_file")
    if option is None or option.value is None or arguments.keys.launch.launcher != "accelerate":
        return None
    document = arguments.open_file(option.value)
    root = document.root if isinstance(document, DataDocument) else None
    plain = root.plain() if root is not None else None
    return plain if isinstance(plain, Mapping) else None


def deepspeed(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """The file, or what stands in its place: a mapping, or the config of LLaMA-Factory's checkout by this name."""
    found = arguments.stated("deepspeed")
    if found is None or found.value in (None, "", False):
        return
    at_hand = isinstance(found.value, str) and isinstance(arguments.open_file(found.value), DataDocument)
    said = content(arguments)
    if at_hand or said is None:
        yield found.setting("deepspeed", found.value if isinstance(found.value, str) else UNKNOWN)
        return
    yield found.setting("deepspeed", dict(said))
    yield from of_zero(found, said)


def other_backend(arguments: LlamaFactoryArguments) -> Provenance | None:
    """What gives the model to a backend whose memory is not counted: KTransformers, Megatron, HyperParallel."""
    for key in ("use_kt", "use_hyper_parallel", "use_mca", "use_megatron_bridge"):
        found = arguments.stated(key)
        if found is not None and found.value is not False:
            return found.provenance
    for key in MEGATRON_KEYS:
        found = arguments.keys.get(key)
        if found is not None:
            return found.provenance
    variable = next((name for name in _MEGATRON if enabled(arguments, name)), None)
    return Provenance("file", variable, arguments.keys.launch.place) if variable is not None else None


def is_megatron(arguments: LlamaFactoryArguments) -> bool:
    """Whether Megatron's model and loop train: by a variable, or by keys that only they have."""
    keys = any(key in arguments.keys for key in MEGATRON_KEYS)
    return keys or any(enabled(arguments, name) for name in _MEGATRON)


def _of_megatron(arguments: LlamaFactoryArguments, backend: Provenance) -> Iterator[Setting]:
    """What Megatron's own arguments decide in the place of LLaMA-Factory's; its model is built in the half precision
    (``train/mca/workflow.py``, ``train/megatron_bridge/workflow.py``)."""
    half = arguments.found("bf16")
    yield half.setting("weights_dtype", "bf16" if half.value is True else UNKNOWN)
    recomputes = arguments.keys.get("recompute_granularity")
    if recomputes is None:
        yield Setting("gradient_checkpointing", UNKNOWN, backend)
    else:
        value = {"full": True, "selective": "selective", None: False}.get(recomputes.value, UNKNOWN)
        yield recomputes.setting("gradient_checkpointing", value)
    yield Setting("optimizer", UNKNOWN, backend)


_BY_ACCELERATE = ("gpus", "engine", "fsdp", "fsdp_auto_wrap", "zero_stage", "offload_optimizer", "offload_param")


def by_accelerate(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """What Accelerate's file says that a recipe's own comment starts it with, its processes among it; of a launch line
    it is read anyway."""
    launch = arguments.keys.launch
    option = launch.invocation.options.get("config_file")
    if not launch.assumed or launch.launcher != "accelerate" or option is None or option.value is None:
        return
    document = arguments.open_file(option.value)
    if isinstance(document, DataDocument):
        from lintfit.sources.accelerate import read_accelerate

        stated = read_accelerate(document).settings
        yield from (stated[name] for name in _BY_ACCELERATE if name in stated)


_STARTS_TORCHRUN = "0.8.0"
"""The release whose ``cli.py`` first hands a training over to torchrun; that of 0.7.1 calls ``run_exp`` itself."""


def _starts_one_process(arguments: LlamaFactoryArguments) -> bool:
    stated = arguments.versions.get(catalog.PACKAGE) is not None and not arguments.since(_STARTS_TORCHRUN)
    return stated and arguments.keys.launch.launcher == "llamafactory"


def spread(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Processes that the recipe itself decides, DeepSpeed, and backends of others."""
    workers = arguments.get("ray_num_workers")
    if enabled(arguments, "USE_RAY") and workers is not None:
        yield workers.setting("gpus", workers.value if is_count(workers.value) else UNKNOWN)
    elif _starts_one_process(arguments):
        why = f"llamafactory-cli of LLaMA-Factory {arguments.version} starts one process"
        yield Setting("gpus", 1, Provenance("derived", why, arguments.keys.launch.place))
    backend = other_backend(arguments)
    yield from by_accelerate(arguments)
    if backend is None:
        yield from deepspeed(arguments)
        return
    yield Setting("engine", UNKNOWN, backend)
    if is_megatron(arguments):
        yield from _of_megatron(arguments, backend)
    for key, name in MEGATRON_KEYS.items():
        found = arguments.keys.get(key)
        if found is not None and is_count(found.value):
            yield found.setting(name, found.value)
