accelerate launch --config_file zero.yaml train.py
