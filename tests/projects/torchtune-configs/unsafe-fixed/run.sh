#!/bin/bash
# by name, with what differs
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device batch_size=1 tokenizer.max_seq_len=4096 enable_activation_checkpointing=true gradient_accumulation_steps=64
