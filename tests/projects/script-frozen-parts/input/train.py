from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
for p in model.parameters():
    p.requires_grad = False
for n, p in model.named_parameters():
    if "lm_head" in n:
        p.requires_grad = True
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=1)).train()
