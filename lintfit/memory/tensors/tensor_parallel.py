"""Tensor parallelism as transformers (``tp_plan="auto"``) and DeepSpeed's AutoTP split a model over ranks.

Both follow the model's own plan: projections are split by columns, then by rows, norms stay whole, and the head is
split but its logits are gathered, so that every rank computes the whole loss. Measured on 2 and 4 ranks by
``bench/ranks/tensor_parallel.py`` (transformers 5.23 ``distributed/tensor_parallel.py``, DeepSpeed 0.19.8
``module_inject/layers.py``).
"""

from __future__ import annotations

from typing import Protocol

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.spec import Spec, section
from lintfit.memory.versions import since

SPLIT_EMBEDDING = (5, 21, 0)
"""The first transformers version that splits the embedding over the vocabulary (``distributed/mixin.py``); before, only
the plans of a few models name it, and every rank holds it whole."""

SPLIT_TIED_HEAD = (0, 19, 8)
"""The first DeepSpeed version known to follow that for a tied head, and to leave its logits split
(``engine.py:_apply_autotp_partitioning``); 0.19.6 does neither."""

GATHERED_ATTENTION = frozenset(
    {"flex_olmo", "minimax_m2", "minimax_m3_vl_text", "olmo2", "olmo3", "olmoe", "phi3", "phi4_multimodal"}
)
"""Model types whose plan gathers queries, keys and values (``colwise_gather_output``): each rank has all heads."""

GATHERED_MLP = frozenset(
    {"glm", "glm4", "glm46v", "glm4v", "glm4v_text", "glm_ocr", "glm_ocr_text", "phi3", "phi4_multimodal"}
)
"""Model types whose plan gathers the fused gate and up projection."""

WHOLE_ATTENTION = frozenset({"axk1", "deepseek_v3", "kimi_linear", "mistral4", "youtu"})
"""Model types whose plan leaves attention out: its weights are whole on every rank, too."""

UNPLANNED = frozenset(
    {
        "albert", "baichuan", "bamba", "bart", "biogpt", "bitnet", "blenderbot", "bloom", "camembert", "chameleon",
        "chatglm", "codegen", "data2vec-text", "dbrx", "deberta-v2", "diffllama", "distilbert", "electra", "ernie",
        "esm", "falcon", "falcon_h1", "falcon_mamba", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_oss", "gptj",
        "hunyuan_v1_dense", "internlm", "internlm2", "jetmoe", "led", "lfm2", "lfm3", "m2m_100", "mamba", "mamba2",
        "marian", "mbart", "minicpmv", "modernbert", "modernbert-decoder", "mpnet", "mpt", "openai-gpt", "opt",
        "pegasus", "persimmon", "qwen", "qwen3_vl", "recurrent_gemma", "stablelm", "xglm", "zamba", "zamba2",
    }
)  # fmt: skip
"""Model types for which transformers 5.23 has no plan (``base_model_tp_plan``)."""

EXPERTS_ALONE = frozenset(
    {
        "afmoe", "granitemoe", "granitemoehybrid", "granitemoeshared", "hunyuan_v1_moe", "jamba", "lfm2_moe",
        "nemotron_h", "phimoe",
    }
)  # fmt: skip
"""Model types whose plan names the experts of a layer and nothing else of it."""

WHOLE_SHARED = frozenset({"granitemoe_swa"})
"""Model types whose plan leaves the shared MLP beside the experts whole."""

WHOLE_MIXERS = frozenset({"kimi_linear", "minimax", "olmo_hybrid"})
"""Model types whose plan leaves what mixes tokens in the place of attention whole."""

LOCAL_PARAMETERS = frozenset({"granite_swa", "granitemoe_swa", "mimo_v2_flash"})
"""Model types whose plan splits parameters of a module that is none of its linear layers (``local_params``)."""


def splits_embedding(spec: Spec) -> bool:
    """Whether a rank holds only its rows of the embedding."""
    if spec.engine == "deepspeed":
        return splits_logits(spec)
    return since(spec, "transformers", SPLIT_EMBEDDING)


def splits_head(spec: Spec) -> bool:
    """Whether a rank holds only its rows of the head; a tied one is the embedding."""
    return splits_embedding(spec) if spec.facts.tied else True


def splits_logits(spec: Spec) -> bool:
    """Whether the loss works on a rank's own part of the vocabulary instead of on gathered logits.

    AutoTP alone, where ``vocab_parallel_lm_head`` says so, and where nothing is said for a tied head whose embedding
    transformers splits.
    """
    if spec.engine != "deepspeed" or spec.tensor_parallel == 1:
        return False
    said = section(spec.deepspeed_config, "tensor_parallel").get("vocab_parallel_lm_head")
    if said is not None or not spec.facts.tied:
        return said is True
    return since(spec, "deepspeed", SPLIT_TIED_HEAD) and since(spec, "transformers", SPLIT_EMBEDDING)


def logit_parts(spec: Spec) -> int:
    """Ranks that share out the logits: 1 where each holds all of them."""
    return spec.tensor_parallel if splits_logits(spec) else 1


