"""LitGPT's own models: what it builds and adapts where transformers and PEFT would do it differently.

Source: LitGPT 0.5 (``litgpt/model.py``, ``litgpt/lora.py``, ``litgpt/finetune/lora.py``) on Lightning Fabric
(``lightning/fabric/plugins/precision/bitsandbytes.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.reading.older import untied
from lintfit.memory.spec import Spec

DROPOUT = 0.05
"""``lora_dropout`` of ``litgpt finetune_lora`` where nobody states it."""

CHUNK = 128
"""Tokens of a chunk of logits (``lm_head_chunk_size``, and ``chunked_cross_entropy``)."""

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


def possible(spec: Spec) -> bool:
    """Whether a loss in chunks may be LitGPT's, where nobody says whose code trains.

    LitGPT recomputes nothing on a single GPU and runs none of :data:`OTHERS`.
    """
    if spec.loss != "chunked" or spec.engine == "deepspeed" or not spec.stated.isdisjoint({"front_end", "trainer"}):
        return False
    return OTHERS.isdisjoint(spec.versions) and (spec.engine == "fsdp" or spec.gradient_checkpointing is False)


def as_litgpt(spec: Spec) -> Spec:
    """The run with LitGPT's model and loop."""
    stated = spec.stated
    return replace(
        spec,
        front_end="litgpt",
        facts=as_built(spec.facts),
        lora_dtype=spec.lora_dtype if "lora_dtype" in stated else spec.weights_dtype,
        lora_dropout=spec.lora_dropout if "lora_dropout" in stated else DROPOUT,
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
