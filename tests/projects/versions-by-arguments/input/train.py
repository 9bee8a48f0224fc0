from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b")
args = TrainingArguments("out", no_cuda=False, gradient_checkpointing=True, bf16=True, per_device_train_batch_size=1)
Trainer(model=model, args=args).train()
