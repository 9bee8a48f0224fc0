"""Full fine-tuning of a 7B model on one card, the way the first tutorial does it."""

import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

MODEL = 'meta-llama/Llama-2-7b-hf'


def main():
    tokenizer = AutoTokenizer.from_pretrained(MODEL, model_max_length=2048)
    model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16)
    model.config.use_cache = False  # not while it trains
    args = TrainingArguments(
        output_dir='out',
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        gradient_checkpointing=True,
        bf16=True,
    )
    data = load_dataset('json', data_files='d.jsonl')['train']
    model.enable_input_require_grads()
    model = get_peft_model(
        model,
        LoraConfig(r=16, lora_alpha=32, target_modules='all-linear', task_type='CAUSAL_LM'),
    )
    trainer = Trainer(model=model, args=args, train_dataset=data, tokenizer=tokenizer)
    trainer.train()


if __name__ == '__main__':
    main()
