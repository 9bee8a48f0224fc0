"""What the libraries take where a spec says nothing, by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog import defaults as libraries
from lintfit.catalog.facts import ModelFacts
from lintfit.memory import litgpt
from lintfit.memory.loss.preference import ROLLOUTS
from lintfit.memory.spec import Generation
from lintfit.memory.versions import before_transformers_5
from lintfit.settings.registry import default
from lintfit.settings.values import Fsdp


def complete(values: dict[str, Any], facts: ModelFacts) -> None:
    """Fill in what the libraries default to, by version."""
    modern = not before_transformers_5(values.get("versions", {}))
    if "method" not in values and any(key.startswith("lora_") for key in values):
        values["method"] = "lora"
    _engine(values)
    if values.get("trainer") == "sft":
        _sft(values, facts)
    if "weights_dtype" not in values:
        checkpoint = facts.checkpoint_dtype if facts.checkpoint_dtype in ("fp32", "bf16", "fp16") else "bf16"
        values["weights_dtype"] = checkpoint if modern else "fp32"
    if values.get("front_end") == "litgpt":
        values.setdefault("lora_dtype", values["weights_dtype"])
        values.setdefault("lora_dropout", litgpt.DROPOUT)
    values.setdefault("micro_batch_size", default("micro_batch_size"))
    if "seq_len" not in values:
        from lintfit.memory.micro_batch.vision.images import tokens  # which loads all that counts layers

        values["seq_len"] = longest(facts) + tokens(facts, values)
    values.setdefault("optimizer", default("optimizer") if modern else "adamw_torch")
    values.setdefault("use_reentrant", not modern)
    _trainer(values)


def longest(facts: ModelFacts) -> int:
    """Tokens of a sequence where nobody says, as far as the model has positions: an assumption of lintfit's own."""
    assumed: int = default("seq_len")
    return min(assumed, facts.max_positions or assumed)


def _engine(values: dict[str, Any]) -> None:
    """The engine that the settings ask for."""
    if "engine" not in values:
        sharded = bool(values.get("zero_stage")) or "deepspeed_config" in values
        plain = "ddp" if values.get("gpus", 1) > 1 else "single"
        values["engine"] = "deepspeed" if sharded else "fsdp" if values.get("fsdp") else plain
    if values["engine"] == "fsdp" and values.get("fsdp") is None:
        values["fsdp"] = Fsdp()


def _sft(values: dict[str, Any], facts: ModelFacts) -> None:
    """TRL's SFT trainer: transformers' with other defaults and a loss of its own.

    Images cannot be cut: who trains on them sets a length, or none.
    """
    from lintfit.catalog import sft

    version = values.get("versions", {}).get("trl")
    values["trainer"] = "causal-lm"
    values.setdefault("front_end", "transformers")
    values.setdefault("gradient_checkpointing", sft.checkpoints(version))
    values.setdefault("loss", sft.loss(version))
    if sft.in_bf16(version):
        values.setdefault("mixed_precision", "bf16")
    if facts.vision is None or values.get("images") == 0:
        longest = sft.length(version)
        values.setdefault("seq_len", min(longest, facts.max_positions or longest))


def _trainer(values: dict[str, Any]) -> None:
    """What TRL's trainers make and generate where nothing else is asked for."""
    trainer = values.get("trainer")
    # TRL makes a reference model where none is handed in, unless adapters can be switched off for it.
    refers = trainer in ("dpo", "kto", "ppo") or bool(_of_rollouts(values, "beta", 0.0))
    values.setdefault("reference_model", refers and values.get("method", "full") == "full")
    if trainer == "ppo":
        # Prompts of several lengths are padded on the left, and every forward gets the mask.
        values.setdefault("padded_batches", True)
    stated = values.get("generation")
    if stated is not None or trainer in ROLLOUTS:
        values["generation"] = _generation(values, stated or {})


def _generation(values: Mapping[str, Any], stated: Mapping[str, Any]) -> Generation:
    """What is generated: TRL's own length, and under ZeRO-3 with all weights (``ds3_gather_for_generation``)."""
    length = stated.get("completion_len") or min(_completion(values), values["seq_len"])
    on_vllm = bool(stated.get("vllm_gpu_memory_utilization") or stated.get("vllm_server"))
    gathers = values.get("trainer") in ROLLOUTS and not on_vllm
    return Generation(**{"gather_weights": gathers, **stated, "completion_len": length})


def _completion(values: Mapping[str, Any]) -> int:
    """Tokens of a completion that TRL generates at the most where nobody says (``max_completion_length``)."""
    return int(_of_rollouts(values, "max_completion_length", default("response_length")))


def _of_rollouts(values: Mapping[str, Any], field: str, otherwise: Any) -> Any:
    """What ``GRPOConfig`` and ``RLOOConfig`` have for a field where nobody says, by TRL's version."""
    config = {"grpo": "GRPOConfig", "rloo": "RLOOConfig"}.get(values.get("trainer", ""))
    if config is None:
        return otherwise
    found = libraries.default("trl", config, field, values.get("versions", {}).get("trl"))
    assert found is not None
    return found.value
