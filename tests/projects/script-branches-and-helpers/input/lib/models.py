import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

FAMILY = "Qwen/Qwen2.5"


def build(size, dtype="bfloat16", four_bit=False, **kwargs):
    options = {"torch_dtype": getattr(torch, dtype), **kwargs}
    if four_bit:
        options["quantization_config"] = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    return AutoModelForCausalLM.from_pretrained(f"{FAMILY}-{size}", **options)
