"""Runs that take no less than one of which a part is open: where these fit, it fits, whatever is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, replace
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.run.model import Run
from lintfit.settings.uncounted import (
    BALANCED,
    BATCH_SPLIT,
    CAST_TO_FLOAT,
    FAKE_QUANTIZED,
    FEWER_LAYERS,
    KEPT_STATES,
    KEPT_WEIGHTS,
    ORTHOGONAL,
    OWN_PARTS,
    PAIRED,
    PASSES,
    SMALL_TUNER,
    SPLIT_BY_SWIFT,
    SPLIT_BY_V1,
    SPREADS,
    VALUE_HEAD,
)

_METHOD = frozenset({"method"})
_ALL_TRAINED = "the whole model is trained (adapters of a part of it take less)"


@frozen(eq=False)
class AtMost:
    """A run that takes no less but for ``extra`` bytes, and what is said of it.

    ``can_be_told``: whether somebody could state what is open, in the place of what nobody has counted.
    """

    run: Run
    notes: tuple[str, ...]
    extra: int = 0
    can_be_told: bool = False


@frozen
class _Bound:
    """The spec that takes no less, what is said of it, what is not open any more, and bytes that come on top."""

    spec: Spec
    note: str
    settles: frozenset[str] = frozenset()
    extra: int = 0


def at_most(run: Run) -> tuple[AtMost, ...]:
    """The runs of which one takes no less than this one; none where something else is open than can be bounded."""
    spec = run.spec
    if spec is None or not (run.doubtful or spec.uncounted):
        return ()
    from lintfit.verdict.dearest import dearest

    settled, notes, extra = set[str](), [], 0
    for line in spec.uncounted:
        bound = _bound(line, run, spec)
        if bound is None:
            return ()
        spec, settled, extra = bound.spec, settled | bound.settles, extra + bound.extra
        notes.append(bound.note)
    doubtful = [name for name in dict.fromkeys(run.doubtful) if name not in settled]
    capacity = None if spec.capacity_bytes is None else max(0, spec.capacity_bytes - extra)
    found = dearest(run, replace(spec, uncounted=(), capacity_bytes=capacity), doubtful)
    if found is None:
        return ()
    specs, said = found
    each = [replace(run, spec=one, doubtful=()) for one in specs]
    return tuple(AtMost(one, (*notes, *said), extra, bool(doubtful)) for one in each)


def _bound(line: str, run: Run, spec: Spec) -> _Bound | None:
    """What takes no less than what nobody has counted; None where nothing is known to."""
    bound = _UNCOUNTED.get(line)
    if bound is not None:
        return bound(run, spec)
    passes = _SEVERAL.fullmatch(line)
    if passes is not None:
        return _several(spec, int(passes[1]))
    return _pairs(spec) if _IN_PAIRS.fullmatch(line) else None


def _fake_quantized(run: Run, spec: Spec) -> _Bound:
    """Quantization-aware training without recomputation: autograd keeps a copy of each weight, and of each linear
    layer's input, in their dtype, and a byte for each element that says whether it was in range.

    (torchao 0.12, ``quantization/qat/linear.py:FakeQuantizedLinear.forward``, ``qat/utils.py:_GenericFakeQuantize``.)
    The copies of inputs are less than what a layer keeps without them, for two linear layers at the most share an
    input that is kept anyway: a batch of twice the size bounds them. Four fp32 tensors of the largest weight come and
    go while one is made.
    """
    largest = max((prod(tensor.shape) for tensor in spec.facts.tensors), default=0)
    from lintfit.memory.tensors.weights import parameter_count

    extra = (DTYPE_BYTES[spec.weights_dtype] + 1) * parameter_count(spec.facts) + 16 * largest
    note = "fake-quantized copies of all weights and inputs of layers (a batch of twice the size stands for the latter)"
    return _Bound(replace(spec, micro_batch_size=2 * spec.micro_batch_size), note, extra=extra)


def _orthogonal(run: Run, spec: Spec) -> _Bound | None:
    """OFT turns each linear layer's input by blocks of rotations: LoRA with dropout and twice a block's size as its
    rank has no fewer parameters, and keeps no less of the inputs.

    Of ``n`` inputs and blocks of ``b`` OFT trains ``n (b - 1) / 2`` parameters and keeps some ten tensors of ``n b``
    for the series of each rotation (PEFT 0.18, ``tuners/oft/layer.py:OFTRotationModule``); LoRA of rank ``2 b`` has
    ``2 b`` parameters for each input and output, with their gradients and states. OFT keeps an input in the adapter's
    dtype, LoRA with dropout two of them and a mask.
    """
    block = run.value("oft_block_size")
    if not isinstance(block, int) or block < 1:
        return None
    note = f"LoRA of rank {2 * block} with dropout on all linear layers (OFT in blocks of {block} takes less)"
    return _Bound(_adapted(spec, 2 * block), note, _METHOD)


def _small(run: Run, spec: Spec) -> _Bound | None:
    """Houlsby's adapters, Bone and ReFT have a matrix to as few numbers, and back: LoRA of that rank has as much on
    every linear layer, and dropout keeps more of its inputs."""
    width = run.value("tuner_width")
    if not isinstance(width, int) or width < 1:
        return None
    adapted = _adapted(spec, width)
    return _Bound(adapted, f"LoRA of rank {width} with dropout on all linear layers (the tuner takes less)", _METHOD)


def _whole(run: Run, spec: Spec) -> _Bound | None:
    """ms-swift's ``lora_llm`` trains an encoder and adapters of the language model. All of it takes no less where
    layers are recomputed: what adapters keep of one layer's inputs is less than the gradients of all layers."""
    if spec.gradient_checkpointing is not True or spec.quantization is not None:
        return None
    return _Bound(replace(spec, method="full"), _ALL_TRAINED, _METHOD)


