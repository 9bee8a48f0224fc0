#!/bin/bash
NODES=${NODES:-2}
PER_NODE=${PER_NODE:-4}
BATCH=4
TOTAL=64
ARGS=(--output_dir out --bf16 True --gradient_checkpointing True)
ARGS+=(--per_device_train_batch_size "$BATCH")
COMMON="--deepspeed ds.json --model_max_length 2048"
torchrun --nnodes $NODES --nproc_per_node $PER_NODE train.py "${ARGS[@]}" $COMMON \
    --gradient_accumulation_steps $((TOTAL / BATCH / (NODES * PER_NODE)))
