"""What one layer saves for its backward: real transformers layers on the CPU against lintfit's tapes.

For every architecture a small model is built from its config, run forward with a loss, and every tensor that autograd
packs (``saved_tensors_hooks``) is counted by storage, parameters and buffers left out. Two depths give the bytes of a
layer. Needs torch and transformers (the ``bench`` extra). On the CPU a LayerNorm of half-precision tensors keeps its
statistics in half precision, 4 bytes a row less than on a GPU; cos and sin that a layer spreads anew are a constant
of a few KB, which lintfit counts for GLM and GPT-J only.

    python bench/saved_layers.py [MODEL_TYPE]...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.ranks.processes import packed  # noqa: E402
from lintfit.catalog import models  # noqa: E402
from lintfit.memory.activations.blocks import Layer  # noqa: E402
from lintfit.memory.activations.families import family  # noqa: E402
from lintfit.memory.activations.recipe import Recipe  # noqa: E402
from lintfit.memory.activations.tape import ACTIVATION  # noqa: E402

BATCH, SEQ = 2, 64
TOKENS = BATCH * SEQ

COMMON = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 512,
    "max_position_embeddings": 256,
}
OLD = {"n_embd": 256, "n_head": 8, "vocab_size": 512, "n_positions": 256, "n_ctx": 256}

CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": None},
    "qwen2": {},
    "qwen3": {"head_dim": 32},
    "phi3": {"pad_token_id": 0, "sliding_window": None},
    "gemma": {"head_dim": 32},
    "gemma2": {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 4096},
    "gemma3_text": {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 4096},
    "granite": {},
    "olmo": {},
    "olmo2": {},
    "olmo3": {"sliding_window": 4096},
    "cohere": {},
    "cohere2": {"sliding_window": 4096},
    "stablelm": {},
    "starcoder2": {"sliding_window": None},
    "glm": {"head_dim": 32, "pad_token_id": 0},
    "glm4": {"head_dim": 32, "pad_token_id": 0},
    "smollm3": {"pad_token_id": 0},
    "seed_oss": {"head_dim": 32, "attention_dropout": 0.0, "residual_dropout": 0.0},
    "ernie4_5": {"head_dim": 32},
    "exaone4": {"sliding_window": 4096, "head_dim": 32},
    "arcee": {"hidden_act": "relu2"},
    "hunyuan_v1_dense": {"head_dim": 32},
    "minicpm3": {
        "num_key_value_heads": 8, "q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16, "v_head_dim": 24,
    },
    "nemotron": {},
    "phi": {},
    "gpt_neox": {},
    "opt": {"ffn_dim": 512, "word_embed_proj_dim": 256, "dropout": 0.0},
    "falcon": {"num_kv_heads": 4, "new_decoder_architecture": True},
    "bloom": {"n_head": 8, "n_layer": 2},
    "mpt": {"d_model": 256, "n_heads": 8, "n_layers": 2, "max_seq_len": 256},
    "gpt2": {**OLD, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "n_inner": 512},
    "gpt_bigcode": {**OLD, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "n_inner": 512},
    "gpt_neo": {"num_heads": 8, "num_layers": 2, "attention_types": [[["global"], 1]], "resid_dropout": 0.0},
    "gptj": {**OLD, "rotary_dim": 32, "n_inner": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "codegen": {**OLD, "rotary_dim": 32, "n_inner": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
}  # fmt: skip
DEPTH = {
    "gpt2": "n_layer", "gpt_bigcode": "n_layer", "gptj": "n_layer", "codegen": "n_layer", "bloom": "n_layer",
    "mpt": "n_layers", "gpt_neo": "num_layers",
}  # fmt: skip


def config_of(model_type: str, layers: int) -> dict[str, Any]:
    """The small config, in the words of a ``config.json``."""
    config = {"model_type": model_type, **({} if "n_embd" in CASES[model_type] else COMMON), **CASES[model_type]}
    return of_depth(config, layers)


def of_depth(config: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """A config with so many layers."""
    kind = config["model_type"]
    neo = {"attention_types": [[["global"], layers]]} if kind == "gpt_neo" else {}
    return {**config, DEPTH.get(kind, "num_hidden_layers"): layers, **neo}


def saved_bytes(config: dict[str, Any], half: bool) -> int:
    """Bytes of all tensors that autograd saves in one forward pass, each storage once, without parameters."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    given = dict(config)
    made = AutoConfig.for_model(given.pop("model_type"), **given)
    made._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(made, attn_implementation="eager").train()
    model.config.use_cache = False
    if half:
        for parameter in model.parameters():  # as the loader does, which leaves buffers as they are
            parameter.data = parameter.data.bfloat16()
    ids = torch.randint(0, config["vocab_size"], (BATCH, SEQ))
    with packed([*model.parameters(), *model.buffers()]) as kept:
        model(input_ids=ids, labels=ids, use_cache=False)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def layer_bytes(config: Mapping[str, Any], half: bool) -> float:
    """Bytes a token of one layer: what two layers more save."""
    two, four = (saved_bytes(of_depth(config, layers), half) for layers in (2, 4))
    return (four - two) / 2 / TOKENS


def tape_bytes(config: dict[str, Any], half: bool) -> int:
    """What lintfit's tape of one layer keeps."""
    facts = models.from_config(config)
    t = Layer(facts, Recipe(2 if half else 4, False, attention="eager"), batched=BATCH > 1)
    family(facts)(t, t.new(facts.hidden, 2 if half else 4), 0)
    return sum(storage.size(BATCH, SEQ) for storage in t.saved() if storage.kind == ACTIVATION)


def main() -> int:
    names = sys.argv[1:] or list(CASES)
    print("| model type | fp32, bytes a token | lintfit | bf16, bytes a token | lintfit |")
    print("| --- | --- | --- | --- | --- |")
    for name in names:
        cells = []
        for half in (False, True):
            try:
                real = layer_bytes(config_of(name, 2), half)
                ours = tape_bytes(config_of(name, 2), half) / TOKENS
                cells += [f"{real:.1f}", f"{ours:.1f} ({100 * (ours / real - 1):+.2f} %)"]
            except Exception as error:
                cells += [f"{type(error).__name__}: {str(error)[:60]}", "-"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
