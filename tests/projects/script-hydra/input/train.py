import hydra
import torch
from omegaconf import DictConfig, OmegaConf
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config: DictConfig):
    OmegaConf.resolve(config)
    model = AutoModelForCausalLM.from_pretrained(config.model.name, dtype=getattr(torch, config.model.dtype))
    adapter = LoraConfig(r=config.adapter.rank, target_modules="all-linear")
    arguments = SFTConfig(**config.trainer)
    SFTTrainer(model=model, args=arguments, peft_config=adapter).train()


if __name__ == "__main__":
    main()
