"""Full fine-tuning of a vision-language model with the Hugging Face trainer."""

import json
from dataclasses import dataclass, field

import torch
import transformers
from transformers import AutoModel, AutoTokenizer, HfArgumentParser, Trainer


@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="openbmb/MiniCPM-Llama3-V-2_5")


@dataclass
class DataArguments:
    data_path: str = field(default=None)


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=2048)
    remove_unused_columns: bool = field(default=False)
    optim: str = field(default="adamw_torch")


def train():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()

    compute_dtype = torch.bfloat16 if training_args.bf16 else torch.float32
    model = AutoModel.from_pretrained(
        model_args.model_name_or_path,
        trust_remote_code=True,
        torch_dtype=compute_dtype,
    )
    tokenizer = AutoTokenizer.from_pretrained(
        model_args.model_name_or_path,
        trust_remote_code=True,
        model_max_length=training_args.model_max_length,
    )

    with open(data_args.data_path) as file:
        records = json.load(file)

    trainer = Trainer(model=model, args=training_args, train_dataset=records, processing_class=tokenizer)
    trainer.train()
    trainer.save_state()


if __name__ == "__main__":
    train()
