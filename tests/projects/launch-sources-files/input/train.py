import argparse

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--max_length", type=int, default=1024)
parser.add_argument("--size", type=int, default=1)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16)
training = TrainingArguments("out", per_device_train_batch_size=args.size, bf16=True)
Trainer(model=model, args=training).train()
