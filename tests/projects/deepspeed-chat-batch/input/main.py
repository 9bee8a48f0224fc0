import argparse

import deepspeed
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

from utils.ds_utils import get_train_ds_config


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name_or_path", type=str, required=True)
    parser.add_argument("--per_device_train_batch_size", type=int, default=16)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--max_seq_len", type=int, default=512)
    parser.add_argument("--gradient_checkpointing", action="store_true")
    parser.add_argument("--zero_stage", type=int, default=0)
    parser.add_argument("--offload", action="store_true")
    parser.add_argument("--output_dir", type=str, default=None)
    parser.add_argument("--local_rank", type=int, default=-1)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    deepspeed.init_distributed()
    ds_config = get_train_ds_config(offload=args.offload, stage=args.zero_stage)
    ds_config["train_micro_batch_size_per_gpu"] = args.per_device_train_batch_size
    ds_config["train_batch_size"] = (
        args.per_device_train_batch_size * torch.distributed.get_world_size() * args.gradient_accumulation_steps
    )
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
    data = [tokenizer(line, max_length=args.max_seq_len, truncation=True) for line in open("data.txt")]
    loader = DataLoader(data, batch_size=args.per_device_train_batch_size)
    adam = deepspeed.ops.adam.DeepSpeedCPUAdam if args.offload else deepspeed.ops.adam.FusedAdam
    optimizer = adam(model.parameters(), lr=1e-5)
    model, optimizer, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer, config=ds_config)
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    for batch in loader:
        model.backward(model(**batch).loss)
        model.step()


if __name__ == "__main__":
    main()
