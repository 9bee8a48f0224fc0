import argparse
import json

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from settings import data_of

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed")
args = parser.parse_args()

blocks = json.load(open(args.deepspeed))["activation_checkpointing"]
training_args = TrainingArguments(
    output_dir="out",
    deepspeed=args.deepspeed,
    bf16=True,
    per_device_train_batch_size=1,
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
model.config.partitioned = blocks["partition_activations"]
Trainer(model=model, args=training_args, train_dataset=data_of(args.deepspeed)).train()
