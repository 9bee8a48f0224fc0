from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

STAGE = 3
deepspeed = {
    "bf16": {"enabled": "auto"},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": STAGE, "offload_optimizer": {"device": "cpu"}},
}
training = TrainingArguments(
    "out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True, deepspeed=deepspeed
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
Trainer(model=model, args=training).train()
