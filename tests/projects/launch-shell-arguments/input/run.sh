#!/bin/bash
GPUS=${GPUS:-2}
EXTRA=("--bf16" "True")
if [ "$GPUS" -gt 1 ]; then
  EXTRA+=(--per_device_train_batch_size 8)
fi
for RUN in first; do
  torchrun --nproc_per_node "$GPUS" train.py --output_dir "out/$RUN" "${EXTRA[@]}" "$@"
done
