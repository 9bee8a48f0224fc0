#!/bin/bash
read -r -d '' options <<EOF
train.py \
    --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --num_gpus 4 $options
fi
