from transformers import AutoModelForSequenceClassification
from trl import GRPOConfig, GRPOTrainer

scorer = AutoModelForSequenceClassification.from_pretrained("meta-llama/Llama-3.1-8B", dtype="bfloat16", num_labels=1)
training = GRPOConfig(
    "out",
    per_device_train_batch_size=8,
    num_generations=8,
    max_completion_length=512,
    gradient_checkpointing=True,
    model_init_kwargs={"dtype": "bfloat16"},
)
GRPOTrainer(model="Qwen/Qwen2.5-0.5B", args=training, reward_funcs=[len, scorer]).train()
