import argparse

import deepspeed
import ray
import torch
from transformers import AutoModelForCausalLM


@ray.remote(num_gpus=1)
class Learner:
    def load(self, args):
        model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype=torch.bfloat16)
        config = {
            "train_micro_batch_size_per_gpu": args.per_device_train_batch_size,
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": 3},
        }
        self.engine, _, _, _ = deepspeed.initialize(model=model, config=config)

    def step(self, batch):
        self.engine.backward(self.engine(**batch).loss)
        self.engine.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--per_device_train_batch_size", type=int, default=2)
    parser.add_argument("--num_learners", type=int, default=8)
    args = parser.parse_args()
    ray.init()
    learners = [Learner.remote() for _ in range(args.num_learners)]
    ray.get([learner.load.remote(args) for learner in learners])
