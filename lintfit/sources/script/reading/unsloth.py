"""What Unsloth decides in the place of TRL's configs: its patched trainers ask the model that it has loaded.

Sources: ``_patch_trl_rl_trainers`` of ``unsloth/models/rl.py``, and ``llama.py`` and ``loader.py`` beside it.
"""

from __future__ import annotations

from lintfit.settings.model import BY_CARD, BY_UNSLOTH, Provenance, Setting
from lintfit.sources.script.interpreter import models
from lintfit.sources.script.interpreter.functions import OF_UNSLOTH
from lintfit.sources.script.interpreter.values import Const, Record, plain
from lintfit.sources.script.reading.collector import Reading, dtype_name, something

_LENGTH = 2048
"""Tokens that ``FastLanguageModel.from_pretrained`` loads a model for unless it is asked not to."""


def attention(reading: Reading, load: Record) -> None:
    """Scores that no kernel of Unsloth's makes, whatever the GPU."""
    if models.by_unsloth(load) and models.owner_of(load) == "FastLanguageModel":
        reading.derive(
            "own_attention", {BY_UNSLOTH: ("flash_attention_2", True)}, "Unsloth replaces the model's attention"
        )


def kernels(reading: Reading, load: Record) -> None:
    """Norms and rotary by its kernels, and adapters without a dropout, a bias or DoRA as functions of its own.

    ``patch_peft_model`` of ``llama.py``: one for q, k and v, one for o, one for the whole MLP. Releases of 2026 fuse
    adapters with a dropout as well, which is not counted. What is trained beside them apart, no weight of the base is
    cast to fp32 (``prepare_model_for_training`` of ``unsloth_zoo/training_utils.py``).
    """
    if not models.by_unsloth(load) or models.owner_of(load) != "FastLanguageModel":
        return
    found = ["rms_norm", "rope"]
    wraps = [r for r in reading.called("get_peft_model") if r.function.startswith("unsloth") and r.taken is not False]
    if wraps and all(map(_fuses, wraps)):
        found += ["lora", "lora_mlp"]
    if wraps:
        reading.derive("kbit_upcast", "none", "Unsloth casts no weight of the base to fp32")
    reading.derive("own_kernels", tuple(found), "Unsloth replaces the model's layers")


def _fuses(wrap: Record) -> bool:
    def given(name: str) -> object:
        value = wrap.keyword(name)
        return None if value is None else plain(value)

    dropout, bias, dora = given("lora_dropout"), given("bias"), given("use_dora")
    return dropout in (None, 0) and bias in (None, "none") and dora in (None, False) and not wrap.spreads


def load_of(reading: Reading) -> Record | None:
    """The load of the trained model where Unsloth's classes do it and one of TRL's trainers trains it."""
    load, trainer = reading.found.trained_load, reading.found.trainer
    if load is None or not models.by_unsloth(load) or trainer is None:
        return None
    return load if trainer.function.partition(".")[0] in ("trl", "unsloth") else None


def sft_load_of(reading: Reading) -> Record | None:
    """The same, where it is trained on whole sequences."""
    trainer = reading.found.trainer
    return load_of(reading) if trainer is not None and trainer.name in ("SFTTrainer", "UnslothTrainer") else None


def _asks_card(reading: Reading) -> bool:
    """``bf16=is_bfloat16_supported()``, beside ``fp16=not is_bfloat16_supported()``, as its notebooks have it."""
    made = reading.found.arguments
    value = made.attributes.get("bf16") if made is not None else None
    return value is not None and any(r.function in OF_UNSLOTH and r.node is value.origin for r in reading.records)


def precision(reading: Reading) -> bool:
    """Mixed precision in the model's dtype where the arguments ask for none; whether that is so."""
    load = load_of(reading)
    if load is not None and _asks_card(reading):
        reading.settings["bf16"] = Setting("bf16", True, Provenance("assumed", BY_CARD))
        reading.settings.pop("fp16", None)
        return True
    flags = [reading.settings.get(name) for name in ("bf16", "fp16")]
    if load is None or any(flag is not None and flag.value not in (None, False) for flag in flags):
        return False
    stated = dtype_name(load.keyword("dtype", "torch_dtype") or Const())
    if stated in ("bf16", "fp16"):
        reading.derive("bf16", stated == "bf16", "unsloth trains in the dtype of the model")
        reading.derive("fp16", stated == "fp16", "unsloth trains in the dtype of the model")
    else:
        reading.settings["bf16"] = Setting("bf16", True, Provenance("assumed", BY_CARD))
    return True


def loss(reading: Reading) -> tuple[str, str] | None:
    """How the loss of whole sequences is computed, and why: with the head since 2024.11.7 (Cut Cross Entropy, its own
    since 2025.10), from whole logits before (``fused_linear_cross_entropy`` in ``unsloth/models/llama.py``).

    It is the model's, whether TRL's trainer or transformers' own trains it; None where Unsloth has loaded none.
    """
    load, trainer = reading.found.trained_load, reading.found.trainer
    plain_trainer = trainer is not None and trainer.function.startswith("transformers.") and trainer.name == "Trainer"
    if sft_load_of(reading) is None and not (plain_trainer and load is not None and models.by_unsloth(load)):
        return None
    if reading.at_least("unsloth", 2024, 11, 7):
        return "chunked", "Unsloth computes the loss together with the head"
    return "full", "Unsloth before 2024.11.7 makes all logits"


def batch(reading: Reading) -> None:
    """GRPO's batch, which the patched config raises to the number of generations where it holds no whole group.

    ``patch_trl_rl_trainers`` of ``unsloth/models/rl.py`` (2025.11): of TRL's configs with ``steps_per_generation``
    (0.19) the batches of all accumulated steps of all processes count; before that a batch had to hold whole groups.
    """
    made, batch = reading.found.arguments, reading.settings.get("micro_batch_size")
    if made is None or batch is None or "GRPO" not in made.library or load_of(reading) is None:
        return
    given = (reading.attribute(made, name) for name in ("num_generations", "gradient_accumulation_steps"))
    group, steps = (plain(value) if value is not None else None for value in given)
    if type(group) is not int or group < 1 or type(steps) is not int or type(batch.value) is not int:
        return
    if any(something(made.attributes.get(name)) for name in ("steps_per_generation", "generation_batch_size")):
        return
    world = reading.walk.environment.get("WORLD_SIZE", "1") or "1"
    ranks = int(world) if world.isdecimal() else 1
    counted = batch.value * steps * ranks if reading.at_least("trl", 0, 19) else batch.value
    if counted % group:
        why = f"Unsloth raises the batch of {batch.value} to the {group} generations of a prompt"
        reading.settings["micro_batch_size"] = Setting("micro_batch_size", group, Provenance("derived", why), (batch,))


def length(reading: Reading) -> bool:
    """The length that the model was loaded for, which takes the place of the SFT config's ``max_length``."""
    load = sft_load_of(reading)
    if load is None:
        return False
    made, value = reading.found.arguments, load.value(1, "max_seq_length")
    own = made.attributes.get("max_seq_length") if made is not None else None
    least, most = (plain(each) if each is not None else None for each in (own, value))
    if own is not None and type(least) is int and (type(most) is not int or least <= most):
        reading.put("seq_len", own)
    elif value is not None and most:
        reading.put("seq_len", value, load)
    elif value is None and not load.spreads:
        reading.default("seq_len", _LENGTH, "unsloth loads a model for 2048 tokens unless it is asked not to")
    else:
        return False
    return True
