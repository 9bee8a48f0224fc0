#!/usr/bin/env bash
litgpt finetune_lora meta-llama/Meta-Llama-3-8B \
    --precision bf16-true \
    --train.micro_batch_size=4 \
    --train.global_batch_size 16 \
    --train.max_seq_length 512
