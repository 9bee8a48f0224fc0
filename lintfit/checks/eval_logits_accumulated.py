"""The rule eval-logits-accumulated: see its page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.wording import gib
from lintfit.findings import Applicability, Fix
from lintfit.run.model import Run
from lintfit.sources.script_model import Argument, Call

_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
_LANGUAGE_MODEL = re.compile(r"(CausalLM|LMHeadModel|Seq2SeqLM|ConditionalGeneration|MaskedLM)\.from_pretrained$")
_SPARES = ("prediction_loss_only", "eval_accumulation_steps", "predict_with_generate", "batch_eval_metrics")
_OWN_LOOP = re.compile(r"def (prediction_step|evaluation_loop|evaluate|compute_loss)\(")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.script.facts.trainer is None:
        return
    trainer = run.script.facts.trainer
    metrics = trainer.argument("compute_metrics")
    if metrics is None or not _certain(run, trainer, metrics) or not _evaluates(run, trainer):
        return
    if any(_given(run, name) is not False for name in _SPARES):
        return
    yield Report(
        metrics.whole,
        f"compute_metrics has the Trainer keep the logits of the whole evaluation on the GPU{_cost(run)}",
        fix=_fix(run),
        help="eval_accumulation_steps=1 moves them to the host; preprocess_logits_for_metrics can reduce them before",
    )


def _certain(run: Run, trainer: Call, metrics: Argument) -> bool:
    """Whether transformers' own loop keeps the logits of a language model for these metrics."""
    assert run.script is not None
    if trainer.function not in _TRAINERS or trainer.spreads or trainer.taken is not True:
        return False
    if metrics.value is None or " if " in metrics.place.text or "None" in metrics.place.text:
        return False
    preprocess = trainer.argument("preprocess_logits_for_metrics")
    if preprocess is not None or _OWN_LOOP.search(run.script.document.text):
        return False
    loads = [load for load in run.script.facts.loads if load.taken is not False]
    return len(loads) == 1 and bool(_LANGUAGE_MODEL.search(loads[0].function))


def _evaluates(run: Run, trainer: Call) -> bool:
    assert run.script is not None
    data = trainer.argument("eval_dataset")
    when = run.script.argument("eval_strategy", "evaluation_strategy")
    return data is not None and data.value is not None and when is not None and when.value in ("steps", "epoch")


def _given(run: Run, name: str) -> object:
    """Whether an argument is on: False where it is not given or off, else what is known of it."""
    assert run.script is not None
    found = run.script.argument(name)
    return False if found is None or found.value in (None, False, 0) else found.value


def _cost(run: Run) -> str:
    spec = run.spec
    if spec is None:
        return ""
    return f": {gib(spec.seq_len * spec.facts.vocab * 4)} for each sample of {spec.seq_len:,} tokens"


def _fix(run: Run) -> Fix | None:
    assert run.script is not None
    edits = run.script.write_argument("eval_accumulation_steps", 1)
    return Fix("move them to the host after each batch", Applicability.SAFE, edits) if edits else None
