#!/usr/bin/env bash
# Flags of SFTConfig, ModelConfig and accelerate launch on one line.
trl sft --model_name_or_path Qwen/Qwen2.5-7B --dtype bfloat16 --dataset_name trl-lib/Capybara --use_peft \
    --accelerate_config multi_gpu --num_processes 2 --per_device_train_batch_size 8 --max_length 2048
