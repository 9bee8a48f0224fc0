#!/bin/bash
torchrun --nproc_per_node 2 train.py \
    --output_dir out --bf16 --gradient_checkpointing \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 8 \
    --learning_rate 1e-5 \
    --deepspeed ds_zero3_offload.json
