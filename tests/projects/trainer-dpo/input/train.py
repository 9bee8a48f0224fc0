from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", dtype="bfloat16")
training = DPOConfig("out", max_length=1024, per_device_train_batch_size=8, gradient_checkpointing=False)
DPOTrainer(model=model, args=training).train()
