torchrun --nproc_per_node 2 train.py model=large tune.batch=12 +tune.packed=true
