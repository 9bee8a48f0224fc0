import json
import sys
from types import SimpleNamespace

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

settings = SimpleNamespace(**json.load(open(sys.argv[1])))
model = AutoModelForCausalLM.from_pretrained(settings.model, torch_dtype="bfloat16")
training = TrainingArguments(
    "out",
    bf16=True,
    per_device_train_batch_size=settings.micro_batch,
    gradient_accumulation_steps=32 // settings.micro_batch,
)
Trainer(model=model, args=training).train()
