#!/usr/bin/env bash
# Full-parameter supervised fine-tuning on one box with eight GPUs.
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 torchrun --nproc_per_node 8 supervised_finetuning.py \
    --model_name_or_path baichuan-inc/Baichuan-7B \
    --train_file_dir ./data/finetune \
    --use_peft False \
    --torch_dtype float16 \
    --fp16 True \
    --do_train True \
    --num_train_epochs 1 \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 1 \
    --gradient_checkpointing True \
    --model_max_length 512 \
    --learning_rate 2e-5 \
    --warmup_ratio 0.05 \
    --weight_decay 0.05 \
    --save_strategy steps \
    --save_steps 500 \
    --output_dir outputs-sft
