"""Whose step an ms-swift run has, and which models stand beside the one that it trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lintfit.documents.numerals import natural
from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.sources.recipes.swift_arguments import SwiftArguments
from lintfit.sources.recipes.trainer import evaluation_of

TUNER = ("tuner_type", "train_type", "sft_type")
"""The field that says how the model is trained, by its name in ms-swift 4, 3 and 2."""
TRAINERS: Mapping[str, str] = {
    "dpo": "dpo", "orpo": "orpo", "simpo": "cpo", "cpo": "cpo", "kto": "kto", "rm": "reward", "ppo": "ppo",
    "grpo": "grpo", "gkd": "causal-lm",
}  # fmt: skip
"""Whose step each ``rlhf_type`` is; SimPO is a loss of CPO's trainer."""
_REFERS = frozenset({"dpo", "kto", "ppo", "grpo"})
"""Types that hold a copy of a model that trains whole (``RLHFArguments.__post_init__``)."""
_PAIRS = frozenset({"embedding", "reranker", "generative_reranker"})
"""Tasks whose samples are several sequences each."""


def kind_of(arguments: SwiftArguments) -> str:
    """The ``rlhf_type``, else the command."""
    if arguments.command != "rlhf":
        return arguments.command
    found = arguments.value("rlhf_type")
    return found if isinstance(found, str) else "unknown"


def itself(arguments: SwiftArguments) -> Provenance:
    """Why something is so that no argument says."""
    return Provenance("derived", f"swift {arguments.command} does so")


def trainer(arguments: SwiftArguments, kind: str) -> Iterator[Setting]:
    """Whose step it is, and the models beside the one that trains."""
    task = arguments.get("task_type")
    if arguments.command == "rlhf":
        asked = arguments.get("rlhf_type")
        where = asked.provenance if asked is not None else itself(arguments)
        yield Setting("trainer", TRAINERS.get(kind, UNKNOWN), where)
        yield from beside(arguments, kind)
    elif task is not None and task.value in ("seq_cls", *_PAIRS):
        yield task.setting("trainer", "classification")
        if task.value in _PAIRS:
            yield task.setting("uncounted", f"how many sequences a sample of the task {task.value} is")
    elif task is not None and task.value is UNKNOWN:
        yield task.setting("trainer", UNKNOWN)
    else:
        yield Setting("trainer", "causal-lm", itself(arguments))
    yield reference(arguments, kind)


def beside(arguments: SwiftArguments, kind: str) -> Iterator[Setting]:
    """Models that are only asked, and what a rollout needs."""
    reward, teacher = arguments.stated("reward_model"), arguments.stated("teacher_model")
    if kind == "ppo":
        answer = arguments.stated("response_length", "max_new_tokens") or arguments.get("max_completion_length")
        if answer is not None:
            yield answer.setting("response_length", answer.value)
    if kind == "ppo" and reward is not None:
        named = reward.value[0] if isinstance(reward.value, list) and reward.value else reward.value
        yield reward.setting("reward_model", named if isinstance(named, str) else UNKNOWN)
    elif kind == "grpo" and reward is not None and reward.value not in (None, "None"):
        each = reward.value if isinstance(reward.value, list) else [reward.value]
        frozen = tuple({"model": one if isinstance(one, str) else None} for one in each)
        yield reward.setting("frozen_models", frozen)
    if kind == "gkd":
        if teacher is not None and teacher.value not in (None, "None"):
            name = teacher.value if isinstance(teacher.value, str) else None
            yield teacher.setting("frozen_models", ({"model": name},))
        yield Setting("uncounted", "what GKD makes of the teacher's answers", itself(arguments))
    if kind in ("grpo", "gkd"):
        yield from vllm(arguments)


def vllm(arguments: SwiftArguments) -> Iterator[Setting]:
    """Where vLLM runs, and whether it gives its memory back while the trainer trains."""
    uses, mode = arguments.get("use_vllm"), arguments.get("vllm_mode")
    if uses is None or uses.value is not True:
        return
    if _infers_apart(arguments):
        yield Setting("vllm_mode", "server", itself(arguments))
    elif mode is not None and mode.value is not None:
        yield mode.setting("vllm_mode", mode.value)
    elif arguments.stated("vllm_server_host", "vllm_server_base_url") is not None:
        yield Setting("vllm_mode", "server", itself(arguments))
    sleeps = arguments.get("sleep_level")
    if sleeps is not None:
        level = sleeps.value
        value = UNKNOWN if level is UNKNOWN else isinstance(level, int) and level > 0
        yield sleeps.setting("vllm_enable_sleep_mode", value)


def _infers_apart(arguments: SwiftArguments) -> bool:
    """Whether vLLM has GPUs of its own behind the trainer's, as it has in ms-swift 3.2 to 3.5 unless every GPU has an
    inference worker (``swift/llm/argument/rlhf_args.py``: ``device_count == num_infer_workers``)."""
    workers, processes = arguments.stated("num_infer_workers"), arguments.environment.get("NPROC_PER_NODE")
    if workers is None or processes is None:
        return False
    return is_count(workers.value) and workers.value < (natural(processes.value) or 0)


def reference(arguments: SwiftArguments, kind: str) -> Setting:
    """Whether a frozen copy of the model stands beside it: of one that trains whole, where a loss asks for it."""
    tuner = arguments.get(*TUNER)
    whole = tuner.value if tuner is not None else UNKNOWN
    if kind not in _REFERS:
        return Setting("reference_model", False, Provenance("derived", f"{kind} needs none"))
    beta = arguments.stated("beta")
    if kind == "grpo" and beta is not None and beta.value == 0:
        return beta.setting("reference_model", False)
    named = arguments.stated("ref_model")
    if whole == "full" and named is not None and isinstance(named.value, str):
        return named.setting("reference_model", True)  # "LoRA training does not require a ref_model to be passed in."
    if whole == "full":
        return Setting("reference_model", True, Provenance("derived", f"{kind} of a model that trains whole"))
    known = False if isinstance(whole, str) else UNKNOWN
    return Setting("reference_model", known, Provenance("derived", "the adapter is switched off for it"))


def evaluates(arguments: SwiftArguments) -> bool:
    """Whether it evaluates: ``eval_strategy`` becomes ``no`` where there is no data for it."""
    strategy = arguments.stated("eval_strategy", "evaluation_strategy")
    share = arguments.get("split_dataset_ratio", "dataset_test_ratio")
    data = arguments.stated("val_dataset", "cached_val_dataset", "eval_dataset")
    if strategy is not None and strategy.value == "no":
        return False
    return data is not None or (share is not None and share.value != 0)


def evaluation(arguments: SwiftArguments) -> Iterator[Setting]:
    """What it evaluates with."""
    if evaluates(arguments):
        yield from evaluation_of(arguments).values()
