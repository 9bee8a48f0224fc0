torchrun --nproc_per_node=1 train.py --output_dir out --bf16 True --model_max_length 2048 --gradient_checkpointing True \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 8 \
    --use_lora True
