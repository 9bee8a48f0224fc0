torchrun --nproc_per_node 2 train.py @big.args --micro-batch 2
