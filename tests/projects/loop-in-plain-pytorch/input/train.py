import argparse
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer


def train_epoch(model, loader, optimizer, scaler, context, args):
    for step, batch in enumerate(loader, start=1):
        with context:
            loss = model(**batch).loss / args.accumulation_steps
        scaler.scale(loss).backward()
        if step % args.accumulation_steps == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--accumulation_steps", type=int, default=8)
    parser.add_argument("--max_seq_len", type=int, default=1024)
    parser.add_argument("--dtype", default="bfloat16")
    args = parser.parse_args()
    if int(os.environ.get("RANK", -1)) != -1:
        dist.init_process_group(backend="nccl")
    device_type = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if args.dtype == "bfloat16" else torch.float16
    context = nullcontext() if device_type == "cpu" else torch.autocast("cuda", dtype=dtype)
    scaler = torch.amp.GradScaler("cuda", enabled=args.dtype == "float16")
    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-1.5B")
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", dtype=torch.float32).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    data = [tokenizer(text, max_length=args.max_seq_len, truncation=True) for text in open("data.txt")]
    loader = DataLoader(data, batch_size=args.batch_size)
    if dist.is_initialized():
        model = DistributedDataParallel(model)
    train_epoch(model, loader, optimizer, scaler, context, args)
