import transformers
from datasets import load_dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

quantization_config = transformers.BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_use_double_quant=True,
    bnb_4bit_compute_dtype="bfloat16",
)
config = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=8,
    gradient_checkpointing=True,
    max_length=1024,
    bf16=True,
    model_init_kwargs={"quantization_config": quantization_config, "dtype": "bfloat16"},
)
transformers.set_seed(7)
trainer = SFTTrainer(
    "Qwen/Qwen2.5-14B",
    args=config,
    train_dataset=load_dataset("json", data_files="d.jsonl")["train"],
    peft_config=LoraConfig(
        r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
    ),
)
trainer.train()
