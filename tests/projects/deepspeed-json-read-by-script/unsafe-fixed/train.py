import argparse
import json

import deepspeed
import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--ds_config")
parser.add_argument("--micro_batch", type=int, default=1)
parser.add_argument("--local_rank", type=int, default=-1)
arguments = parser.parse_args()

with open(arguments.ds_config) as file:
    config = json.load(file)
config["train_micro_batch_size_per_gpu"] = arguments.micro_batch
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)
model.gradient_checkpointing_enable()
engine, _, _, _ = deepspeed.initialize(model=model, config=config, model_parameters=model.parameters())
for batch in torch.load("batches.pt"):
    engine.backward(engine(**batch).loss)
    engine.step()
