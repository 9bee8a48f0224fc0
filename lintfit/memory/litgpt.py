"""LitGPT's own models: what it builds and adapts where transformers and PEFT would do it differently.

Source: LitGPT 0.5 (``litgpt/model.py``, ``litgpt/lora.py``, ``litgpt/finetune/lora.py``) on Lightning Fabric
(``lightning/fabric/plugins/precision/bitsandbytes.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memo import Memo
from lintfit.memory.reading.older import untied

DROPOUT = 0.05
"""``lora_dropout`` of ``litgpt finetune_lora`` where nobody states it."""

CHUNK = 128
"""Tokens of a chunk of logits (``lm_head_chunk_size``, and ``chunked_cross_entropy``)."""

PINNED = {"bitsandbytes": "0.42.0"}
"""What LitGPT 0.5.0 installs (``pyproject.toml``, extra ``all``); from 0.5.5 on it takes 0.44 and later."""

HALF = ("bf16", "fp16")

ELSEWHERE = frozenset({"front_end", "trainer", "deepspeed_config"})
"""Keys of a spec that say whose code trains: that this is LitGPT's need not be guessed, or cannot be."""

OTHERS = frozenset({"transformers", "trl", "peft", "accelerate", "deepspeed"})
"""Libraries that LitGPT does not train with; a spec that names a version of one is not LitGPT's."""

PROJECTION = frozenset({"o_proj", "dense", "out_proj", "c_proj"})
MLP = frozenset(
    {"gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2", "w1", "w2", "dense_h_to_4h", "dense_4h_to_h"}
)
FUSED = frozenset({"query_key_value", "qkv_proj", "Wqkv", "c_attn", "W_pack"})


class Switches(NamedTuple):
    """Which parts ``lora_query`` … ``lora_head`` adapt."""

    query: bool
    key: bool
    value: bool
    projection: bool
    mlp: bool
    head: bool


def switches(targets: tuple[str, ...] | str | None) -> Switches:
    """LitGPT's switches from transformers' module names; its own defaults (query and value) where there are none."""
    if targets is None:
        return Switches(True, False, True, False, False, False)
    if targets == "all-linear":
        return Switches(True, True, True, True, True, False)
    names = frozenset(target.rpartition(".")[2] for target in targets)
    apart = names & {"q_proj", "k_proj", "v_proj"}
    fused = bool(names & FUSED) and not apart
    return Switches(
        query="q_proj" in names or fused,
        key="k_proj" in names or fused,
        value="v_proj" in names or fused,
        projection=bool(names & PROJECTION),
        mlp=bool(names & MLP),
        head="lm_head" in names,
    )


def pinned(versions: Mapping[str, str]) -> Mapping[str, str]:
    """The versions of a LitGPT run: those stated, and what 0.5.0 installs where LitGPT's own is not."""
    return versions if "litgpt" in versions else {**PINNED, **versions}


def meant(values: Mapping[str, Any]) -> bool:
    """Whether a spec that does not say whose code trains is taken for LitGPT's.

    A loss in chunks, computed in true half precision (``bf16-true``), with nothing recomputed. TRL's chunked loss runs
    under autocast (``SFTConfig.bf16`` is on) and torchtune's single-device recipes checkpoint
    (``enable_activation_checkpointing: True``). LitGPT itself runs none of :data:`OTHERS`.
    """
    return (
        not ELSEWHERE.intersection(values)
        and not OTHERS.intersection(values.get("versions", {}))
        and values.get("engine") != "deepspeed"
        and not values.get("zero_stage")
        and values.get("loss") == "chunked"
        and values.get("weights_dtype") in HALF
        and values.get("mixed_precision") == "no"
        and values.get("gradient_checkpointing") is False
    )


_BUILT: Memo[ModelFacts] = Memo()


def as_built(facts: ModelFacts) -> ModelFacts:
    """The model as LitGPT makes it: ``lm_head`` is a weight of its own, also where the checkpoint ties it."""
    if not facts.tied:
        return facts
    return _BUILT.get(facts, "", lambda: untied(facts))


def adapter_shapes(facts: ModelFacts, on: Switches, rank: int) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Name, shape and place (``layer`` or ``head``) of every kind of adapter matrix.

    Query, key and value are one projection with one A (rank × as many of the three as are adapted) and one B.
    """
    h, i = facts.hidden, facts.intermediate
    wide, narrow = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    widths = [width for width, taken in zip((wide, narrow, narrow), on[:3], strict=True) if taken]
    if widths:
        yield from _pair("attn", rank * len(widths), h, sum(widths), rank, "layer")
    if on.projection:
        yield from _pair("attn.proj", rank, wide, h, rank, "layer")
    if on.mlp:
        for name in ("mlp.fc_1", "mlp.fc_2") if facts.gated else ("mlp.fc",):
            yield from _pair(name, rank, h, i, rank, "layer")
        yield from _pair("mlp.proj", rank, i, h, rank, "layer")
    if on.head:
        yield from _pair("lm_head", rank, h, facts.vocab, rank, "head")


def _pair(
    name: str, down: int, rows: int, columns: int, rank: int, where: str
) -> Iterator[tuple[str, tuple[int, ...], str]]:
    yield f"{name}.lora_A", (down, rows), where
    yield f"{name}.lora_B", (columns, rank), where
