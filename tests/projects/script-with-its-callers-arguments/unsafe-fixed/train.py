from dataclasses import dataclass

from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Given:
    model_name_or_path: str
    length: int


given, args = HfArgumentParser((Given, TrainingArguments)).parse_args_into_dataclasses()
tokenizer = AutoTokenizer.from_pretrained(given.model_name_or_path)
model = AutoModelForCausalLM.from_pretrained(given.model_name_or_path, torch_dtype="bfloat16")


def tokenize(row):
    return tokenizer(row["text"], truncation=True, max_length=given.length, padding="max_length")


trainer = Trainer(model=model, args=args, train_dataset=rows.map(tokenize))
trainer.train()
