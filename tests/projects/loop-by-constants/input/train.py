import os
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM

name = "first"
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 40
learning_rate = 6e-4
device = "cuda"
exec(open("options.py").read())

world_size = int(os.environ.get("WORLD_SIZE", 1))
gradient_accumulation_steps //= world_size
context = nullcontext() if device == "cpu" else torch.amp.autocast(device_type="cuda", dtype=torch.bfloat16)
model = DistributedDataParallel(AutoModelForCausalLM.from_pretrained("gpt2-xl", dtype=torch.float32).to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)


def batch():
    starts = torch.randint(10_000, (batch_size,))
    return torch.stack([torch.arange(start, start + block_size) for start in starts]).to(device)


for step in range(100):
    for part in range(gradient_accumulation_steps):
        with context:
            inputs = batch()
            loss = model(input_ids=inputs, labels=inputs).loss / gradient_accumulation_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
