python train.py --config sft.yaml --max_length 2048
