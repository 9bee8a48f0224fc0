python train.py train out -m Qwen/Qwen2.5-1.5B --micro-batch 8 --bf16
