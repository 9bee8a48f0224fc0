OUTPUT=$1
ZERO_STAGE=2
deepspeed --num_gpus 8 main.py \
  --model_name_or_path bigscience/bloomz-7b1 \
  --per_device_train_batch_size 4 \
  --gradient_accumulation_steps 4 \
  --max_seq_len 1024 \
  --gradient_checkpointing \
  --zero_stage $ZERO_STAGE \
  --deepspeed \
  --output_dir $OUTPUT
