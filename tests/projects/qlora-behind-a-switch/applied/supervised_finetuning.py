"""Supervised fine-tuning of a causal language model, with LoRA or with all parameters."""

from dataclasses import dataclass, field
from typing import Optional

import torch
from datasets import load_dataset
from peft import LoraConfig, TaskType, get_peft_model, prepare_model_for_kbit_training
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    DataCollatorForSeq2Seq,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)


@dataclass
class ModelArguments:
    model_name_or_path: str = field(metadata={"help": "Checkpoint to start from."})
    torch_dtype: Optional[str] = field(default=None, metadata={"help": "auto, bfloat16, float16 or float32."})
    trust_remote_code: bool = field(default=True)


@dataclass
class DataArguments:
    train_file_dir: str = field(default="./data/finetune")
    model_max_length: int = field(default=512)


@dataclass
class ScriptArguments:
    use_peft: bool = field(default=True, metadata={"help": "Train LoRA adapters instead of all parameters."})
    lora_rank: int = field(default=8)
    lora_alpha: float = field(default=16.0)
    lora_dropout: float = field(default=0.05)


def tokenize(batch, tokenizer, max_length):
    text = [q + a + tokenizer.eos_token for q, a in zip(batch["instruction"], batch["output"])]
    encoded = tokenizer(text, max_length=max_length, truncation=True)
    encoded["labels"] = [ids[:] for ids in encoded["input_ids"]]
    return encoded


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments, ScriptArguments))
    model_args, data_args, training_args, script_args = parser.parse_args_into_dataclasses()

    torch_dtype = (
        model_args.torch_dtype
        if model_args.torch_dtype in ["auto", None]
        else getattr(torch, model_args.torch_dtype)
    )
    tokenizer = AutoTokenizer.from_pretrained(
        model_args.model_name_or_path, trust_remote_code=model_args.trust_remote_code
    )
    quantization_config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.float16,
    )
    model = AutoModelForCausalLM.from_pretrained(
        model_args.model_name_or_path,
        torch_dtype=torch_dtype,
        trust_remote_code=model_args.trust_remote_code,
        quantization_config=quantization_config,
    )

    if script_args.use_peft:
        peft_config = LoraConfig(
            task_type=TaskType.CAUSAL_LM,
            target_modules=["W_pack"],
            r=script_args.lora_rank,
            lora_alpha=script_args.lora_alpha,
            lora_dropout=script_args.lora_dropout,
        )
        model = prepare_model_for_kbit_training(model)
        model = get_peft_model(model, peft_config)
        for param in filter(lambda p: p.requires_grad, model.parameters()):
            param.data = param.data.to(torch.float32)
        model.print_trainable_parameters()
    else:
        # All parameters are trained.
        model = model.float()

    data = load_dataset("json", data_dir=data_args.train_file_dir)
    train = data["train"].map(
        lambda batch: tokenize(batch, tokenizer, data_args.model_max_length),
        batched=True,
        remove_columns=data["train"].column_names,
    )

    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train,
        data_collator=DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=-100),
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
