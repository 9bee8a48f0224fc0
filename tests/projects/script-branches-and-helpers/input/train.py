from dataclasses import dataclass, field

from lib.models import build
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import HfArgumentParser, Trainer, TrainingArguments

TOTAL = 4 * 16


@dataclass
class Arguments:
    size: str = field(default="7B")
    use_peft: bool = field(default=True)
    four_bit: bool = field(default=False)


def main():
    arguments, training = HfArgumentParser((Arguments, TrainingArguments)).parse_args_into_dataclasses()
    training.gradient_accumulation_steps = TOTAL // training.per_device_train_batch_size
    model = build(arguments.size, four_bit=arguments.four_bit, attn_implementation="sdpa")
    if arguments.use_peft:
        if arguments.four_bit:
            model = prepare_model_for_kbit_training(model)
        model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
    else:
        model = model.float()
    Trainer(model=model, args=training).train()


if __name__ == "__main__":
    main()
