ARGS="--output_dir out --bf16 --per_device_train_batch_size 4 --deepspeed ds.json"
CUDA_VISIBLE_DEVICES=0,1,2,3 deepspeed train.py $ARGS
CUDA_VISIBLE_DEVICES=0,1,2,3 deepspeed --include localhost:0,1 train.py $ARGS
deepspeed --exclude localhost:0 --num_nodes 1 train.py $ARGS
