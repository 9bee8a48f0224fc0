#!/usr/bin/env bash
srun bash -c 'cd /code ; pip install . ; torchrun --nproc_per_node 2 train.py --model Qwen/Qwen2.5-7B ; echo done'
