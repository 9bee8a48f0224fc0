"""What ranks hold, phase by phase, in real runs with gloo on a CPU: ZeRO, FSDP 2, and models that are split."""
