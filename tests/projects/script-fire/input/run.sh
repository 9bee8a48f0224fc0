python train.py train --micro=8 --bf16 --model Qwen/Qwen2.5-1.5B
