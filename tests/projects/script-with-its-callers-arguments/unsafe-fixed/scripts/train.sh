MODEL=$1
LENGTH=$2

torchrun --nproc_per_node 2 train.py \
    --model_name_or_path $MODEL \
    --length "$LENGTH" \
    --output_dir out \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 2 \
    --bf16 \
    --deepspeed ds_zero3_offload.json \
    --gradient_checkpointing
