import functools

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

MAX_LENGTH = 2048

torch.distributed.init_process_group("nccl")
tokenizer = AutoTokenizer.from_pretrained("meta-llama/Meta-Llama-3-8B")
model = AutoModelForCausalLM.from_pretrained("meta-llama/Meta-Llama-3-8B", dtype=torch.float32)
model.gradient_checkpointing_enable()
model = FSDP(
    model,
    auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer}),
    sharding_strategy=ShardingStrategy.FULL_SHARD,
    mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
data = [tokenizer(line, max_length=MAX_LENGTH, truncation=True) for line in open("data.txt")]
for batch in DataLoader(data, batch_size=1):
    model(**batch).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
