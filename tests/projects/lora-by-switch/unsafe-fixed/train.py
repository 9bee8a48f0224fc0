from dataclasses import dataclass, field

import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    use_lora: bool = False
    model_max_length: int = field(default=512)


@dataclass
class LoraArguments:
    lora_r: int = 64
    lora_alpha: int = 16


def train():
    training_args, lora_args = HfArgumentParser((TrainingArguments, LoraArguments)).parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="auto")
    if training_args.use_lora:
        model = get_peft_model(
            model,
            LoraConfig(r=lora_args.lora_r, lora_alpha=lora_args.lora_alpha, target_modules=["q_proj", "v_proj"]),
        )
    Trainer(model=model, args=training_args).train()


train()
