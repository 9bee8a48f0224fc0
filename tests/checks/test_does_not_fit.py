"""What the rule says of a run whose stage or offload nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """\
import argparse
import json
import os

import deepspeed
import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed_config", default="")
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
if args.deepspeed_config and os.path.isfile(args.deepspeed_config):
    with open(args.deepspeed_config) as file:
        config = json.load(file)
else:
    config = {
        "bf16": {"enabled": True},
        "train_micro_batch_size_per_gpu": 1,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
        "zero_optimization": {"stage": 3, "offload_param": {"device": "none"}, "offload_optimizer": {"device": "none"}},
    }
config["train_micro_batch_size_per_gpu"] = 1
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B", torch_dtype=torch.bfloat16)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for batch in loader:
    engine.backward(engine(**batch).loss)
    engine.step()
"""
CONFIG = '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}'


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "full fine-tuning, even ZeRO-3 with optimizer and parameters offloaded on 2"),
        (CONFIG, "full fine-tuning, ZeRO-3 on 2"),
    ],
)
def test_a_config_that_is_not_there_is_not_said_to_offload(tmp_path: Path, config: str | None, words: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus=2 train.py --deepspeed_config ds_zero3_offload.json\n")
    if config is not None:
        (tmp_path / "ds_zero3_offload.json").write_text(config)
    flags = ("--gpu", "RTX 3090", "--gpus", "8", "--seq-len", "512", "--output-format", "concise")
    out = lintfit("check", ".", *flags, cwd=tmp_path).out
    line = next(line for line in out.splitlines() if "does-not-fit" in line)
    assert words in line
    assert "whatever zero stage" not in line
