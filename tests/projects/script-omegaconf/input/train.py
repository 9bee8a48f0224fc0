from dataclasses import dataclass, field

from omegaconf import OmegaConf
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


@dataclass
class Model:
    name: str = "Qwen/Qwen2.5-0.5B"


@dataclass
class Config:
    size: str = "0.5B"
    micro_batch: int = 1
    model: Model = field(default_factory=Model)


config = OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.load("conf/base.yaml"), OmegaConf.from_cli())
model = AutoModelForCausalLM.from_pretrained(config.model.name, torch_dtype="bfloat16")
training = TrainingArguments("out", bf16=True, per_device_train_batch_size=config.micro_batch)
Trainer(model=model, args=training).train()
