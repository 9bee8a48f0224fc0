#!/bin/bash
torchrun --nproc_per_node 2 train.py \
    --output_dir out --bf16 --gradient_checkpointing \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 8 \
    --fsdp "full_shard auto_wrap" \
    --fsdp_transformer_layer_cls_to_wrap Qwen2DecoderLayer \
    --learning_rate 1e-5
