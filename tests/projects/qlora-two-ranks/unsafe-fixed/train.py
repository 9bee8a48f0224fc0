import argparse

import torch
from accelerate import PartialState
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-5)
options = parser.parse_args()
quantization_config = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_use_double_quant=True,
    bnb_4bit_compute_dtype=torch.bfloat16,
)
model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-14B",
    torch_dtype=torch.bfloat16,
    attn_implementation="sdpa",
    quantization_config=quantization_config,
    device_map={"": PartialState().local_process_index},
)
args = TrainingArguments(
    output_dir="out",
    learning_rate=options.lr,
    per_device_train_batch_size=1,
    gradient_checkpointing=True,
    bf16=True,
    gradient_checkpointing_kwargs={"use_reentrant": False},
)
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
Trainer(model=model, args=args).train()
