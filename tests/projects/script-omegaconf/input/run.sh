torchrun --nproc_per_node 2 train.py size=7B
