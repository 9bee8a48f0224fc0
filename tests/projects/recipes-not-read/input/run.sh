#!/usr/bin/env bash
NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora
llamafactory-cli train qwen3_lora_sft.yaml
axolotl train llama3.yml --launcher accelerate
python -m llamafactory.cli train qwen3_lora_sft.yaml
swift infer --model Qwen/Qwen2.5-7B-Instruct
axolotl preprocess llama3.yml
trl vllm-serve --model Qwen/Qwen2.5-0.5B
