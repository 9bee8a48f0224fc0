import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments

name = "meta-llama/Llama-2-13b-hf"
quantization = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_use_double_quant=True,
    bnb_4bit_compute_dtype=torch.bfloat16,
)
model = AutoModelForCausalLM.from_pretrained(name, quantization_config=quantization, device_map={"": 0})
model = prepare_model_for_kbit_training(model)
model = get_peft_model(
    model,
    LoraConfig(r=64, lora_alpha=16, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
)
tokenizer = AutoTokenizer.from_pretrained(name, model_max_length=1024)
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=16,
    gradient_checkpointing=True,
    optim="paged_adamw_32bit",
    bf16=True,
)
Trainer(model=model, args=args, train_dataset=load_dataset("json", data_files="d.jsonl")["train"]).train()
