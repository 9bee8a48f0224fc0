from transformers import AutoModelForSequenceClassification
from trl import RewardConfig, RewardTrainer

model = AutoModelForSequenceClassification.from_pretrained("Qwen/Qwen2.5-7B", num_labels=1, dtype="bfloat16")
training = RewardConfig("out", max_length=1024, per_device_train_batch_size=2)
RewardTrainer(model=model, args=training).train()
