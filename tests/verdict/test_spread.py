"""What decides a tight run: the causes of its range, with the GiB by which the estimate moves where they are stated."""

from __future__ import annotations

from pathlib import Path

from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB
from lintfit.memory.verdict.causes import Cause, causes
from lintfit.verdict.spread import _spread, spread
from tests.support import lintfit

GRPO = {
    "model": "Qwen/Qwen3-4B",
    "method": "lora",
    "trainer": "grpo",
    "weights_dtype": "bf16",
    "micro_batch_size": 16,
    "seq_len": 2048,
    "gradient_checkpointing": True,
    "gpu": "RTX 3090",
}


def test_an_unstated_version_is_the_cause_and_stating_it_moves_the_peak_by_as_much() -> None:
    spec = spec_from_mapping(GRPO)
    result = estimate(spec)
    first = spread(spec, result.peak.likely)[0]
    assert first.what == "the version of trl is not stated"
    assert first.how == "--versions trl=VERSION"
    (cause,) = [each for each in causes(spec) if each.names == ("trl",)]
    older = estimate(replace(spec, versions={**spec.versions, "trl": "1.13"}))
    assert cause.bytes == older.allocated_bytes - result.allocated_bytes > GIB
    assert first.said() == f"the version of trl is not stated (+{cause.bytes / GIB:.1f}): --versions trl=VERSION"


def test_what_is_stated_is_no_cause() -> None:
    spec = spec_from_mapping({**GRPO, "versions": {"trl": "1.15"}})
    assert all("trl" not in cause.names for cause in causes(spec))
    assert spread(spec, estimate(spec).peak.likely)[0].what == "gaps in torch's allocator"


def test_what_the_code_of_a_model_decides_is_no_version() -> None:
    spec = spec_from_mapping({**GRPO, "model": "microsoft/Phi-3-mini-4k-instruct"})
    said = [each.said() for each in (_spread(Cause(("facts",), GIB), False), *spread(spec, GIB))]
    assert said[0].startswith("the code of the model not stated (+1.0)")
    assert all("facts" not in each for each in said)


def test_no_more_than_two_and_none_that_weighs_nothing() -> None:
    spec = spec_from_mapping(GRPO)
    peak = estimate(spec).peak.likely
    assert 1 <= len(spread(spec, peak)) <= 2
    assert spread(spec, 1000 * peak) == ()


BARE = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=4, gradient_checkpointing=True)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=data).train()
"""
TRL = """\
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="out", per_device_train_batch_size=2, max_length=1024)
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data).train()
"""
OFFLOADED = """{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true}}"""


def _said(folder: Path, script: str, *flags: str) -> str:
    (folder / "train.py").write_text(script)
    return " ".join(lintfit("check", "train.py", *flags, cwd=folder).out.split())


def test_a_length_that_decides_is_said_with_its_memory(tmp_path: Path) -> None:
    said = _said(tmp_path, BARE, "--gpu", "RTX 3060")
    assert said.startswith("train.py: not judged ")
    assert ": sequences of 2048 tokens, which is assumed, not of 64 (+" in said
    assert "): --seq-len" in said


def test_versions_that_make_a_run_tight_are_said(tmp_path: Path) -> None:
    said = _said(tmp_path, TRL, "--gpu", "RTX 3090")
    assert said.startswith("train.py: tight ")
    assert ": mixed precision where nothing states it: bf16 in trl 0.19 and later, no before (+" in said
    assert "): --versions trl=VERSION" in said


def test_a_host_that_may_be_short_is_said(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(OFFLOADED)
    script = BARE.replace('output_dir="out"', 'output_dir="out", deepspeed="ds.json"')
    said = _said(tmp_path, script, "--gpu", "A100 80GB", "--seq-len", "512", "--host-memory", "16GiB")
    assert said.startswith("train.py: tight ")
    assert "of 16.0 GiB: what the processes themselves may take of the host (libraries, CUDA) (+" in said


def test_where_low_and_high_agree_nothing_is_said(tmp_path: Path) -> None:
    assert " range " not in _said(tmp_path, BARE, "--gpu", "H200", "--seq-len", "512")
