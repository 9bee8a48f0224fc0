import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import GradientAccumulationPlugin
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

accelerator = Accelerator(
    fsdp_plugin=FullyShardedDataParallelPlugin(sharding_strategy="FULL_SHARD", activation_checkpointing=True),
    gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=4),
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
loader = DataLoader([], batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
