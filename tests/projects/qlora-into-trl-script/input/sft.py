"""Full fine-tuning with TRL on two cards."""

import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer, TrlParser


def main():
    parser = TrlParser((SFTConfig,))
    (training_args,) = parser.parse_args_and_config()
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B", dtype=torch.bfloat16)
    trainer = SFTTrainer(
        model,
        args=training_args,
        train_dataset=load_dataset("trl-lib/Capybara", split="train"),
    )
    trainer.train()


if __name__ == "__main__":
    main()
