from dataclasses import dataclass, field
import tyro
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


@dataclass
class Train:
    micro_batch: int = 4
    bf16: bool = False
    gc: bool = True


@dataclass
class Config:
    model: str = "Qwen/Qwen2.5-7B"
    train: Train = field(default_factory=Train)


def main(config: Config):
    model = AutoModelForCausalLM.from_pretrained(config.model, torch_dtype="bfloat16")
    args = TrainingArguments(
        "out",
        bf16=config.train.bf16,
        per_device_train_batch_size=config.train.micro_batch,
        gradient_accumulation_steps=8,
        gradient_checkpointing=config.train.gc,
    )
    Trainer(model=model, args=args).train()


if __name__ == "__main__":
    main(tyro.cli(Config))
