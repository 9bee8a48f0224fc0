"""Which runs the attention of a project reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from lintfit.run.model import Run

PATCH = """
import torch.nn.functional as F
import transformers

def forward(self, query, key, value):
    return F.{kernel}(query, key, value)

def replace_llama_attn():
    transformers.models.llama.modeling_llama.LlamaAttention.forward = forward
"""
TRAIN = """
from patch import replace_llama_attn
{call}
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained({model})
Trainer(model, TrainingArguments("out")).train()
"""
SCORES, NONE = "softmax", "scaled_dot_product_attention"
LLAMA = "'huggyllama/llama-7b'"


def _run(folder: Path, kernel: str, version: str, call: str = "replace_llama_attn()", model: str = LLAMA) -> Run:
    (folder / "patch.py").write_text(PATCH.replace("{kernel}", kernel) + "#" * 6_000)
    (folder / "train.py").write_text(TRAIN.format(call=call, model=model))
    (folder / "requirements.txt").write_text(f"transformers=={version}\n")
    _, (run,) = load_runs((folder / "train.py",), Options())
    assert run.run.spec is not None
    return run.run


@pytest.mark.parametrize(
    ("kernel", "version", "model", "attention"),
    [
        (NONE, "4.28.1", LLAMA, "sdpa"),
        (SCORES, "4.28.1", LLAMA, "eager"),
        # the class is that of eager attention alone, and SDPA has another
        (SCORES, "4.40.0", LLAMA, None),
        (SCORES, "4.40.0", f"{LLAMA}, attn_implementation='eager'", "eager"),
        (SCORES, "4.50.0", LLAMA, "eager"),
        (SCORES, "4.50.0", f"{LLAMA}, attn_implementation='flash_attention_2'", "flash_attention_2"),
        (SCORES, "4.50.0", "'Qwen/Qwen2.5-7B'", None),
    ],
)
def test_the_class_that_the_model_runs(
    tmp_path: Path, kernel: str, version: str, model: str, attention: str | None
) -> None:
    run = _run(tmp_path, kernel, version, model=model)
    assert run.spec is not None
    assert (run.spec.attention if "attention" in run.spec.stated else None) == attention
    assert run.doubtful == ()


@pytest.mark.parametrize(
    ("kernel", "version", "doubtful"),
    [(NONE, "4.28.1", ("attention",)), (NONE, "4.50.0", ()), (SCORES, "4.50.0", ("attention",))],
)
def test_what_need_not_be_replaced_is_doubtful_where_it_matters(
    tmp_path: Path, kernel: str, version: str, doubtful: tuple[str, ...]
) -> None:
    perhaps = "import os\nif os.path.exists('fast'):\n    replace_llama_attn()"
    assert _run(tmp_path, kernel, version, perhaps).doubtful == doubtful


UNSLOTH = """
from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer
model, tokenizer = FastLanguageModel.from_pretrained("{model}")
SFTTrainer(model, args=SFTConfig("out")).train()
"""


@pytest.mark.parametrize(
    ("model", "attention"),
    [("Qwen/Qwen2.5-7B", "flash_attention_2"), ("google/gemma-2-9b", None), ("allenai/OLMo-2-1124-7B", None)],
)
def test_unsloth_has_attention_of_its_own_for_some_models(tmp_path: Path, model: str, attention: str | None) -> None:
    script = tmp_path / "train.py"
    script.write_text(UNSLOTH.format(model=model))
    _, (run,) = load_runs((script,), Options())
    assert run.run.spec is not None
    assert (run.run.spec.attention if "attention" in run.run.spec.stated else None) == attention
