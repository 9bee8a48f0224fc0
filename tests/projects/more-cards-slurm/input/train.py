import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments

MODEL = "Qwen/Qwen2.5-7B"


def main():
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    tokenizer = AutoTokenizer.from_pretrained(MODEL, model_max_length=2048)
    model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16)
    data = load_dataset("json", data_files="d.jsonl")["train"]
    Trainer(model=model, args=args, train_dataset=data, processing_class=tokenizer).train()


if __name__ == "__main__":
    main()
