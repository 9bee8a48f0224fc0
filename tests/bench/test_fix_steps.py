"""One step of a tiny random model, by the script of a launch (bench/fixing/steps.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.fixing.steps import patched, stepped

LAUNCH = "torchrun --nproc_per_node 2 train.py --output_dir out --fp16 True --per_device_train_batch_size 8\n"
SCRIPT = """import datasets
import transformers
from peft import LoraConfig, get_peft_model

(args,) = transformers.HfArgumentParser(transformers.TrainingArguments).parse_args_into_dataclasses()
model = transformers.AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
tokenizer = transformers.AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")
data = datasets.load_dataset("json", data_files="no_such.json")["train"].map(lambda row: tokenizer(row["text"]))
# lora
trainer = transformers.Trainer(model=model, args=args, train_dataset=data)
trainer.train()
"""


def test_a_launch_that_starts_nothing_makes_no_step(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo nothing\n", "utf-8")
    said = stepped(sys.executable, tmp_path, "run.sh", 0, 1, tmp_path, 10)
    assert not said["stepped"]
    assert said["stage"] == "bash"


def test_a_diff_is_applied_to_a_file_without_a_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("a\nb", "utf-8")
    patched(
        tmp_path, "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+d"
    )
    assert (tmp_path / "run.sh").read_text("utf-8") == "c\nb\n"
    assert (tmp_path / "new").read_text("utf-8") == "d\n"


@pytest.mark.peers
@pytest.mark.slow
def test_a_tiny_model_steps_and_what_no_gradient_reaches_is_said(tmp_path: Path) -> None:
    for name in ("torch", "transformers", "accelerate", "peft", "datasets"):
        pytest.importorskip(name)
    (tmp_path / "run.sh").write_text(LAUNCH, "utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, "utf-8")
    said = stepped(sys.executable, tmp_path, "run.sh", 0, 2, tmp_path, 200)
    assert said["stepped"], said
    assert said["seen"]["per_device_train_batch_size"] == 8
    frozen = SCRIPT.replace("# lora", "model.requires_grad_(False)")
    (tmp_path / "train.py").write_text(frozen, "utf-8")
    assert not stepped(sys.executable, tmp_path, "run.sh", 0, 2, tmp_path, 200)["stepped"]
