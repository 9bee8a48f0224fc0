#!/bin/bash
accelerate launch --use_deepspeed --num_processes 8 --mixed_precision bf16 \
    --zero_stage 3 \
    --offload_optimizer_device cpu \
    train.py
