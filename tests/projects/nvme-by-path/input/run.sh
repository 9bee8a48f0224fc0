deepspeed --num_gpus 2 train.py --output_dir out --bf16 --gradient_checkpointing --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --deepspeed ds.json
