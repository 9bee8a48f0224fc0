python train.py --output_dir out --bf16 --per_device_train_batch_size 1
