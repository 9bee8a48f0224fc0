"""Fine-tune a 7B model with mixed precision, gradient checkpointing and DeepSpeed."""

import argparse

import torch
from datasets import load_from_disk
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed", type=str, default=None)
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()

tokenizer = AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf", model_max_length=1024)

model = AutoModelForCausalLM.from_pretrained(
    "meta-llama/Llama-2-7b-hf",
    torch_dtype=torch.float16,
    gradient_checkpointing=True,
)

training_args = TrainingArguments(
    output_dir="out",
    fp16=True,
    gradient_accumulation_steps=8,
    learning_rate=1e-5,
    num_train_epochs=1,
    deepspeed=args.deepspeed,
)

trainer = Trainer(
    model=model,
    args=training_args,
    train_dataset=load_from_disk("data/train"),
    processing_class=tokenizer,
)
trainer.train()