def _adapted(spec: Spec, rank: int) -> Spec:
    """The run with LoRA of a rank and with dropout on all linear layers."""
    stated = spec.stated.union(("method", "lora_rank", "lora_targets", "lora_dropout"))
    return replace(spec, method="lora", lora_rank=rank, lora_targets="all-linear", lora_dropout=0.1, stated=stated)


def _whole_sequences(run: Run, spec: Spec) -> _Bound | None:
    """Whole sequences on every rank; the run is taken to have no more than its share of them."""
    parts = run.value("sequence_parallel")
    if not isinstance(parts, int) or parts < 1:
        return None
    note = f"whole sequences on each rank ({parts} ranks share one, which takes less)"
    return _Bound(replace(spec, seq_len=parts * spec.seq_len), note)


_MOST_OF_OWN = 500_000_000
"""Parameters that a model's own code is taken to add to a language model and to train alone at the most. LLaVA's
projector has 31 million beside 13 billion (two linear layers, ``multimodal_projector/builder.py``), InstructBLIP's
Q-Former 186 million (``Blip2QFormerConfig``: 12 layers of 768)."""
_BYTES_OF_OWN = 20
"""Bytes that each of them takes at the most: weight, gradient, master and two states in fp32."""


def _beside(run: Run, spec: Spec) -> _Bound | None:
    """Parts of its own beside a language model that is frozen whole: adapters on all of its linear layers keep no less
    of each layer, and have weights, gradients and states of their own; those of the parts come on top."""
    if spec.trainer != "causal-lm":
        return None
    note = f"what is trained beside the frozen language model has no more than {_MOST_OF_OWN // 10**6} M parameters"
    adapted = replace(_adapted(spec, 64), frozen_modules=())
    return _Bound(adapted, note, _METHOD, extra=_BYTES_OF_OWN * _MOST_OF_OWN)


def _on_one(run: Run, spec: Spec) -> _Bound:
    """The whole model on one GPU: none of several has more than that."""
    return _Bound(spec, "the whole model on one GPU (it is split over all GPUs that the process sees)")


