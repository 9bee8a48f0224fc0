deepspeed --num_gpus 8 train.py --ds_config zero.json --micro_batch 2
