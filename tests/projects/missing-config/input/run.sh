deepspeed --num_gpus 2 train.py --deepspeed configs/ds.json --per_device_train_batch_size 1
