import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

dataset = load_dataset("trl-lib/Capybara", split="train")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", dtype=torch.bfloat16)
trainer = SFTTrainer(
    model=model,
    args=SFTConfig(
        output_dir="out",
        per_device_train_batch_size=2,
    ),
    train_dataset=dataset,
)
trainer.train()
