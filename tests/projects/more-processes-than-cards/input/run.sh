CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 4 --mixed_precision bf16 sft.py
