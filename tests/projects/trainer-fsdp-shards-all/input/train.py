from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(training,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B", torch_dtype="bfloat16")
Trainer(model=model, args=training).train()
