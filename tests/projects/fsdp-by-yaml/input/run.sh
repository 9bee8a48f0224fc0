accelerate launch --config_file fsdp.yaml sft.py
