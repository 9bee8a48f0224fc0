#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,2
deepspeed train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
