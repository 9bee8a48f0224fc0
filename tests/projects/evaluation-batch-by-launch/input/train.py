from dataclasses import dataclass, field

import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="Qwen/Qwen2.5-1.5B")


def load(tokenizer, split):
    texts = load_dataset("org/texts", split=split)
    return texts.map(
        lambda row: tokenizer(row["text"], truncation=True, padding="max_length", max_length=2048),
        remove_columns=texts.column_names,
    )


def main():
    model_args, training_args = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, torch_dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(model_args.model_name_or_path, model_max_length=2048)
    train_dataset, eval_dataset = load(tokenizer, "train"), load(tokenizer, "test")
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset if training_args.do_train else None,
        eval_dataset=eval_dataset if training_args.do_eval else None,
        processing_class=tokenizer,
    )
    trainer.train()


if __name__ == "__main__":
    main()
