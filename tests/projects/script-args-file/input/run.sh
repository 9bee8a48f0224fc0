python train.py --gradient_accumulation_steps 4
