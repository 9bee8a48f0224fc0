import argparse

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-5)
options = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-14B",
    torch_dtype=torch.bfloat16,
    attn_implementation="sdpa",
)
args = TrainingArguments(
    output_dir="out", learning_rate=options.lr, per_device_train_batch_size=1, gradient_checkpointing=True, bf16=True
)
Trainer(model=model, args=args).train()
