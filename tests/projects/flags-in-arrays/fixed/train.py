from dataclasses import dataclass, field
import torch
import transformers
from datasets import load_dataset
from transformers import HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="gpt2")
    use_lora: bool = field(default=False)


@dataclass
class MyArguments(TrainingArguments):
    model_max_length: int = field(default=512)


def train():
    parser = HfArgumentParser((ModelArguments, MyArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        model_args.model_name_or_path,
        torch_dtype=torch.bfloat16 if training_args.bf16 else torch.float16,
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        model_args.model_name_or_path, model_max_length=training_args.model_max_length
    )
    if model_args.use_lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
        model.enable_input_require_grads()
    trainer = Trainer(model=model, args=training_args, train_dataset=load_dataset("json")["train"])
    trainer.train()


if __name__ == "__main__":
    train()
