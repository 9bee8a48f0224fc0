"""The variable by which torch's allocator leaves fewer gaps: where a plan is tight by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.documents.edits import apply
from lintfit.fit.gaps import fewer_gaps
from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.options.model import Options

SCRIPT = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args).train()
"""
LAUNCH = "torchrun --nproc_per_node 2 train.py --output_dir out --bf16 True --gradient_checkpointing True"


def _written(folder: Path, launch: str, micro: int = 8, *, torch: str | None = None) -> str:
    (folder / "train.py").write_text(SCRIPT)
    text = f"{launch} --per_device_train_batch_size {micro}\n"
    (folder / "run.sh").write_text(text)
    stated = {"gpu": "RTX 3090", "gpus": 2, "seq_len": 1024}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))  # type: ignore[arg-type]
    run = check([folder / "run.sh"], options).runs[0].run
    assert run.spec is not None
    run = run if torch is None else replace(run, versions={**run.versions, "torch": torch})
    return apply(text, [each.edit for each in fewer_gaps(run, estimate(run.spec))])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "),
        ("X=1 ", "X=1 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "),
        ("X=1 \\\n", "X=1 \\\nPYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \\\n"),
        ("  X=1 \\\n  ", "  X=1 \\\n  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \\\n  "),
    ],
)
def test_it_stands_as_the_other_variables_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _written(tmp_path, before + LAUNCH).startswith(after + LAUNCH)


def test_it_is_not_set_where_it_does_nothing_or_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _written(tmp_path, LAUNCH, micro=2).startswith(LAUNCH)  # fits
    assert _written(tmp_path, LAUNCH, torch="2.0.1").startswith(LAUNCH)
    assert _written(tmp_path, LAUNCH, torch="2.1.0").startswith("PYTORCH")
    for said in ("export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128\n", "export VLLM=1 # vllm\n"):
        assert _written(tmp_path, said + LAUNCH).startswith(said + LAUNCH)
