#!/bin/bash
GPUS_PER_NODE=8
DATA_PATH=<folder and prefix of the data>_text_document
WORKERS="--nproc_per_node $GPUS_PER_NODE --nnodes 1"
torchrun $WORKERS pretrain.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \
    --micro-batch-size 4 --global-batch-size 64 --seq-length 1024 --data-path $DATA_PATH \
    --vocab-file <vocabulary.json> --recompute-granularity full --recompute-method uniform --bf16
