"""FSDP in the place of DDP, and of what FSDP can: shard all, and offload to the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from lintfit.fit.options import NEW_ENGINE, Effect, Option, Subject
from lintfit.run.engine_location import by_launcher
from lintfit.run.generation import generates_by_vllm
from lintfit.run.offloaded_optimizer import is_bitsandbytes
from lintfit.settings.values import Fsdp
from lintfit.sources.training_words import FSDP_2
from lintfit.versions import before

_SUMMONS = "0.18"
"""The first TRL whose ``GRPOTrainer`` generates, and hands vLLM weights, within ``FSDP.summon_full_params``; before,
``unwrap_model_for_generation`` gathers for ZeRO-3 alone (``models/utils.py``)."""


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    here = spec.fsdp
    if spec.data_parallel < 2:
        return
    if spec.trainer == "grpo" and before(subject.run.versions.get("trl"), _SUMMONS) is True:
        return
    if spec.engine == "ddp":
        yield from _new(subject)
    if spec.engine != "fsdp" or here is None:
        return
    whole = replace(here, strategy="FULL_SHARD", auto_wrap=True)
    name = f"FSDP{here.version} FULL_SHARD"
    if not here.auto_wrap:
        name += " layer by layer"
    if whole != here:
        yield Option(name, {"fsdp": whole}, kind=name)
    if not here.cpu_offload:
        yield from _offloaded(spec.optimizer, replace(whole, cpu_offload=True), f"{name} offloaded to the host")
    back = subject.taking_back
    if here.cpu_offload:
        yield Option(f"FSDP{here.version} without offload", {"fsdp": replace(here, cpu_offload=False)}, counts=1 + back)
    if here.strategy == "FULL_SHARD":
        partly = replace(here, strategy="SHARD_GRAD_OP", cpu_offload=False)
        yield Option(f"FSDP{here.version} SHARD_GRAD_OP", {"fsdp": partly}, counts=1 + back * (1 + here.cpu_offload))


def _offloaded(optimizer: str, fsdp: Fsdp, name: str) -> Iterator[Option]:
    """The step goes to the host as well, where bitsandbytes has no kernels: torch's AdamW takes its AdamW's place."""
    if not is_bitsandbytes(optimizer):
        yield Option(name, {"fsdp": fsdp}, kind=name)
    elif "adamw" in optimizer:
        changes = {"fsdp": fsdp, "optimizer": "adamw_torch"}
        note = "torch's AdamW in place of bitsandbytes', which cannot step on the host"
        yield Option(f"{name}, AdamW of torch", changes, Effect.NUMERICS, note, kind=name)


def _new(subject: Subject) -> Iterator[Option]:
    """Not beside bitsandbytes, whose weights and states of whole tensors the flat shards are not."""
    run, spec = subject.run, subject.spec
    if spec.quantization is not None or is_bitsandbytes(spec.optimizer):
        return
    if run.recipe is not None or (run.launch is not None and run.launch.launcher == "deepspeed"):
        return
    if generates_by_vllm(run):
        return  # TRL hands a server no weights that FSDP shards with adapters on them (``VLLMGeneration.sync_weights``)
    version = _version(subject)
    for name, offloads in ((f"FSDP{version}", False), (f"FSDP{version} offloaded to the host", True)):
        changes = {"engine": "fsdp", "fsdp": Fsdp(version, "FULL_SHARD", offloads)}
        note = "FSDP shards parameters, gradients and states, and reduces gradients in the precision of the training"
        yield Option(name, changes, Effect.NUMERICS, note, kind=name, counts=NEW_ENGINE)


def _version(subject: Subject) -> Literal[1, 2]:
    """FSDP 2 where an Accelerate YAML asks for it (1.6), and where the Trainer has it unasked by its ``fsdp``."""
    run = subject.run
    if by_launcher(run, "fsdp"):
        return 1 if before(run.versions.get("accelerate"), "1.6") is True else 2
    return 1 if before(run.versions.get("transformers"), FSDP_2) is True else 2
