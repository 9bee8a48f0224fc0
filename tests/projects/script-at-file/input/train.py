import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B")
parser.add_argument("--micro-batch", type=int, default=1)
arguments = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(arguments.model, torch_dtype="bfloat16")
training = TrainingArguments("out", bf16=True, per_device_train_batch_size=arguments.micro_batch)
Trainer(model=model, args=training).train()
