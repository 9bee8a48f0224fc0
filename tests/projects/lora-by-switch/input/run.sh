torchrun --nproc_per_node=1 train.py --output_dir out --bf16 True --model_max_length 2048 --gradient_checkpointing True
