python train.py --config qwen.yaml
