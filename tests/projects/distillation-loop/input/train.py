import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

accelerator = Accelerator(mixed_precision="bf16")
student = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", dtype=torch.float32)
teacher = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype=torch.bfloat16, device_map={"": 0})
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-5)
loader = DataLoader(torch.load("batches.pt"), batch_size=1)
student, optimizer, loader = accelerator.prepare(student, optimizer, loader)

for batch in loader:
    with torch.no_grad():
        wanted = teacher(**batch).logits
    answered = student(**batch).logits
    loss = F.kl_div(F.log_softmax(answered, dim=-1), F.softmax(wanted, dim=-1), reduction="batchmean")
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
