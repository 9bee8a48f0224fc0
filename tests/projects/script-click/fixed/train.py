import click
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


@click.group()
def cli():
    pass


@cli.command()
@click.option("--model", "-m", "name", default="Qwen/Qwen2.5-7B")
@click.option("--micro-batch", type=int, default=4, show_default=True)
@click.option("--bf16/--no-bf16", default=False)
@click.argument("out")
def train(name, micro_batch, bf16, out):
    m = AutoModelForCausalLM.from_pretrained(name, torch_dtype="bfloat16")
    Trainer(
        model=m,
        args=TrainingArguments(
            out, bf16=bf16, per_device_train_batch_size=micro_batch, gradient_accumulation_steps=8
        ),
    ).train()


if __name__ == "__main__":
    cli()
