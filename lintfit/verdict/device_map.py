"""Which layers each GPU gets by ``device_map="auto"``.

transformers hands the model to Accelerate (``get_balanced_memory`` and ``infer_auto_device_map`` of 1.11,
``utils/modeling.py``): each GPU but the last may hold its share of the weights and 1.25 times a layer, the first keeps
room free for the largest block that is still to come, and blocks are handed out in order.
"""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.micro_batch.halves import halves
from lintfit.memory.spec import DTYPE_BYTES, Spec

_BUFFER = 1.25
_FREE = 0.9
"""Share of a GPU that weights are put on (``quantizer_bnb_4bit.py:adjust_max_memory``; all that is free without)."""
_QUANTIZED = {"nf4": 0.5, "nf4-double": 0.5, "int8": 1.0}
"""Bytes of an element while the layers are handed out."""


@frozen
class Blocks:
    """The blocks of a language model, in bytes of their weights as they are loaded."""

    embedding: float
    layer: float
    layers: int
    head: float = 0.0
    """0 where it is the embedding, and goes where that goes."""


def most_layers(spec: Spec, gpus: int) -> int | None:
    """The most layers that one of several GPUs gets, by any release; None where that is not known.

    Before its version 5 transformers leaves the buffer to Accelerate, which takes a layer for the largest block, and
    counts the embedding of a quantized model like what is quantized; since then it counts for itself
    (``integrations/accelerate.py``, ``quantizers/quantizer_bnb_4bit.py:param_element_size``).
    """
    from lintfit.memory.tensors.parameters import inventory

    facts, room = spec.facts, spec.capacity_bytes
    uniform = facts.moe is None or facts.moe.layers == facts.layers
    if room is None or not uniform or facts.vision is not None or halves(facts) is not None:
        return None
    weights = inventory(spec).weights
    layer = sum(each.bytes for each in weights if each.where == "layer" and not each.trainable) / facts.layers
    layer = layer or sum(each.bytes for each in weights if each.where == "layer") / facts.layers
    words = facts.vocab * facts.hidden
    whole = float(words * DTYPE_BYTES[spec.weights_dtype])
    sizes = {whole, words * _QUANTIZED[spec.quantization]} if spec.quantization in _QUANTIZED else {whole}
    found = []
    for embedding in sizes:
        blocks = Blocks(embedding, layer, facts.layers, 0.0 if facts.tied else whole)
        for largest in (layer, max(layer, whole)):
            found.append(layers_by_gpu(blocks, gpus, _FREE * room, largest))
    return None if None in found else max(max(each) for each in found if each is not None)


def layers_by_gpu(blocks: Blocks, gpus: int, room: float, largest: float) -> tuple[int, ...] | None:
    """How many layers each of several GPUs of ``room`` bytes gets, with 1.25 times ``largest`` for a buffer; None where
    they have no room for all."""
    whole = blocks.embedding + blocks.layers * blocks.layer + blocks.head
    share = min(room, whole / gpus + _BUFFER * largest)
    sizes = [blocks.embedding, *[blocks.layer] * blocks.layers, blocks.head]
    found, used, gpu = [0] * gpus, 0.0, 0
    for at, size in enumerate(sizes):
        to_come = max(blocks.layer if at < blocks.layers else 0.0, blocks.head if at <= blocks.layers else 0.0)
        while used + size > (room if gpu == gpus - 1 else share) - (to_come if gpu == 0 else 0):
            gpu, used = gpu + 1, 0.0
            if gpu == gpus:
                return None
        used += size
        found[gpu] += 0 < at <= blocks.layers
    return tuple(found)
