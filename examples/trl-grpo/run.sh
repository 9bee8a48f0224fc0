#!/usr/bin/env bash
# Half of the GPUs generate, the other half train.
CUDA_VISIBLE_DEVICES=0,1,2,3 trl vllm-serve --model Qwen/Qwen2.5-7B-Instruct --tensor_parallel_size 4 &

CUDA_VISIBLE_DEVICES=4,5,6,7 accelerate launch --config_file zero3.yaml --num_processes 4 train_grpo.py
