"""Checks as a whole: for how many launches of a file a plan is looked for."""

from __future__ import annotations

from pathlib import Path

from lintfit.commands.check import MOST_PLANS
from tests.support import lintfit


def test_plans_are_looked_for_in_the_first_launches_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    line = "torchrun --nproc_per_node 2 train.py --output_dir out --bf16 True --max_steps {}\n"
    (tmp_path / "run.sh").write_text("".join(map(line.format, range(MOST_PLANS + 2))))
    words = ("check", "run.sh", "--gpu", "H100", "--seq-len", "512")
    found = lintfit(*words, "--output-format", "json", cwd=tmp_path).json
    assert [run["plan"] is not None for run in found["runs"]] == [True] * MOST_PLANS + [False] * 2
    text = " ".join(lintfit(*words, cwd=tmp_path).out.split())
    assert f"run.sh: plans were looked for in its first {MOST_PLANS} launches" in text
