#!/bin/bash
python -m torch.distributed.launch --nproc_per_node=4 --use_env train.py --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
