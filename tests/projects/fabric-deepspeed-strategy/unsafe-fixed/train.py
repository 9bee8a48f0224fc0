import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import DeepSpeedStrategy
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

ACCUMULATE = 4

fabric = Fabric(
    accelerator="cuda",
    devices=8,
    strategy=DeepSpeedStrategy(stage=3, offload_optimizer=True),
    precision="bf16-mixed",
)
fabric.launch()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
model, optimizer = fabric.setup(model, optimizer)
model.gradient_checkpointing_enable()
loader = fabric.setup_dataloaders(DataLoader([], batch_size=1))
for step, batch in enumerate(loader):
    accumulating = (step + 1) % ACCUMULATE != 0
    with fabric.no_backward_sync(model, enabled=accumulating):
        fabric.backward(model(**batch).loss)
    if not accumulating:
        optimizer.step()
        optimizer.zero_grad()
