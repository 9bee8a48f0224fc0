#!/usr/bin/env bash
source "$(dirname "$0")/common.sh"
. scripts/flags.sh large
export MODEL
srun bash -c 'torchrun --nproc_per_node 2 --master_addr $(scontrol show hostname $SLURM_NODELIST | head -n1) \
    train.py --model ${MODEL}'
srun bash -c "cd .. ; torchrun --nproc_per_node $CARDS --role \$(hostname -s): $TRAINING --model $MODEL --size $BATCH"
