import argparse

import deepspeed
import torch
from transformers import AutoModelForCausalLM


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--model", default="gpt2-xl")
    parser.add_argument("--seq_len", type=int, default=1024)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def main():
    args = get_args()
    model = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype=torch.float16)
    model.gradient_checkpointing_enable()
    engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    for batch in torch.load("batches.pt"):
        batch = batch[:, : args.seq_len].to(engine.device)
        loss = engine(batch, labels=batch).loss
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint("out")


main()
