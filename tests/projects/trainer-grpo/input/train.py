from trl import GRPOConfig, GRPOTrainer

training = GRPOConfig(
    "out",
    per_device_train_batch_size=8,
    num_generations=8,
    max_completion_length=1024,
    use_vllm=True,
    vllm_mode="colocate",
    model_init_kwargs={"dtype": "bfloat16"},
)
GRPOTrainer(model="Qwen/Qwen2.5-7B", args=training, reward_funcs=[len]).train()
