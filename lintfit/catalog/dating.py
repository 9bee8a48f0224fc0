"""Which versions of transformers and TRL take an argument: what a script that passes it was written for.

The fields of their configs are those of the studied versions (:mod:`.defaults`); a field between two of them counts as
taken in both, so that a range is never too narrow. ``TRAINERS`` are the arguments of the trainers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from lintfit.catalog import defaults
from lintfit.frozen import frozen, word_set

_TRL_TRAINERS = ("SFTTrainer", "DPOTrainer", "RewardTrainer", "KTOTrainer", "GRPOTrainer")


@frozen
class Taken:
    """The versions of a library that take an argument: from ``first`` on (None: from the beginning), before ``gone``
    (None: to this day)."""

    library: str
    first: str | None = None
    gone: str | None = None


_SFT_ONLY = (
    "dataset_text_field", "packing", "max_seq_length", "dataset_num_proc", "dataset_batch_size", "neftune_noise_alpha",
    "model_init_kwargs", "dataset_kwargs", "eval_packing", "num_of_sequences", "chars_per_token", "infinite",
)  # fmt: skip
"""Arguments of ``SFTTrainer`` that its config has had alone since TRL 0.13 (``trl/trainer/sft_trainer.py``)."""

_DPO_ONLY = (
    "beta", "label_smoothing", "loss_type", "label_pad_token_id", "padding_value", "truncation_mode", "max_length",
    "max_prompt_length", "max_target_length", "is_encoder_decoder", "disable_dropout", "generate_during_eval",
    "precompute_ref_log_probs", "dataset_num_proc", "model_init_kwargs", "ref_model_init_kwargs", "model_adapter_name",
    "ref_adapter_name", "reference_free", "force_use_ref_model",
)  # fmt: skip
"""Arguments of ``DPOTrainer`` that its config has had alone since TRL 0.13 (``trl/trainer/dpo_trainer.py``)."""

TRAINERS: Mapping[tuple[str, str], Taken] = {
    ("Trainer", "tokenizer"): Taken("transformers", gone="5.0"),
    ("Seq2SeqTrainer", "tokenizer"): Taken("transformers", gone="5.0"),
    ("Trainer", "processing_class"): Taken("transformers", first="4.46"),
    ("Seq2SeqTrainer", "processing_class"): Taken("transformers", first="4.46"),
    **{("SFTTrainer", name): Taken("trl", gone="0.13") for name in _SFT_ONLY},
    **{("DPOTrainer", name): Taken("trl", gone="0.13") for name in _DPO_ONLY},
    **{(trainer, "tokenizer"): Taken("trl", gone="0.16") for trainer in ("SFTTrainer", "DPOTrainer", "RewardTrainer")},
    **{(trainer, "processing_class"): Taken("trl", first="0.12") for trainer in _TRL_TRAINERS},
}
"""By trainer and argument (``Trainer.__init__`` of transformers 4.46 and 5.0, ``trl/trainer`` of TRL 0.9.6 to 0.20)."""

LOADS: Mapping[str, Taken] = {"use_auth_token": Taken("transformers", gone="5.0")}
"""Arguments of ``from_pretrained`` of models (``modeling_utils.py`` of transformers 4.57.1 pops it and warns, that of
5.0.0 does not know it). Those that a rule reports (``removed-argument``) are no dates."""

IMPORTS: Mapping[tuple[str, str], Taken] = {
    ("trl", "DataCollatorForCompletionOnlyLM"): Taken("trl", gone="0.20"),
    ("trl", "setup_chat_format"): Taken("trl", gone="0.26"),
    ("transformers", "AdamW"): Taken("transformers", gone="4.51"),
    ("transformers", "AutoModelForVision2Seq"): Taken("transformers", gone="5.0"),
    ("transformers", "AutoModelWithLMHead"): Taken("transformers", gone="5.0"),
    ("peft", "prepare_model_for_int8_training"): Taken("transformers", gone="5.0"),
}
"""Names that packages themselves once had: ``trl/__init__.py`` of TRL 0.19.1 and 0.20.0, of 0.25.1 and 0.26.0;
``transformers/__init__.py`` of 4.48.0, which has ``AdamW``, and 4.51.3; all modules of 5.0.0, of which none has the
other two, classes of ``modeling_auto.py`` of 4.57.6; ``peft/__init__.py`` of 0.9.0 and 0.10.0, whose
releases are years before transformers 5 and the peft that it asks for (0.22 of 5.24, ``integrations/peft.py``)."""

NEW_TRAINERS: Mapping[str, Taken] = {"GRPOTrainer": Taken("trl", first="0.14")}
"""Trainers that came late (``trl/__init__.py`` of TRL 0.13.0 and 0.14.0): importing one from an older release stops."""

LENGTH_RENAMED = (0, 16)
"""The first TRL whose ``SFTConfig`` has ``max_length``; before, it is a key that nothing reads (``sft_config.py``)."""

OLDER_LENGTH = 1024
"""What takes the place of its ``max_seq_length`` of None there (0.15.2 ``sft_trainer.py``; 0.9, too)."""

FIELDS: Mapping[tuple[str, str], Taken] = {
    ("TrainingArguments", "eval_strategy"): Taken("transformers", first="4.41"),
    ("SFTConfig", "max_seq_length"): Taken("trl", gone="0.20"),
    ("SFTConfig", "max_length"): Taken("trl", first="0.16"),
    ("SFTConfig", "use_liger"): Taken("trl", gone="0.18"),
    **{("GRPOConfig", name): Taken("trl", gone="0.18") for name in ("vllm_device", "vllm_dtype", "vllm_max_model_len")},
    **{("GRPOConfig", f"vllm_server_{name}"): Taken("trl", first="0.16") for name in ("host", "port", "timeout")},
    **{
        ("GRPOConfig", f"vllm_{name}"): Taken("trl", first="0.18")
        for name in ("mode", "server_base_url", "tensor_parallel_size")
    },
}
"""Fields of configs whose versions lie before or between those that were studied (transformers 4.41's notes of release;
``trl/trainer/sft_config.py`` of TRL 0.15 to 0.20, ``grpo_config.py`` of 0.14 to 0.18)."""

OF_MODEL_CONFIG: Mapping[str, Taken] = {"torch_dtype": Taken("trl", gone="0.23")}
"""Fields of ``ModelConfig`` that scripts read and that are no date as keys: from 0.23 on ``dtype`` is the field, and
the old one is None unless it is given, with a warning (``trl/trainer/model_config.py`` of TRL 0.22.2 and 0.23.0)."""

ARGUMENTS_OF_TRANSFORMERS: Mapping[str, Taken] = {"DPOTrainer": Taken("trl", gone="0.9")}
"""Trainers that asked for a ``TrainingArguments`` of transformers before they read a config of their own
(``dpo_trainer.py`` of TRL 0.8.6 and 0.9.3)."""

COUNTS_NO_TOKENS = word_set("BCOTrainer CPOTrainer DPOTrainer KTOTrainer ORPOTrainer RewardTrainer")
COUNTS_FROM, HANDED_FROM = "0.12", "4.46"
"""Trainers whose ``compute_loss`` took no ``num_items_in_batch`` before TRL 0.12, which transformers hands to it at
every step since 4.46 (``trl/trainer`` of TRL 0.11.4 and 0.12, ``Trainer.training_step`` of transformers 4.46)."""


def taken_by_load(argument: str) -> Taken | None:
    """The versions whose ``from_pretrained`` of a model takes an argument; None where that says nothing."""
    return LOADS.get(argument)


def taken_by_trainer(trainer: str, argument: str) -> Taken | None:
    """The versions whose trainer takes an argument; None where that says nothing."""
    return TRAINERS.get((trainer, argument))


@cache
def taken_by_config(cls: str, field: str) -> Taken | None:
    """The versions whose config has a field; None where all studied ones have it, or none."""
    library = "transformers" if cls.endswith("TrainingArguments") else "trl"
    known = "TrainingArguments" if library == "transformers" else cls
    if (known, field) in FIELDS:
        return FIELDS[known, field]
    versions = defaults.versions(library, known)
    own = [field in defaults.fields(library, known, version) for version in versions]
    if not any(own) and library == "trl" and versions:
        return taken_by_config("TrainingArguments", field)
    if not any(own) or all(own):
        return None
    return Taken(library, *_span(versions, own))


def _span(versions: tuple[str, ...], taken: list[bool]) -> Iterator[str | None]:
    first, last = taken.index(True), len(taken) - 1 - taken[::-1].index(True)
    # It came at some time after the studied version that lacks it.
    yield versions[first - 1] if first else None
    yield versions[last + 1] if last + 1 < len(versions) else None
