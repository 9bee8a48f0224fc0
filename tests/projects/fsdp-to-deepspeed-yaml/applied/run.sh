accelerate launch --config_file deepspeed_zero2_offload.yaml train.py
