"""What a trainer adds to the causal language model's step: a reference, and what it generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lintfit.documents.patterns import lazy_pattern
from lintfit.memory.spec import Generation
from lintfit.run.engine_location import has_trainer
from lintfit.settings.kinds import LARGEST_COUNT, LARGEST_SEQUENCE
from lintfit.settings.model import Setting, is_count
from lintfit.settings.registry import TRAINERS, default
from lintfit.versions import COMMIT, FLOOR, before

if TYPE_CHECKING:
    from lintfit.memory.spec import Spec
    from lintfit.run.model import Run

COMPLETION = 512
"""``GRPOConfig.max_completion_length`` of TRL 1.16; also where a script caps nothing (None)."""
VLLM_SHARE = 0.3
"""``GRPOConfig.vllm_gpu_memory_utilization``."""
PROMPT = 512
"""Tokens of a prompt where nobody says: TRL's cap for GRPO's (``max_prompt_length``, up to 0.24)."""

GENERATIONS = 8
"""``GRPOConfig.num_generations``."""
_BY_STEP = "0.17"
"""The first TRL whose GRPO trainer fills its groups of answers over all micro-batches of a step; before (0.15, 0.16,
``grpo_trainer.py``), the micro-batches of all ranks have to hold whole groups."""


_COLOCATES = "1.0"
"""The first TRL whose ``vllm_mode`` is "colocate" where nobody says (``grpo_config.py`` of 0.29.1 and 1.0.0). From 0.18
on it is "server"; 0.16 and 0.17 know vLLM as a server alone."""
_SERVES = "0.16"
"""The first TRL that does so; before, vLLM runs in the trainer's first process, on the GPU of ``vllm_device``: the one
behind the trainer's where that is "auto", or the only one that there is (0.15 ``grpo_trainer.py``)."""
_SHARE_ON_DEVICE = 0.9
"""``GRPOConfig.vllm_gpu_memory_utilization`` of those."""
_DEVICE = lazy_pattern(r"cuda(?::(?P<index>\d+))?")


def group_size(run: Run) -> int:
    """GRPO's answers to one prompt."""
    stated = run.value("num_generations")
    return stated if is_count(stated) else GENERATIONS


def fills_groups(run: Run, micro: int, ranks: int) -> bool:
    """Whether GRPO takes micro-batches of a size on all ranks, as far as its version is known to look at them."""
    pinned = "trl" + COMMIT in run.versions and before(run.versions.get("trl" + FLOOR), _BY_STEP) is not False
    old = pinned or before(run.versions.get("trl"), _BY_STEP) is True
    return run.value("trainer") != "grpo" or not old or micro * ranks % group_size(run) == 0


def ranks_known(run: Run, spec: Spec) -> int:
    """Ranks that surely make a step: one where no launch of the run itself says how many there are."""
    return 1 if run.unlaunched or run.usual_command is not None else spec.data_parallel


def generates_by_vllm(run: Run) -> bool:
    """Whether vLLM may generate between the steps: it is handed the weights after each of them, whole."""
    asked = run.settings.get("use_vllm")
    if asked is not None and asked.value is not False and asked.value is not None:
        return True
    online = run.value("trainer") in ("grpo", "rloo", "ppo") or not has_trainer(run)
    return online and run.script is not None and run.mentions("from vllm import", "import vllm")


