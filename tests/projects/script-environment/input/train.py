import os

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

world = int(os.environ.get("WORLD_SIZE", 1))
rank = int(os.environ["LOCAL_RANK"])
training = TrainingArguments(
    "out",
    bf16=os.getenv("PRECISION", "bf16") == "bf16",
    per_device_train_batch_size=int(os.environ["MICRO_BATCH"]),
    gradient_accumulation_steps=max(1, 64 // world),
)
device_map = {"": rank} if world > 1 else "auto"
model = AutoModelForCausalLM.from_pretrained(os.environ["MODEL"], torch_dtype="bfloat16", device_map=device_map)
Trainer(model=model, args=training).train()
