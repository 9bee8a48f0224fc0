"""A run whose number of GPUs nobody states: what holds for every number, and from which on it fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.results import CheckResult
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.options.model import Options
from lintfit.report import View, render
from lintfit.verdict.scaling import scaling

A_RUN = {
    "model": "meta-llama/Llama-2-7b-hf",
    "gpu": "A100-SXM4-80GB",
    "seq_len": 1024,
    "micro_batch_size": 1,
    "engine": "deepspeed",
    "mixed_precision": "bf16",
    "weights_dtype": "bf16",
    "gradient_checkpointing": True,
}


def test_sharding_fits_from_a_number_on() -> None:
    found = scaling(spec_from_mapping({**A_RUN, "zero_stage": 2}))
    verdicts = {count: result.verdict for count, result in found.by_count}
    assert verdicts[1] is Verdict.DOES_NOT_FIT
    assert found.verdict is Verdict.UNKNOWN
    assert found.fewest is not None
    count, result = found.fewest
    assert 1 < count <= 8
    assert result.verdict is Verdict.FITS
    assert verdicts[count // 2] is not Verdict.FITS


def test_what_every_card_holds_whole_fits_on_no_number_of_them() -> None:
    found = scaling(spec_from_mapping({**A_RUN, "gpu": "RTX 2080 Ti", "zero_stage": 2}))
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.fewest is None
    assert found.least[1].peak.likely > found.least[1].component("parameters")


def test_a_stated_number_of_nodes_is_kept() -> None:
    found = scaling(spec_from_mapping({**A_RUN, "zero_stage": 3, "nodes": 2, "gpus": 2}))
    assert [count for count, _ in found.by_count][:3] == [2, 4, 8]


LAUNCH = "deepspeed train.py --deepspeed ds.json --bf16 True --per_device_train_batch_size 1\n"
SCRIPT = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")
model.gradient_checkpointing_enable()
trainer = Trainer(model=model, args=args)
trainer.train()
"""
CONFIG = '{"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}\n'


def checked(folder: Path, card: str) -> CheckResult:
    (folder / "run.sh").write_text(LAUNCH)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "ds.json").write_text(CONFIG)
    origins = {"gpu": "--gpu", "seq_len": "--seq-len"}
    return check([folder / "run.sh"], Options(gpu=card, seq_len=1024, origins=origins))


@pytest.mark.parametrize(
    ("card", "verdict", "said"),
    [
        ("A100-SXM4-80GB", Verdict.UNKNOWN, "it fits on 4 or more ("),
        ("RTX 2080 Ti", Verdict.DOES_NOT_FIT, "it fits on no number of such GPUs ("),
    ],
)
def test_a_check_says_on_how_many_cards_a_run_fits(tmp_path: Path, card: str, verdict: Verdict, said: str) -> None:
    result = checked(tmp_path, card)
    assert [run.verdict for run in result.runs] == [verdict]
    assert any(said in finding.message for finding in result.findings)
    shown = render("text", result, View(width=100))
    assert "GiB by number of GPUs: 1: " in shown
    assert "batch of a rank: 1 × 1" in shown


def test_no_plan_is_made_for_a_number_that_nobody_states(tmp_path: Path) -> None:
    result = checked(tmp_path, "RTX 2080 Ti")
    assert result.runs[0].plan is None
    assert all("fits" not in finding.fix.message for finding in result.findings if finding.fix is not None)


def test_more_ranks_of_a_node_may_need_more_than_its_memory(tmp_path: Path) -> None:
    """Each rank loads a copy: what the GPUs hold on any number of them, the host does not."""
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node $RANKS train.py --bf16 True\n")
    (tmp_path / "train.py").write_text(SCRIPT.replace("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-0.5B"))
    origins = {"gpu": "--gpu", "seq_len": "--seq-len", "host_memory_bytes": "--host-memory"}
    options = Options(gpu="A100-SXM4-80GB", seq_len=512, host_memory_bytes=4 * 2**30, origins=origins)
    result = check([tmp_path / "run.sh"], options)
    (run,) = result.runs
    assert any("of the host's memory" in finding.message for finding in result.findings)
    assert run.scaling is not None
    assert run.scaling.verdict is Verdict.FITS
    assert not run.scaling.by_count[0][1].host_is_short
    assert run.scaling.by_count[3][1].host_is_short
    assert run.verdict is Verdict.UNKNOWN
    assert run.scaling.fewest is None
