python train.py --model Qwen/Qwen2.5-1.5B --train.micro-batch 1 --train.bf16 --train.no-gc
