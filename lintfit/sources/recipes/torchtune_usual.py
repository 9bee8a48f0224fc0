"""How a torchtune config alone is started: by the command in the comment at its head, else by what its keys say."""

from __future__ import annotations

import re
import shlex
from typing import Any

from lintfit.catalog.torchtune import registry
from lintfit.documents.model import DataDocument
from lintfit.documents.patterns import lazy_pattern
from lintfit.sources.recipes import torchtune_parts as parts
from lintfit.sources.recipes.torchtune_keys import COMPONENT, plain

_HEAD = 6_000
"""Characters of a file in which its head stands."""
_COMMAND = lazy_pattern(
    r"tune run(?P<options>(?:[\s#\\]+--?[\w-]+(?:[= ][^\s\\]+)?)*)[\s#\\]+(?P<recipe>[\w./]+)[\s#\\]+--config"
)
_COUNTS = lazy_pattern(r"--(nproc|nnodes)(?:[_-]per[_-]node)?[= ](\d+)")
_OPTION = {"nproc": "nproc_per_node", "nnodes": "nnodes"}

_SHARDS = frozenset({
    "ac_mode", "context_parallel_dim", "custom_sharded_layers", "data_parallel_replicate_dim",
    "data_parallel_shard_dim", "fsdp", "fsdp_cpu_offload", "fsdp_reshard_after_forward", "fsdp_sharding_strategy",
    "memory_efficient_fsdp_wrap", "tensor_parallel_dim", "tensor_parallel_plan",
})  # fmt: skip
"""Keys that only recipes for several devices read."""
_ONE = lazy_pattern(r"single[_-]?device|low_memory")
"""Words in the names of configs for one device."""


def usual_command(document: DataDocument) -> str | None:
    """``tune run [--nproc_per_node N] RECIPE --config FILE``; None where no recipe that trains takes the file."""
    root = document.root
    content = root.plain() if root is not None else None
    if not isinstance(content, dict) or "inference" in content or not {"model", "policy_model"} & content.keys():
        return None
    recipe = _by_keys(content, document.path.stem)
    found = _said(document.text, recipe)
    options = []
    if found is not None:
        recipe = found["recipe"]
        known = registry().recipe(recipe)
        counts = _COUNTS.findall(found["options"]) if known is not None and known.distributed else []
        options = [f"--{_OPTION[name]} {count}" for name, count in counts]
    return " ".join(["tune run", *options, recipe, "--config", shlex.quote(document.path.as_posix())])


def _said(text: str, recipe: str) -> re.Match[str] | None:
    """The command in the file's head that starts a recipe of the kind that the keys are for."""
    comments = (found for found in _COMMAND.finditer(text, 0, _HEAD) if _commented(text, found))
    known = [found for found in comments if registry().recipe(found["recipe"]) is not None]
    alike = (found for found in known if _kind(found["recipe"]) == _kind(recipe))
    own = (found for found in known if found["recipe"].startswith("dev/"))
    return next(alike, None) or next(own, None)


def _commented(text: str, found: re.Match[str]) -> bool:
    return text.startswith("#", text.rfind("\n", 0, found.start()) + 1)


def _kind(recipe: str) -> str:
    """A recipe's name without the number of devices that it is for."""
    return recipe.rpartition("/")[2].removesuffix("_single_device").removesuffix("_distributed")


def _adapts(content: dict[str, Any]) -> bool:
    built = parts.builder(plain(content, f"model.{COMPONENT}"))
    return built is not None and built.adapts


def _by_keys(content: dict[str, Any], stem: str) -> str:
    """The recipe that reads the file's keys: the one for several devices unless it is for one."""
    optimizer, loss = (str(plain(content, f"{name}.{COMPONENT}")) for name in ("optimizer", "loss"))
    one = not _SHARDS & content.keys() and ("bitsandbytes" in optimizer or _ONE.search(stem) is not None)
    on = "single_device" if one else "distributed"
    adapts = _adapts(content)
    if "policy_model" in content:
        return "ppo_full_finetune_single_device"
    if "teacher_model" in content:
        return f"knowledge_distillation_{on}"
    if "grpo_samples" in content:
        return "dev/grpo_full_finetune_distributed"
    if loss.endswith(("DPOLoss", "RSOLoss", "SimPOLoss")):
        return f"lora_dpo_{on}" if adapts else "full_dpo_distributed"
    if "quantizer" in content:
        return "qat_lora_finetune_distributed" if adapts else f"qat_{on}"
    return f"lora_finetune_{on}" if adapts else f"full_finetune_{on}"
