accelerate launch --num_processes 4 --mixed_precision bf16 train.py