def _balanced(run: Run, spec: Spec) -> _Bound:
    """As many layers as one GPU gets, and the head with its logits: none of several has more than that."""
    from lintfit.verdict.device_map import most_layers

    seen = run.launch.seen_gpus if run.launch is not None else None
    gpus = seen.value if seen is not None and isinstance(seen.value, int) else run.hardware.available or 1
    most, layers = most_layers(spec, gpus), spec.facts.layers
    stages = 1 if most is None else max(n for n in range(1, layers + 1) if not layers % n and layers // n >= most)
    if stages == 1 or spec.trainer == "ppo":
        return _on_one(run, spec)
    note = f"{layers // stages} of the {layers} layers and the head on a GPU, of which none of {gpus} gets more"
    one = replace(spec, engine="single", gpus=1, nodes=1, pipeline_parallel=stages, pipeline_stage="last")
    return _Bound(one, note)


def _cast(run: Run, spec: Spec) -> _Bound:
    """Weights, gradients and two states of an optimizer in fp32 beside those that are counted."""
    note = "float32 copies of all that is trained, of its gradients and states (where they are cast, nothing else is)"
    from lintfit.memory.tensors.parameters import inventory

    return _Bound(spec, note, extra=16 * inventory(spec).trainable)


def _kept_weights(run: Run, spec: Spec) -> _Bound:
    """A second copy of all weights in fp32."""
    return _Bound(spec, "all weights a second time, in fp32, as a checkpoint has them", extra=4 * spec.facts.parameters)


def _kept_states(run: Run, spec: Spec) -> _Bound:
    """A second copy of all weights and of the states of an optimizer with two, in fp32."""
    note = "all weights and two states of an optimizer a second time, in fp32, as a checkpoint has them"
    return _Bound(spec, note, extra=12 * spec.facts.parameters)


def _value_head(run: Run, spec: Spec) -> _Bound | None:
    """A pass of a pair with the loss of a language model, and every layer's hidden states in fp32 on top.

    The value head's model makes logits of all tokens in half precision and in fp32, without gradients, and asks for all
    hidden states (TRL 0.24, ``modeling_value_head.py:AutoModelForCausalLMWithValueHead.forward``).
    """
    if spec.trainer != "reward":
        return None
    pair = replace(spec, trainer="causal-lm", loss="full", micro_batch_size=2 * spec.micro_batch_size)
    states = 4 * pair.tokens * spec.facts.hidden * (spec.facts.layers + 1)
    return _Bound(
        pair, "a language model's loss of each pair, and all hidden states (a score takes less)", extra=states
    )


_SEVERAL = lazy_pattern(PASSES.replace("{}", r"(\d+)", 1).format(r"\w+\.(?:compute_loss|training_step)"))
"""A Trainer hands its step one batch; a loop, or a module, may make larger ones of it."""
_IN_PAIRS = lazy_pattern(PAIRED.format(".+"))


def _several(spec: Spec, passes: int) -> _Bound | None:
    """A batch of so many times the size: each pass has no more than the batch, and all of them are kept."""
    if spec.trainer != "causal-lm":
        return None
    note = f"one pass of {passes} times the micro-batch (the script makes {passes} before it goes backward)"
    return _Bound(replace(spec, micro_batch_size=passes * spec.micro_batch_size), note)


_WHOLE_LOGITS = "0.11.4"
"""The TRL whose DPO holds most of its logits: whole log-softmaxes of both answers, a cross entropy beside them, and the
logits themselves until the reference has answered (:mod:`lintfit.memory.loss.preference`)."""


_COMPARE = frozenset({"causal-lm", "dpo", "cpo", "orpo"})


def _pairs(spec: Spec) -> _Bound | None:
    """Both answers of each sample in one batch, with the loss of TRL's own DPO that holds most, and two copies of all
    logits in fp32 on top, which a loss of the script's own may make."""
    if spec.trainer not in _COMPARE or spec.loss != "full":
        return None
    pair = replace(spec, trainer="dpo", own_loss=False, versions={**spec.versions, "trl": _WHOLE_LOGITS})
    copies = 2 * 4 * 2 * spec.tokens * spec.facts.vocab
    return _Bound(pair, "both answers of each sample in one pass, with the loss of TRL's DPO 0.11", extra=copies)


def _whole_batch(_: Run, spec: Spec) -> _Bound:
    """The first GPU has the model itself and gathers the outputs of all; the others have copies."""
    return _Bound(spec, "the whole batch on one GPU (nn.DataParallel gives each a part)")


def _all_layers(_: Run, spec: Spec) -> _Bound:
    return _Bound(spec, "the model with all its layers")


_UNCOUNTED: Mapping[str, Callable[[Run, Spec], _Bound | None]] = {
    CAST_TO_FLOAT: _cast,
    FAKE_QUANTIZED: _fake_quantized,
    KEPT_STATES: _kept_states,
    KEPT_WEIGHTS: _kept_weights,
    ORTHOGONAL: _orthogonal,
    OWN_PARTS: _beside,
    SPLIT_BY_SWIFT: _whole_sequences,
    SPLIT_BY_V1: _whole_sequences,
    VALUE_HEAD: _value_head,
    SMALL_TUNER.format("lora_llm"): _whole,
    BATCH_SPLIT: _whole_batch,
    FEWER_LAYERS: _all_layers,
    **dict.fromkeys(SPREADS, _on_one),
    **dict.fromkeys(BALANCED, _balanced),
    **{SMALL_TUNER.format(name): _small for name in ("adapter", "bone", "reft")},
}
