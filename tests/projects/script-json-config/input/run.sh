python train.py qwen.json
