from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import KTOConfig, KTOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype="bfloat16")
training = KTOConfig("out", max_length=1024, per_device_train_batch_size=2)
KTOTrainer(model=model, args=training, peft_config=LoraConfig(r=16, target_modules="all-linear")).train()
