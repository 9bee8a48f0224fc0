"""Attention that a project puts in the place of transformers' own."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, values

SCRIPT = """
import torch.nn.functional as F
import transformers
import xformers.ops as xops
from flash_attn.flash_attn_interface import flash_attn_varlen_qkvpacked_func
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaSdpaAttention
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

def flash(self, hidden_states):
    return flash_attn_varlen_qkvpacked_func(self.qkv(hidden_states))

def efficient(self, hidden_states):
    if self.training:
        return xops.memory_efficient_attention(*self.qkv(hidden_states))
    return F.softmax(self.qkv(hidden_states), dim=-1)

def scores(self, hidden_states):
    return F.softmax(self.qkv(hidden_states), dim=-1)

def logged(self, hidden_states):
    print(hidden_states.shape)
    return before(self, hidden_states)

def replace_attention(function):
    transformers.models.llama.modeling_llama.LlamaAttention.forward = function

def nobody_calls_this():
    transformers.models.mistral.modeling_mistral.MistralAttention.forward = flash

{text}
Trainer(AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b"), TrainingArguments("out")).train()
"""

PACKAGED = "from patches import replace_llama_attn_with_flash_attn, replace_llama_attn_with_xformers_attn"
"""Functions of a package that is not there to be read."""


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        ("replace_attention(flash)", {"llama": ("flash_attention_2", True)}),
        ("replace_attention(efficient)", {"llama": ("sdpa", True)}),
        ("replace_attention(scores)", {"llama": ("eager", True)}),
        ("LlamaAttention.forward = flash", {"llama": ("flash_attention_2", True)}),
        ("LlamaAttention.forward = flash\nLlamaAttention.forward = scores", {"llama": ("eager", True)}),
        ("if torch.cuda.device_count() > 1:\n    replace_attention(flash)", {"llama": ("flash_attention_2", False)}),
        ("replace_attention(flash if long else efficient)", {"llama": ("sdpa", True)}),
        ("replace_attention(flash if long else scores)", {"llama": ("eager", False)}),
        ("if False:\n    replace_attention(flash)", None),
        ("before = LlamaAttention.forward\nreplace_attention(logged)", None),
        ("LlamaSdpaAttention.forward = scores", None),
        ("LlamaAttention.reset = flash", None),
        ("", None),
        (f"{PACKAGED}\nreplace_llama_attn_with_flash_attn()", {"llama": ("flash_attention_2", True)}),
        (f"{PACKAGED}\nreplace_llama_attn_with_xformers_attn()", {"llama": ("sdpa", True)}),
        (f"{PACKAGED}\nif long:\n    replace_llama_attn_with_flash_attn()", {"llama": ("flash_attention_2", False)}),
        (PACKAGED, None),
    ],
)
def test_the_kernel_that_the_project_calls(text: str, kernels: object) -> None:
    assert values(script(SCRIPT.replace("{text}", text))).get("own_attention") == kernels
