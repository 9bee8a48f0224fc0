#!/usr/bin/env bash
torchrun --nproc_per_node 2 train.py --batch_size 4 --dtype bfloat16
