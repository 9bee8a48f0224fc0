"""A loss that never holds all logits."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.liger import fused_since
from lintfit.fit.options import Effect, Option, Subject
from lintfit.fit.taken import has_liger_plugin
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.versions import COMMIT, before


def has_liger(run: Run, spec: Spec) -> bool:
    """Whether a flag gives this model Liger's loss: transformers' ``use_liger_kernel``, since 4.45,
    with a release of Liger that knows its type."""
    if "transformers" + COMMIT in run.versions:
        return False  # of one commit nobody knows
    if run.recipe is not None and run.recipe.dialect == "axolotl" and not has_liger_plugin(run):
        return False
    if before(run.versions.get("liger-kernel"), fused_since(spec.facts.model_type)) is True:
        return False
    return spec.facts.code.liger and before(run.versions.get("transformers"), "4.45") is not True


def _asks_for_logits(run: Run) -> bool:
    """Whether SFT's trainer computes its accuracy from logits that a fused loss does not make: TRL 0.15 does so beside
    ``use_liger_kernel`` (``SFTTrainer.compute_loss``), 0.14 nowhere and 0.16 not then."""
    stated = run.versions.get("trl")
    sft = run.training is not None and run.training.uses_trl
    return sft and before(stated, "0.16") is True and before(stated, "0.15") is False


def options(subject: Subject) -> Iterator[Option]:
    """Only where the trainer can do so: transformers since 4.45, TRL's SFT trainer in chunks from 1.8 on."""
    run, spec = subject.run, subject.spec
    if spec.loss != "full" or spec.trainer != "causal-lm":
        return
    if run.recipe is not None and "loss" not in run.recipe.adjustable:
        return
    arguments = run.script.facts.training_arguments if run.script is not None else None
    if run.script is not None and arguments is None:
        return
    note = "the same loss in another kernel (rounding differs); needs the package liger-kernel"
    logits = run.mentions(".logits") or _asks_for_logits(run)  # which are None in training, beside a fused loss
    if has_liger(run, spec) and not logits:
        yield Option("Liger's fused loss", {"loss": "liger"}, Effect.NUMERICS, note)
    sft = arguments is not None and arguments.name == "SFTConfig" and spec.method == "full"
    if sft and before(run.versions.get("trl"), "1.8") is not True:
        yield Option("a chunked loss", {"loss": "chunked"}, Effect.NUMERICS, "the same loss, chunk by chunk")
