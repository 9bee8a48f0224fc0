import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator, get_scheduler
from datasets import load_dataset


def main():
    accelerator = Accelerator()
    model_name = "meta-llama/Llama-3.1-8B"
    tokenizer = AutoTokenizer.from_pretrained(model_name)
    model = AutoModelForCausalLM.from_pretrained(model_name, torch_dtype=torch.bfloat16, use_cache=False)
    model.gradient_checkpointing_enable()

    def tokenize(batch):
        return tokenizer(batch["text"], truncation=True, padding="max_length", max_length=2048)

    data = load_dataset("json", data_files="train.jsonl")["train"].map(tokenize, batched=True)
    loader = DataLoader(data, batch_size=2, shuffle=True, collate_fn=default_data_collator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=10, num_training_steps=1000)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    model.train()
    for step, batch in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(**batch, labels=batch["input_ids"]).loss
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    accelerator.save_state("out")


if __name__ == "__main__":
    main()
