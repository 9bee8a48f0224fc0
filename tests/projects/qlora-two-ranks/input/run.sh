torchrun --nproc_per_node 2 train.py --lr 2e-5
