import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

fabric = Fabric()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
model, optimizer = fabric.setup(model, optimizer)
loader = fabric.setup_dataloaders(DataLoader([], batch_size=2))
for batch in loader:
    loss = model(**batch).loss
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
