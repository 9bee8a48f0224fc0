import torch
from accelerate import Accelerator, DeepSpeedPlugin
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

plugin = DeepSpeedPlugin(
    zero_stage=3, gradient_accumulation_steps=8, offload_optimizer_device="cpu"
)
accelerator = Accelerator(mixed_precision="bf16", deepspeed_plugin=plugin)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
loader = DataLoader([], batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
