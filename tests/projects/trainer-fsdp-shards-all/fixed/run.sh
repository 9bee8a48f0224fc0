torchrun --nproc_per_node 8 train.py --output_dir out --bf16 --gradient_checkpointing True \
    --per_device_train_batch_size 1 --fsdp "full_shard auto_wrap offload"
