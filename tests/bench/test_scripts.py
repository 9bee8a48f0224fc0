"""The judgements on real scripts, and the casts to float32 that are true ones; skipped where no checkouts are at hand.

``LINTFIT_CHECKOUTS`` names a folder as ``bench/scripts.py`` takes it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.scripts import FORCED, Spoken, checkout, float_calls, rows
from lintfit.options.rules_catalog import load_rules

CHECKOUTS = Path(os.environ.get("LINTFIT_CHECKOUTS", "checkouts"))
UPCASTS = (
    Spoken("THUDM/ChatGLM2-6B", "ptuning/main.py", FORCED, 134),
    Spoken("shibing624/MedicalGPT", "training/opd_training.py", FORCED, 566),
    Spoken("shibing624/MedicalGPT", "training/pretraining.py", FORCED, 735),
    Spoken("shibing624/MedicalGPT", "training/supervised_finetuning.py", FORCED, 913),
)
"""Where a model as a whole is cast by ``.float()`` before it trains: found by reading every such call on a model."""
READ = (
    "artidoro/qlora",
    "haotian-liu/LLaVA",
    "huggingface/alignment-handbook",
    "huggingface/peft",
    "LianjiaTech/BELLE",
    "OpenBMB/MiniCPM-V",
    "OpenRLHF/OpenRLHF",
    "QwenLM/Qwen",
    "shibing624/MedicalGPT",
    "tatsu-lab/stanford_alpaca",
    "THUDM/ChatGLM2-6B",
    "yangjianxin1/Firefly",
    "ymcui/Chinese-LLaMA-Alpaca",
    "ymcui/Chinese-LLaMA-Alpaca-3",
)


def test_every_judgement_names_a_rule_and_says_why() -> None:
    assert rows()
    for row in rows():
        assert row["rule"] in load_rules(), row
        assert row["judgement"] in ("right", "wrong", "arguable"), row
        assert row["reason"] and len(row["commit"]) == 40, row
        assert row["path"].endswith(".py") and row["line"] > 0, row


@pytest.mark.slow
@pytest.mark.bench
@pytest.mark.parametrize("repo", READ)
def test_the_casts_of_a_trained_model_and_no_other_float_call(repo: str) -> None:
    root = checkout(CHECKOUTS.resolve(), repo)
    if root is None:
        pytest.skip(f"no checkout of {repo}")
    calls, reported = float_calls(repo, root)
    expected = {where for where in UPCASTS if where.repo == repo}
    assert reported == expected, f"{calls} calls"
