python train.py --output_dir out --bf16 --per_device_train_batch_size 1 --gradient_checkpointing True --four_bit
python train.py --output_dir out --bf16 --per_device_train_batch_size 1 --gradient_checkpointing True --use_peft False
