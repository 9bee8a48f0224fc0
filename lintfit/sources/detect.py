"""Which dialect a data file is, from its content alone.

A false "yes" makes noise in a stranger's file, so that every answer rests on keys that belong to one library.
"""

from __future__ import annotations

import re
from typing import Literal

from lintfit.documents.model import DataDocument, Kind, Node
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import word_set
from lintfit.schema.megatron import HYPHENATED_KEYS, is_megatron
from lintfit.sources.recipes.front_ends import COMMANDS

Dialect = Literal["deepspeed", "accelerate"]

_DEEPSPEED_SURE = word_set("""
    train_micro_batch_size_per_gpu zero_allow_untested_optimizer zero_force_ds_cpu_optimizer prescale_gradients
    gradient_predivide_factor wall_clock_breakdown memory_breakdown flops_profiler comms_logger csv_monitor
    hybrid_engine steps_per_print communication_data_type
    """)
_DEEPSPEED_BATCH = frozenset({"train_batch_size", "gradient_accumulation_steps", "gradient_clipping", "dump_state"})
_OTHER_JSON = word_set("""
    _name_or_path added_tokens architectures compilerOptions compute_environment dependencies devDependencies
    distributed_type global_step log_history model_name_or_path model_type output_dir per_device_train_batch_size
    tokenizer_class transformers_version
    """)
"""Keys of ``config.json``, ``trainer_state.json``, ``tokenizer.json``, ``package.json``, trainer arguments …"""

_ARGUMENTS = frozenset({"model_name_or_path", "output_dir", "per_device_train_batch_size"})

_ACCELERATE_SURE = frozenset({"compute_environment", "distributed_type"})
_ACCELERATE = word_set("""
    deepspeed_config downcast_bf16 dynamo_backend dynamo_config fsdp_config gpu_ids machine_rank main_process_ip
    main_process_port main_training_function megatron_lm_config mixed_precision num_machines num_processes
    parallelism_config rdzv_backend same_network tpu_use_cluster tpu_use_sudo use_cpu
    """)
_OTHER_YAML = word_set("""
    base_model dataset dataset_name datasets model model_name_or_path output_dir per_device_train_batch_size stage
    trainer
    """)
"""Keys of recipes (axolotl, LLaMA-Factory, TRL …), which may carry some of Accelerate's keys of their own."""

_SURE_KEY = lazy_pattern(r"\"(?:zero_optimization|train_micro_batch_size_per_gpu)\"[ \t]*:")
_HYPHENATED_KEY = lazy_pattern(r"^[ \t]*\"[a-z]+-[a-z-]+\"[ \t]*:", re.MULTILINE)

_DEEPSPEED_TEXT = (
    "zero_optimi",
    "train_micro_batch_size_per_gpu",
    "train_batch_size",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "fp16",
    "bf16",
    "bfloat16",
    "steps_per_print",
    "wall_clock_breakdown",
)
_LAUNCH_TEXT = lazy_pattern(
    r"torchrun|deepspeed|accelerate(?:-launch)?\b|torch\.distributed|fabric\b|lightning run\b"
    rf"|python[\d.]*\b|\btune run\b|\b(?:{'|'.join(sorted(COMMANDS.keys() - {'tune'}))})\b"
)

_SOURCED_TEXT = re.compile(r"^[ \t]*(?:source|\.)[ \t]+\S", re.MULTILINE)
_RUN_TEXT = re.compile(r"^[ \t]*(?:(?:eval|exec)[ \t]+)?[\"']?\$\{?[A-Za-z_]", re.MULTILINE)
"""A file that variables are taken from, and a variable in a command's place: the launcher may stand in that file."""


def maybe_deepspeed(text: str) -> bool:
    """Whether a text is worth reading as JSON: it holds a word that every DeepSpeed config has one of."""
    return any(word in text for word in _DEEPSPEED_TEXT)


def maybe_accelerate(text: str) -> bool:
    """Whether a text is worth reading as an Accelerate file."""
    return any(word in text for word in ("distributed_type", "compute_environment", "num_processes", "num_machines"))