class Named(Protocol):
    """What of a tensor decides how ranks share it: a model's own, or a weight that was made of it."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def where(self) -> str: ...


def share(spec: Spec, tensor: Named) -> tuple[int, int]:
    """What part of a parameter the rank with most of it holds, as numerator and denominator; biases count as whole.

    Experts that expert parallelism shares out over the same ranks are not split besides (transformers
    ``distributed/mixin.py``; AutoEP's ``expert_tensor_parallel_size`` is 1).

    Attention goes by key heads: where these do not divide, AutoTP gives some ranks one group of heads more, and others
    none at all. Plans that gather queries, keys and values split by rows and columns alone.
    """
    parts, facts = spec.tensor_parallel, spec.facts
    if tensor.where == "vision":
        return (1, 1)  # the plans are the language models'
    match tensor.role:
        case "embedding":
            return (1, parts) if splits_embedding(spec) else (1, 1)
        case "lm_head":
            return (1, parts) if splits_head(spec) else (1, 1)
        case "linear" if "attn" in tensor.name or "attention" in tensor.name:
            if facts.model_type in WHOLE_ATTENTION:
                return (1, 1)
            gathered = facts.model_type in GATHERED_ATTENTION
            return (1, parts) if gathered else (-(-facts.kv_heads // parts), facts.kv_heads)
        case "expert" if spec.expert_parallel > 1:
            return (1, 1)
        case "linear" | "expert":
            return (1, parts)
        case _:
            return (1, 1)


def whole_embedding_gradient(spec: Spec) -> int:
    """Elements by which the gradient of a split embedding exceeds the rank's own rows.

    The lookup's backward makes the gradient of all rows, which torch leaves in ``.grad`` as a DTensor that is not yet
    reduced; a tied embedding's is reduced when the head's is added to it.
    """
    if spec.tensor_parallel == 1 or spec.engine != "ddp" or spec.facts.tied or not splits_embedding(spec):
        return 0
    rows = spec.facts.vocab - -(-spec.facts.vocab // spec.tensor_parallel)
    return sum(rows * tensor.shape[-1] for tensor in spec.facts.tensors if tensor.role == "embedding")


def undivided(spec: Spec) -> str:
    """Why a model cannot be split like this, or nothing. AutoTP splits heads that do not divide unevenly."""
    parts, facts = spec.tensor_parallel, spec.facts
    kind = facts.model_type
    if parts == 1:
        return ""
    if spec.quantization is not None:
        return "tensor parallelism of a quantised base, which nobody has counted"
    if spec.engine == "deepspeed":
        return _undivided_by_autotp(facts)
    if kind in UNPLANNED:
        return f"tensor parallelism: transformers has no plan to split {kind}"
    if kind in EXPERTS_ALONE:
        return f"tensor parallelism: transformers' plan splits the experts of {kind} alone, which nobody has counted"
    if kind in WHOLE_SHARED and facts.moe is not None and facts.moe.shared_intermediate:
        return f"tensor parallelism: transformers' plan leaves the shared MLP of {kind} whole, which nobody has counted"
    if kind in WHOLE_MIXERS:
        return (
            f"tensor parallelism: transformers' plan leaves linear attention of {kind} whole, which nobody has counted"
        )
    if kind in GATHERED_ATTENTION | WHOLE_ATTENTION:
        return ""
    for count, what in ((facts.heads, "heads"), (facts.kv_heads, "key and value heads")):
        if count % parts:
            return f"tensor parallelism: transformers cannot split {count} {what} over {parts} ranks"
    return ""


def _undivided_by_autotp(facts: ModelFacts) -> str:
    """DeepSpeed 0.19.8 refuses plans with slices of what was gathered, experts, MLA, or parameters of their own.

    ``module_inject/tp_plan_converter.py:SUPPORTED_STYLES``; what a ``partition_config`` of the user's does instead is
    not known either. Without a plan it goes by the names of modules: GPT-2 fails, of OPT a tied head stays whole.
    """
    kind = facts.model_type
    if kind in UNPLANNED:
        return f"tensor parallelism: AutoTP has no plan to split {kind} and guesses from names"
    sliced = kind in GATHERED_ATTENTION | GATHERED_MLP | WHOLE_ATTENTION | LOCAL_PARAMETERS | WHOLE_MIXERS
    refused = sliced or facts.moe is not None or "kv_lora_rank" in facts.config
    return f"tensor parallelism: AutoTP refuses transformers' plan for {kind}" if refused else ""


def takes_slices(facts: ModelFacts, module: str) -> bool:
    """Whether a projection multiplies its slice of an input that all ranks have whole (``rowwise_split_input``)."""
    gathered = {"o_proj": GATHERED_ATTENTION, "down_proj": GATHERED_MLP}.get(module, frozenset())
    return facts.model_type in gathered


_LOCAL: Memo[ModelFacts] = Memo()


def local(facts: ModelFacts, parts: int) -> ModelFacts:
    """The layer that one tensor-parallel rank computes: its share of the heads and of the MLP, the whole stream."""
    if parts == 1:
        return facts
    return _LOCAL.get(facts, parts, lambda: _share(facts, parts))


def _share(facts: ModelFacts, parts: int) -> ModelFacts:
    held = facts
    if facts.model_type not in GATHERED_ATTENTION | WHOLE_ATTENTION:
        groups = -(-facts.kv_heads // parts)
        held = replace(held, heads=-(-groups * facts.heads // facts.kv_heads), kv_heads=groups)
    if facts.model_type not in GATHERED_MLP:
        held = replace(held, intermediate=-(-facts.intermediate // parts))
    if facts.moe is not None:
        width, shared = -(-facts.moe.intermediate // parts), -(-facts.moe.shared_intermediate // parts)
        held = replace(held, moe=replace(facts.moe, intermediate=width, shared_intermediate=shared))
    return held
