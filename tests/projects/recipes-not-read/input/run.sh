#!/usr/bin/env bash
NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora
llamafactory-cli train qwen3_lora_sft.yaml
axolotl train llama3.yml --launcher accelerate
python -m llamafactory.cli train qwen3_lora_sft.yaml
swift infer --model Qwen/Qwen2.5-7B-Instruct
axolotl preprocess llama3.yml
trl vllm-serve --model Qwen/Qwen2.5-0.5B
srun tune run --nnodes 1 --nproc_per_node 8 full_finetune_distributed --config dev/3B_sft "$@"
tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device batch_size=4
tune run eleuther_eval --config eleuther_evaluation
tune download meta-llama/Llama-3.2-1B
