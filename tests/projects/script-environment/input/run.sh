export MODEL=Qwen/Qwen2.5-1.5B
MICRO_BATCH=8 torchrun --nproc_per_node 2 train.py
