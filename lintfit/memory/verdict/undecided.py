"""Runs of which too little is known, or that the libraries refuse: no verdict but *does not fit* can be given."""

from __future__ import annotations

from lintfit.memo import Memo
from lintfit.memory.activations.recipe import attention_of, of
from lintfit.memory.alike import alike
from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.loss.preference import ROLLOUTS
from lintfit.memory.micro_batch.halves import halves
from lintfit.memory.reading.contradictions import unshared_experts
from lintfit.memory.spec import OWN_LOSS, Spec
from lintfit.memory.tensors.frozen_models import name_of
from lintfit.memory.tensors.frozen_parts import frozen_parts
from lintfit.memory.tensors.lora import unadapted
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.tensor_parallel import undivided
from lintfit.memory.tensors.weights import quantises_fused_experts
from lintfit.memory.versions import transformers_version

MICS_REMOVED = (0, 19, 7)
"""The first DeepSpeed without MiCS (``runtime/config.py:_REMOVED_ZERO_CONFIG_KEYS``)."""


_FOUND: Memo[tuple[str, ...]] = Memo()


def undecided(spec: Spec) -> tuple[str, ...]:
    """One line for every part of the run that the libraries would refuse, or split in a way that nobody has counted."""
    known = _FOUND.get(alike(spec), "", lambda: _whatever_the_batch(spec))
    return (*spec.uncounted, *known, *_evaluated(spec))


def _whatever_the_batch(spec: Spec) -> tuple[str, ...]:
    lines = (
        undivided(spec),
        _no_adapters(spec),
        unadapted(spec),
        _sequences(spec),
        _stages(spec),
        _experts(spec),
        _adapted_experts(spec),
        _groups(spec),
        _rollouts(spec),
        _encoder(spec),
        _halves(spec),
        _stored(spec),
        _quantised(spec),
        _asked(spec),
    )
    return tuple(filter(None, lines))


def _adapted_experts(spec: Spec) -> str:
    """Adapters on experts that are one quantised parameter: PEFT stacks its own parametrization on bitsandbytes'.

    axolotl's GLM-4.7-Flash takes 34 GiB so where it takes 24 without (``examples/glm47-flash``); what of it is alive
    together nobody has counted.
    """
    lora = of(spec).lora
    if not quantises_fused_experts(spec) or lora is None or lora.fused is None:
        return ""
    return "adapters on quantised experts" if lora.fused.gate_up or lora.fused.down else ""


def _evaluated(spec: Spec) -> tuple[str, ...]:
    """Logits of a whole evaluation on the GPU, of which nobody says how many there are."""
    if spec.evaluation is None:
        return ()
    from lintfit.memory.evaluation.kept import without_end

    return without_end(spec)


def _stored(spec: Spec) -> str:
    """Weights of a kind that nobody has counted, unless somebody states what to take them for."""
    stored = spec.facts.stored
    if stored is None or stored.method is not None or spec.quantization is None or "quantization" in spec.stated:
        return ""
    return f"quantization: the model's weights are {stored.kind}, whose bytes nobody has counted"


def _quantised(spec: Spec) -> str:
    """transformers refuses to train quantised weights (``trainer_utils.py:validate_quantization_for_training``)."""
    if spec.quantization is None or spec.method != "full":
        return ""
    return f"quantization: {spec.quantization} weights without adapters, which the Trainer refuses to train"


def _no_adapters(spec: Spec) -> str:
    """PEFT stops where none of its targets is there (``tuners_utils.py:inject_adapter``)."""
    if spec.method != "lora" or any(weight.role == "adapter" for weight in inventory(spec).weights):
        return ""
    if not spec.facts.exact:
        return "adapters: lora_targets name no module of the models that this one is taken for"
    return f"adapters: lora_targets name no module of {spec.facts.name or spec.facts.model_type}, which PEFT refuses"


def _asked(spec: Spec) -> str:
    """What a loss makes of another model's answers nobody knows; rewards are asked for where no graph is alive."""
    if not spec.frozen_models or spec.uncounted or spec.trainer in ROLLOUTS:
        return ""
    names = ", ".join(name_of(each) for each in spec.frozen_models)
    return f"what the forward pass of {names} leaves beside the model's own, and what the loss makes of it"


def _rollouts(spec: Spec) -> str:
    """PPO's loop knows data parallelism alone; the value model is not split with the policy."""
    split = spec.tensor_parallel * spec.sequence_parallel * spec.pipeline_parallel > 1
    return "PPO with a model or a sequence split over ranks" if spec.trainer == "ppo" and split else ""


KEYWORDS = (4, 55)
"""The first transformers version whose Mllama layers get the images' states as a keyword, which reentrant checkpointing
does not detach (``modeling_layers.py:GradientCheckpointingLayer``)."""


