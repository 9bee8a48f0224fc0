#!/bin/bash
# Trains with 2 samples a card, and validates every 500 steps.
EVAL_BATCH=4

torchrun --nproc_per_node 2 train.py \
    --output_dir out \
    --do_train \
    --bf16 True \
    --per_device_train_batch_size 2 \
    --per_device_eval_batch_size $EVAL_BATCH \
    --gradient_checkpointing True \
    --evaluation_strategy steps \
    --eval_steps 500
