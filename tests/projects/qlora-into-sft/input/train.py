import transformers
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

config = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=2,
    gradient_accumulation_steps=4,
    gradient_checkpointing=True,
    max_length=1024,
    bf16=True,
)
transformers.set_seed(7)
trainer = SFTTrainer(
    "Qwen/Qwen2.5-14B",
    args=config,
    train_dataset=load_dataset("json", data_files="d.jsonl")["train"],
)
trainer.train()
