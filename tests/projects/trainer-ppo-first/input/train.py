from trl import AutoModelForCausalLMWithValueHead, PPOConfig, PPOTrainer

config = PPOConfig(model_name="gpt2", batch_size=32, mini_batch_size=2, gradient_accumulation_steps=2, ppo_epochs=2)
model = AutoModelForCausalLMWithValueHead.from_pretrained(config.model_name)
trainer = PPOTrainer(config, model, tokenizer=tokenizer, dataset=dataset)
for batch in trainer.dataloader:
    trainer.step(batch["query"], batch["response"], batch["score"])
