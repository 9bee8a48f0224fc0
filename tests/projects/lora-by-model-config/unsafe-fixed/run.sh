python train.py \
    --model_name_or_path Qwen/Qwen2.5-7B \
    --dtype bfloat16 \
    --output_dir out \
    --max_length 2048 \
    --per_device_train_batch_size 2 \
    --use_peft True \
    --lora_target_modules all-linear
