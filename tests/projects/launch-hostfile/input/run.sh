#!/bin/bash
deepspeed --hostfile hostfile train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
deepspeed -H hostfile --num_nodes 1 train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
deepspeed -H hostfile --include worker-2 train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
deepspeed -H elsewhere train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
