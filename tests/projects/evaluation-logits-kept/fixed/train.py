import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype=torch.bfloat16)
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B", model_max_length=1024)


def accuracy(prediction):
    return {"accuracy": (prediction.predictions.argmax(-1) == prediction.label_ids).mean()}


trainer = Trainer(
    model=model,
    args=TrainingArguments(
        "out",
        bf16=True,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        eval_strategy="epoch",
        gradient_checkpointing=True,
        eval_accumulation_steps=1,
    ),
    train_dataset=train,
    eval_dataset=valid,
    processing_class=tokenizer,
    compute_metrics=accuracy,
)
trainer.train()
