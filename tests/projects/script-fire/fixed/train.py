import fire
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class App:
    def __init__(self, model="Qwen/Qwen2.5-7B"):
        self.model = model

    def train(self, micro=4, bf16=False):
        model = AutoModelForCausalLM.from_pretrained(self.model, torch_dtype="bfloat16")
        Trainer(
            model=model,
            args=TrainingArguments(
                "out", bf16=bf16, per_device_train_batch_size=micro, gradient_accumulation_steps=8
            ),
        ).train()

    def evaluate(self, micro=64):
        pass


if __name__ == "__main__":
    fire.Fire(App)
