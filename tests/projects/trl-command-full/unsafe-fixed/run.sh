#!/usr/bin/env bash
# Flags of SFTConfig, ModelConfig and accelerate launch on one line.
trl sft --model_name_or_path Qwen/Qwen2.5-7B --dtype bfloat16 --dataset_name trl-lib/Capybara \
    --accelerate_config multi_gpu --num_processes 2 --per_device_train_batch_size 2 --max_length 2048 \
    --gradient_accumulation_steps 4 --use_peft True --lora_target_modules all-linear
