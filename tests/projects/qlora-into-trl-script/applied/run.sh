accelerate launch --multi_gpu --num_processes 2 sft.py \
    --output_dir out \
    --bf16 True \
    --gradient_checkpointing \
    --max_length 2048 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 8
