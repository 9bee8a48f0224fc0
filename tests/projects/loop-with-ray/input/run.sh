python train_workers.py --per_device_train_batch_size 1
