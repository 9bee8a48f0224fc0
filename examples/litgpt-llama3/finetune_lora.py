"""LoRA fine-tuning in pure bfloat16 on one card."""

import argparse

import torch
from datasets import load_from_disk
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", default="meta-llama/Meta-Llama-3-8B")
parser.add_argument("--precision", default="bf16-true", choices=["bf16-true", "32-true"])
parser.add_argument("--micro_batch_size", type=int, default=1)
parser.add_argument("--global_batch_size", type=int, default=16)
parser.add_argument("--max_seq_length", type=int, default=2048)
parser.add_argument("--lora_r", type=int, default=8)


def main():
    args = parser.parse_args()
    dtype = torch.bfloat16 if args.precision == "bf16-true" else torch.float32

    tokenizer = AutoTokenizer.from_pretrained(args.checkpoint, model_max_length=args.max_seq_length)
    model = AutoModelForCausalLM.from_pretrained(args.checkpoint, torch_dtype=dtype)
    model = get_peft_model(
        model,
        LoraConfig(r=args.lora_r, lora_alpha=16, lora_dropout=0.05, target_modules=["q_proj", "v_proj"]),
        autocast_adapter_dtype=False,
    )

    training_args = TrainingArguments(
        output_dir="out/lora",
        per_device_train_batch_size=args.micro_batch_size,
        gradient_accumulation_steps=args.global_batch_size // args.micro_batch_size,
        learning_rate=3e-4,
        max_steps=1000,
        logging_steps=10,
    )

    data = load_from_disk("data/alpaca")
    trainer = Trainer(model=model, args=training_args, train_dataset=data, processing_class=tokenizer)
    trainer.train()


if __name__ == "__main__":
    main()
