"""How axolotl computes the loss, in training and in evaluation (0.18.0: ``integrations``, ``core/builders``)."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.recipes.axolotl_config import Config
from lintfit.sources.recipes.keys import Stated


def loss(config: Config) -> Iterator[Setting]:
    """The loss with the head in one: Liger's, or Cut Cross Entropy, which keeps no logits either."""
    yield Setting("use_cache", False, Provenance.default("axolotl switches the cache off"))
    fused = _fused_loss(config)
    if fused is not None:
        yield fused.setting("loss", "liger" if fused.value is not UNKNOWN else UNKNOWN)
    else:
        yield Setting("loss", "full", Provenance.default("transformers' loss over all logits"))


def _fused_loss(config: Config) -> Stated | None:
    """What asks for a loss without logits. The plugin for Cut Cross Entropy switches it on by itself."""
    plugins, liger = config.get("plugins"), config.get("liger_fused_linear_cross_entropy")
    if config.get("rl").value:
        asked = (config.get("dpo_use_liger_kernel"), config.inner("trl", "use_liger_loss"))
        return next((each for each in asked if each is not None and each.value), None)
    if plugins.value is UNKNOWN:
        return plugins
    if _cuts(config):
        own = config.get("cut_cross_entropy")
        return own if own.value else plugins
    return liger if config.plugin("LigerPlugin") and liger.value else None


def _cuts(config: Config) -> bool:
    """Whether Cut Cross Entropy's plugin computes the loss."""
    cuts = config.plugin("CutCrossEntropyPlugin") and config.get("cut_cross_entropy").value is not False
    return bool(cuts) and not config.get("rl").value


def evaluates(config: Config) -> bool:
    """Whether there is data to evaluate on and a strategy that says when."""
    if not config.get("val_set_size").value and not config.get("test_datasets").value:
        return False
    asked = ("eval_steps", "evals_per_epoch", "eval_strategy", "evaluation_strategy")
    return any(config.get(key).value not in (None, 0, "no") for key in asked)


def evaluation(config: Config) -> Iterator[Setting]:
    """A batch of the training's size, whose results go to the host as often as the training accumulates.

    Cut Cross Entropy makes no logits in an evaluation either (``use_lce`` of axolotl's fork: ``train_only`` is off), so
    that one no larger than the training's is nothing beside it.
    """
    if not evaluates(config):
        return
    batch, steps = config.get("eval_batch_size"), accumulation(config)
    by = batch if batch.value is not None else config.get("micro_batch_size")
    if _cuts(config) and (by is not batch or _no_larger(config)):
        return
    yield by.setting("eval_batch_size", by.value)
    if not config.get("rl").value:
        yield Setting("eval_accumulation_steps", steps.value, steps.provenance)


def _no_larger(config: Config) -> bool:
    batch, micro = config.count("eval_batch_size"), config.count("micro_batch_size")
    return batch is not None and micro is not None and batch <= micro


def accumulation(config: Config) -> Setting:
    """``gradient_accumulation_steps``; a null one is what ``batch_size`` is of the micro-batch.

    Where it is merely left out it is 1, whatever ``batch_size`` says: pydantic has filled it in by then.
    """
    found, batch = config.get("gradient_accumulation_steps"), config.get("batch_size")
    name = "gradient_accumulation_steps"
    if found.value not in (None, 0):
        return config.number(name, name)
    samples, micro = config.count("batch_size"), config.count("micro_batch_size")
    return batch.setting(name, samples // micro if samples and micro else UNKNOWN)
