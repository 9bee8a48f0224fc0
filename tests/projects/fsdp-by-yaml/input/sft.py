import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

dataset = load_dataset("trl-lib/Capybara", split="train")
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B", dtype=torch.bfloat16)
trainer = SFTTrainer(
    model=model,
    args=SFTConfig(
        output_dir="out",
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        max_length=4096,
        bf16=True,
    ),
    train_dataset=dataset,
)
trainer.train()
