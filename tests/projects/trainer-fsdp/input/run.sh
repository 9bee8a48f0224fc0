torchrun --nproc_per_node 4 train.py --output_dir out --bf16 --per_device_train_batch_size 1 --fsdp "full_shard offload" --fsdp_config fsdp.json
