#!/bin/bash
MODEL=Qwen/Qwen2.5-7B
while [[ $# -gt 0 ]]; do
  case $1 in
    -m | --model ) MODEL=$2; shift ;;
    * ) echo "unknown: $1"; exit 1 ;;
  esac
  shift
done
GPUS=${1:-4}
launch() {
  torchrun --nproc_per_node "$GPUS" train.py "$@"
}
launch --model_name_or_path "$MODEL" --output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1 --deepspeed ds.json
