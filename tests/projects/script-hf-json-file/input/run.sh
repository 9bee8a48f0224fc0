torchrun --nproc_per_node 4 train.py args.json
python train.py args.yaml
