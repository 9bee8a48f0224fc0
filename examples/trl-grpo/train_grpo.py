"""GRPO with LoRA adapters, rollouts by a vLLM server on the other GPUs."""

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

MODEL = "Qwen/Qwen2.5-7B-Instruct"

model = AutoModelForCausalLM.from_pretrained(
    MODEL,
    torch_dtype=torch.bfloat16,
    attn_implementation="flash_attention_2",
).to("cuda")
tokenizer = AutoTokenizer.from_pretrained(MODEL)

peft_config = LoraConfig(
    r=16,
    lora_alpha=32,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"],
    task_type="CAUSAL_LM",
)


def reward_length(completions, **kwargs):
    return [-abs(200 - len(completion)) / 200 for completion in completions]


training_args = GRPOConfig(
    output_dir="out/grpo",
    bf16=True,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=4,
    gradient_checkpointing=False,
    num_generations=8,
    max_prompt_length=1024,
    max_completion_length=1024,
    use_vllm=True,
    vllm_mode="server",
    learning_rate=5e-6,
)

trainer = GRPOTrainer(
    model=model,
    processing_class=tokenizer,
    reward_funcs=[reward_length],
    args=training_args,
    train_dataset=load_dataset("trl-lib/tldr", split="train"),
    peft_config=peft_config,
)
trainer.train()
