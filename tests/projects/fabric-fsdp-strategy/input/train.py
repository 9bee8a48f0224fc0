import lightning as L
import torch
from lightning.fabric.strategies import FSDPStrategy
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer


def main(devices: int = 4, nodes: int = 2):
    strategy = FSDPStrategy(sharding_strategy="SHARD_GRAD_OP", activation_checkpointing_policy={Qwen2DecoderLayer})
    fabric = L.Fabric(devices=devices, num_nodes=nodes, strategy=strategy, precision="bf16-true")
    fabric.launch()
    model = fabric.setup_module(AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"))
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters()))
    for batch in fabric.setup_dataloaders(DataLoader([], batch_size=1)):
        fabric.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