def set_trainer(
    values: dict[str, Any],
    settings: Mapping[str, Setting],
    versions: Mapping[str, str],
    doubtful: list[str],
    gpus: int | None,
    seen: int | None,
) -> None:
    """TRL's trainer, and what its step generates. ``gpus`` train, ``seen`` are there for a process, as far as known."""

    def value(name: str, fallback: Any = None) -> Any:
        setting = settings.get(name)
        return setting.value if setting is not None and setting.known else fallback

    trainer = value("trainer", values.get("trainer", "causal-lm"))
    values["trainer"] = trainer if trainer in TRAINERS else "causal-lm"
    if trainer == "ppo":
        _ppo(values, settings, value)
        return
    if trainer not in ("grpo", "rloo"):
        return
    completion = _tokens(value("max_completion_length")) or COMPLETION
    if "seq_len" not in settings:
        values["seq_len"] = (_tokens(value("max_prompt_length")) or PROMPT) + completion
    by_vllm = bool(value("use_vllm", False))
    on_device = by_vllm and _shares_device(value("vllm_device", "auto"), gpus, versions, seen)
    colocated = on_device or (_colocates(settings, versions) if by_vllm else False)
    if colocated is None:
        doubtful.append("vllm_mode")
    gathers = bool(value("ds3_gather_for_generation", True)) and not by_vllm
    values["generation"] = Generation(
        completion_len=completion,
        vllm_gpu_memory_utilization=_share(value("vllm_gpu_memory_utilization"), on_device) if colocated else 0.0,
        gather_weights=gathers,
        steps_per_generation=_whole(value("steps_per_generation")),
        vllm_sleeps=value("vllm_enable_sleep_mode", False) is True,
        vllm_server=by_vllm and not colocated,
    )


def _colocates(settings: Mapping[str, Setting], versions: Mapping[str, str]) -> bool | None:
    """Whether vLLM generates on the trainer's own GPUs: as the run says, else as its TRL does; None where that is open,
    which takes least where it does not."""
    mode = settings.get("vllm_mode")
    if mode is not None and mode.provenance.kind != "default":
        return bool(mode.value == "colocate") if mode.known else None
    older = [before(versions.get(name), _COLOCATES) for name in ("trl", "trl" + FLOOR)]
    return False if older[0] is True else True if False in older else None


def _shares_device(device: Any, gpus: int | None, versions: Mapping[str, str], seen: int | None) -> bool:
    """Whether a TRL that has no server puts vLLM on a GPU that trains as well, which then needs most of all."""
    if before(versions.get("trl"), _SERVES) is not True or not isinstance(device, str):
        return False
    if device == "auto":
        return seen == 1
    named = _DEVICE.fullmatch(device)
    return named is not None and gpus is not None and int(named["index"] or 0) < gpus


def _ppo(values: dict[str, Any], settings: Mapping[str, Setting], value: Callable[..., Any]) -> None:
    """A prompt of the length assumed and a response; every batch is padded, and its mask handed over."""
    response = _tokens(value("response_length")) or default("response_length")
    if "seq_len" not in settings:
        values["seq_len"] = PROMPT + response
    values.setdefault("padded_batches", True)
    values["generation"] = Generation(
        completion_len=min(response, values["seq_len"]),
        gather_weights=bool(value("ds3_gather_for_generation", True)),
        rollout_batch_size=_whole(value("rollout_batch_size")) or default("generation", "rollout_batch_size"),
        mini_batches=_whole(value("mini_batches")) or default("generation", "mini_batches"),
    )


def length_stated(values: Mapping[str, Any], settings: Mapping[str, Setting]) -> frozenset[str]:
    """GRPO's sequences are a prompt and a completion: known as soon as a trainer caps both."""
    caps = (settings.get(name) for name in ("max_prompt_length", "max_completion_length"))
    capped = all(cap is not None and is_count(cap.value, LARGEST_SEQUENCE) for cap in caps)
    return frozenset({"seq_len"}) if values.get("trainer") in ("grpo", "rloo") and capped else frozenset()


def _share(value: Any, on_device: bool) -> float:
    """The share of the GPU that vLLM takes; TRL's own where a file says nothing that can be one."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and 0 < value <= 1 else _SHARE_ON_DEVICE if on_device else VLLM_SHARE


def _tokens(value: Any) -> int | None:
    return value if is_count(value, LARGEST_SEQUENCE) else None


def _whole(value: Any) -> int | None:
    return value if is_count(value, LARGEST_COUNT) else None
