import argparse

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--max_length", type=int, default=1024)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16)
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=1, bf16=True)).train()
