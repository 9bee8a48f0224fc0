"""What is generated and scored between the training steps: DPO and GRPO, PPO."""
