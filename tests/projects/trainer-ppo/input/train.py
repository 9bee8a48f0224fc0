from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from trl import PPOConfig, PPOTrainer

policy = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype="bfloat16")
value = AutoModelForSequenceClassification.from_pretrained("Qwen/Qwen2.5-7B", num_labels=1, dtype="bfloat16")
trainer = PPOTrainer(args=PPOConfig("out"), model=policy, ref_model=None, reward_model=value, value_model=value)
trainer.train()
