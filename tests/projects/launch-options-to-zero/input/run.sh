#!/bin/bash
accelerate launch --multi_gpu --num_processes 8 --mixed_precision bf16 \
    train.py
