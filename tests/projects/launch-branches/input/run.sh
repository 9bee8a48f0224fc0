#!/bin/bash
GPUS=4
if [ "$GPUS" -gt 1 ]; then
    torchrun --nproc_per_node $GPUS train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
else
    python train.py --output_dir out --bf16 True
fi
for length in 512 1024; do
    torchrun --nproc_per_node $GPUS train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json --model_max_length $length
done
