#!/bin/bash
# bash scripts/train/run.sh
set -e
torchrun --nproc_per_node=4 src/train.py
