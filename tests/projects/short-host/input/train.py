from datasets import load_dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)
import torch

MODEL = "mistralai/Mistral-7B-v0.1"


def main():
    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=1,
        gradient_checkpointing=True,
        bf16=True,
        deepspeed="ds.json",
    )
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16)
    data = load_dataset("json", data_files="data.jsonl")["train"]
    data = data.map(
        lambda row: tokenizer(row["text"], truncation=True, max_length=1024), remove_columns=data.column_names
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()


if __name__ == "__main__":
    main()