UNCOUNTED = {
    "gemma3n": "what the encoder of gemma3n keeps of them",
    **dict.fromkeys(("bart", "t5"), "what an encoder and a decoder keep of them"),
    "instructblip": "what the queries of instructblip keep of an instruction, whose length no config says",
}
"""Model types, or their language models', of which nobody has counted something that comes with images. Gemma 3n's
encoder is no stack of layers but MobileNet v5, of whose results torch's own count of a trained one saves 4.7 GiB an
image in half precision (timm 1.0.31, 768 x 768 pixels)."""


NEVER_BLIND = frozenset({"florence2"})
"""Model types that train on nothing but images with a task, whatever a spec says of these."""


def _encoder(spec: Spec) -> str:
    """An encoder that nobody has counted; or layers that attend to the images and each run the encoder's backward,
    which the first has freed."""
    sees = spec.images or (spec.images is None and spec.facts.model_type in NEVER_BLIND)
    for kind in (spec.facts.model_type, spec.facts.text_type) if sees else ():
        if kind in UNCOUNTED:
            return f"images: nobody has counted {UNCOUNTED[kind]}"
    if not spec.images or not spec.use_reentrant or spec.gradient_checkpointing is False:
        return ""
    if spec.facts.model_type != "mllama" or spec.facts.vision is None or transformers_version(spec) < KEYWORDS:
        return ""
    from lintfit.memory.micro_batch.vision.step import beside_text

    beside = beside_text(spec)
    refused = "reentrant checkpointing of Llama 3.2 Vision: its image encoder's graph would be run back several times"
    return refused if beside is not None and beside.flows else ""


def _halves(spec: Spec) -> str:
    """What an encoder and a decoder do beside a whole one's training on their own loss."""
    if halves(spec.facts) is None:
        return ""
    if spec.trainer not in OWN_LOSS:
        return f"trainer: {spec.trainer} of a model that has an encoder"
    if spec.pipeline_parallel * spec.sequence_parallel > 1:
        return "an encoder and a decoder split over ranks by layers or by tokens"
    return "frozen_modules: parts of an encoder and of a decoder" if frozen_parts(spec).of_text else ""


def _stages(spec: Spec) -> str:
    """Where layers do not divide, the script alone says which stage has more."""
    layers, stages = spec.facts.layers, spec.pipeline_parallel
    return f"pipeline parallelism: {layers} layers do not divide over {stages} stages" if layers % stages else ""


def _experts(spec: Spec) -> str:
    """AutoEP at stage 3 knows data parallelism alone (``engine.py:_validate_zero3_moe_compatibility``)."""
    unshared = unshared_experts(spec.facts, spec.expert_parallel)
    if unshared:
        return f"expert parallelism: {unshared}"
    if spec.expert_parallel == 1 or spec.engine != "deepspeed" or spec.zero_stage != 3:
        return ""
    if spec.sequence_parallel > 1:
        return "expert parallelism: AutoEP at ZeRO stage 3 refuses sequence parallelism"
    return "expert parallelism: AutoEP at ZeRO stage 3 refuses hpZ" if zero_config(spec).hpz > 1 else ""


def _groups(spec: Spec) -> str:
    """Groups of ranks inside ZeRO-3's that DeepSpeed refuses."""
    if spec.engine != "deepspeed" or spec.zero_stage != 3:
        return ""
    config = zero_config(spec)
    if config.hpz > 1 and config.nvme_param:
        return "hpZ with parameters on NVMe: DeepSpeed makes its second shard on a device 'nvme', which torch has not"
    if config.mics and config.version >= MICS_REMOVED:
        return "MiCS, which DeepSpeed refuses since 0.19.7 (mics_shard_size)"
    return ""


def _sequences(spec: Spec) -> str:
    """Ulysses exchanges whole heads; torch's ring knows SDPA alone, and Accelerate only under FSDP 2."""
    parts, facts = spec.sequence_parallel, spec.facts
    if parts == 1:
        return ""
    if spec.engine != "deepspeed":
        return _ring(spec)
    if attention_of(spec) == "eager":
        return "sequence parallelism: Ulysses refuses eager attention"
    if facts.heads % parts:
        return f"sequence parallelism: Ulysses cannot split {facts.heads} heads over {parts} ranks"
    if facts.kv_heads % parts and parts % facts.kv_heads:
        return f"sequence parallelism: Ulysses cannot split {facts.kv_heads} key and value heads over {parts} ranks"
    if "kv_lora_rank" in facts.config:
        return "sequence parallelism: Ulysses wants keys and values of one width"
    return ""


def _ring(spec: Spec) -> str:
    if spec.engine != "fsdp" or (spec.fsdp is not None and "fsdp" in spec.stated and spec.fsdp.version == 1):
        return "context parallelism without FSDP 2, which Accelerate does not offer"
    kernel = attention_of(spec)
    return "" if kernel == "sdpa" else f"context parallelism with {kernel} attention: torch's ring runs SDPA"
