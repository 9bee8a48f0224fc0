"""Full fine-tuning with TRL on two cards."""

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer, TrlParser


def main():
    parser = TrlParser((SFTConfig,))
    (training_args,) = parser.parse_args_and_config()
    quantization_config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    model = AutoModelForCausalLM.from_pretrained(
        "Qwen/Qwen2.5-14B", dtype=torch.bfloat16, quantization_config=quantization_config
    )
    trainer = SFTTrainer(
        model,
        args=training_args,
        train_dataset=load_dataset("trl-lib/Capybara", split="train"),
        peft_config=LoraConfig(
            r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
    trainer.train()


if __name__ == "__main__":
    main()
