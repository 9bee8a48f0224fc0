accelerate launch --config_file fsdp_offload.yaml train.py
