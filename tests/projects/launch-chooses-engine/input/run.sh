accelerate launch --config_file accelerate.yaml train.py
accelerate launch --config_file accelerate.yaml --use_deepspeed train.py
accelerate launch --config_file accelerate.yaml --use_fsdp train.py
