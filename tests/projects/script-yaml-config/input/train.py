import argparse

import torch
import yaml
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--config", default="default.yaml")
options = parser.parse_args()
with open(options.config) as file:
    config = yaml.safe_load(file)

model = AutoModelForCausalLM.from_pretrained(config["model"], torch_dtype=getattr(torch, config["dtype"]))
training = TrainingArguments("out", **config["training"])
Trainer(model=model, args=training).train()
