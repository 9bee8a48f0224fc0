from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype="bfloat16")
model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
tokenizer = AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf", model_max_length=1024)
args = TrainingArguments(
    "out", per_device_train_batch_size=1, gradient_accumulation_steps=16, gradient_checkpointing=True, bf16=True
)
Trainer(model=model, args=args, train_dataset=load_dataset("json", data_files="d.jsonl")["train"]).train()
