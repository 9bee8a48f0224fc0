torchrun --standalone --nproc_per_node=4 train.py config/large.py --batch_size=6 --name=second
