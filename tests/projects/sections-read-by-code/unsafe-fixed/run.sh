torchrun --nproc_per_node 2 train.py --deepspeed configs/ds.json
echo "stage 3 parameters: $(jq '.zero_optimization
  .stage3_max_live_parameters' configs/ds.json)"
