import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B", model_max_length=1024)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype=torch.bfloat16)
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=1, bf16=True)).train()
