from transformers import Trainer, HfArgumentParser, TrainingArguments, AutoModelForCausalLM

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
Trainer(model=model, args=args).train()
