"""What a torchtune recipe trains for: the loss, and the models that it holds beside the one that it trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.settings.uncounted import FAKE_QUANTIZED
from lintfit.sources.recipes import torchtune_parts as parts
from lintfit.sources.recipes.keys import Keys, Stated


class Recipe(Protocol):
    """What is asked of the recipe."""

    @property
    def name(self) -> str: ...

    @property
    def keys(self) -> Keys: ...

    @property
    def ppo(self) -> bool: ...

    @property
    def builder(self) -> parts.Builder | None: ...

    def component(self, key: str) -> Stated: ...

    def found(self, key: str) -> Stated: ...


def trained_for(recipe: Recipe) -> Iterator[Setting]:
    """The trainer whose step the recipe's is like, its loss, and the models beside."""
    why = Provenance("derived", f"the recipe {recipe.name}")
    if recipe.ppo or "grpo" in recipe.name:
        # Whose rollouts, caches and scores are not TRL's.
        yield Setting("trainer", UNKNOWN, why)
        yield Setting("reference_model", True, why)
        yield Setting("uncounted", "what torchtune's own rollouts hold", why)
    elif "dpo" in recipe.name:
        adapts = recipe.builder is not None and recipe.builder.adapts
        yield Setting("trainer", "dpo", why)
        # full_dpo_distributed.py loads one whatever the model is (0.6, _setup_reference_model).
        yield Setting("reference_model", not adapts or "full_dpo" in recipe.name, why)
    else:
        loss = recipe.component("loss")
        chunked = isinstance(loss.value, str) and loss.value.endswith(parts.CHUNKED)
        yield Setting("trainer", "causal-lm", why)
        yield loss.setting("loss", UNKNOWN if loss.value is UNKNOWN else "chunked" if chunked else "full")
    yield from _beside(recipe, why)


def _beside(recipe: Recipe, why: Provenance) -> Iterator[Setting]:
    teacher, part = recipe.component("teacher_model"), recipe.keys.found("model.decoder_trainable")
    if teacher.value is not None and "distillation" in recipe.name:
        built = parts.builder(teacher.value)
        held: dict[str, Any] = {"model": built.model if built is not None else None}
        dtype = parts.DTYPES.get(str(recipe.keys.found("dtype").value))
        held |= {"weights_dtype": dtype} if dtype is not None else {}
        held |= {"quantization": "nf4-double"} if built is not None and built.quantizes else {}
        yield teacher.setting("frozen_models", (held,))
        yield Setting("own_loss", True, why)
    elif "qat" in recipe.name and recipe.found("enable_activation_checkpointing").value is not True:
        yield Setting("uncounted", FAKE_QUANTIZED, why)
    elif part.value in (False, "frozen") and "lora" not in recipe.name:
        yield part.setting("frozen_modules", ("*",))
        yield part.setting("partly_frozen", True)
