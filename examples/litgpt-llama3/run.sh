#!/usr/bin/env bash
python finetune_lora.py \
    --checkpoint meta-llama/Meta-Llama-3-8B \
    --precision bf16-true \
    --micro_batch_size 1 \
    --global_batch_size 16 \
    --max_seq_length 2048
