#!/bin/bash
STAGE=${STAGE:-2}
cat > ds.json <<EOF
{
  "bf16": {"enabled": true},
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "zero_optimization": {
    "stage": 3,
    "stage3_gather_16bit_weights_on_model_save": true,
    "offload_optimizer": {
      "device": "cpu"
    }
  }
}
EOF
deepspeed --num_gpus 8 train.py --output_dir out --bf16 --per_device_train_batch_size 1 --gradient_checkpointing true --deepspeed ds.json