def maybe_launch(text: str) -> bool:
    """Whether a shell script is worth reading: it names a program that may start a training, or a sourced file does."""
    by_name = _LAUNCH_TEXT.search(text) is not None
    return by_name or (_SOURCED_TEXT.search(text) is not None and _RUN_TEXT.search(text) is not None)


def is_arguments(document: DataDocument) -> bool:
    """Whether a JSON or YAML document holds the arguments of a script that trains, as HfArgumentParser reads them."""
    root = document.root
    if root is None or root.shape != "mapping" or dialect(document) is not None:
        return False
    return not _ARGUMENTS.isdisjoint(entry.key for entry in root.entries)


def is_config(document: DataDocument) -> bool:
    """Whether a document can be read and is plainly the config of one library."""
    return document.root is not None and dialect(document) is not None


def dialect(document: DataDocument) -> Dialect | None:
    """The dialect of a JSON or YAML document; None for anything else, and where there is doubt."""
    if "dialect" not in document.facts:
        document.facts["dialect"] = _dialect(document)
    return document.facts["dialect"]  # type: ignore[no-any-return]


def _dialect(document: DataDocument) -> Dialect | None:
    root = document.root
    if root is None:
        return "deepspeed" if document.kind is Kind.JSON and _was_deepspeed(document.text) else None
    if root.shape != "mapping":
        return None
    keys = {entry.key for entry in root.entries}
    if _is_accelerate(root, keys):
        return "accelerate"
    if document.kind is Kind.JSON and _is_deepspeed(root, keys):
        return "deepspeed"
    return None


def _was_deepspeed(text: str) -> bool:
    """Whether text that cannot be read was meant to be a DeepSpeed config: it has keys that nothing else has."""
    return _SURE_KEY.search(text) is not None and len(_HYPHENATED_KEY.findall(text)) < HYPHENATED_KEYS


def _is_deepspeed(root: Node, keys: set[str]) -> bool:
    if keys & _OTHER_JSON or is_megatron(keys):
        return False
    if any(_is_zero_section(entry.key, entry.value) for entry in root.entries):
        return True
    strong = len(keys & _DEEPSPEED_SURE) + _structures(root)
    return strong >= 2 or (strong == 1 and len(keys & _DEEPSPEED_BATCH) >= 1) or _only_precision(root, keys)


def _is_zero_section(key: str, value: Node) -> bool:
    """``zero_optimization`` as an object or in its old bare form, misspelt or not."""
    if key == "zero_optimization":
        return value.shape == "mapping" or isinstance(value.value, (bool, int)) or value.value is None
    return key.lower().replace("-", "_").startswith("zero_optimi") and value.shape == "mapping"


def _structures(root: Node) -> int:
    """How many of DeepSpeed's sections are there in the form that DeepSpeed gives them."""
    found = 0
    for section in ("fp16", "bf16", "bfloat16", "amp"):
        found += root.get(section, "enabled") is not None
    for section in ("optimizer", "scheduler"):
        found += root.get(section, "type") is not None and root.get(section, "params") is not None
    found += any(root.get("activation_checkpointing", key) for key in ("partition_activations", "cpu_checkpointing"))
    found += root.get("tensorboard", "output_path") is not None
    return found


def _only_precision(root: Node, keys: set[str]) -> bool:
    """A config of nothing but one precision section (``{"bf16": {"enabled": true}}``)."""
    return keys <= {"fp16", "bf16", "bfloat16"} and any(root.get(key, "enabled") is not None for key in keys)


def _is_accelerate(root: Node, keys: set[str]) -> bool:
    if keys & _OTHER_YAML:
        return False
    if "distributed_type" in keys and len(keys & _ACCELERATE) >= 1:
        return True
    if "compute_environment" in keys:
        value = root.get("compute_environment")
        return (value is not None and value.value in ("LOCAL_MACHINE", "AMAZON_SAGEMAKER")) or bool(keys & _ACCELERATE)
    if keys <= (_ACCELERATE | _ACCELERATE_SURE) and "distributed_type" in keys:
        return True
    return len(keys & _ACCELERATE) >= 3 and bool(keys & {"num_processes", "num_machines", "machine_rank"})
