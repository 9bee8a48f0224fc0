"""Around the layers: the embeddings' output and gradient, positions and masks."""

from __future__ import annotations

from importlib import import_module

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import always_masked, mask_bytes
from lintfit.memory.activations.bert import BERTS
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.kinds import first_of_windows, stretches
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import CAST, INDEX, rounded
from lintfit.memory.micro_batch.language import language
from lintfit.memory.spec import Spec
from lintfit.memory.versions import transformers_version

SORTED_EMBEDDING = 3072
"""Tokens above which the embedding's backward sorts (``embedding_dense_backward_cuda``)."""

LEARNED_POSITIONS = frozenset({"gpt2", "gpt_bigcode", "opt", "bloom"})
"""Model types without rotary embeddings."""

SCALED_EMBEDDINGS = frozenset(
    {
        "afmoe",
        "falcon_h1",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "gemma4_text",
        "granite",
        "granite_swa",
        "granitemoe",
        "granitemoe_swa",
        "granitemoehybrid",
        "granitemoeshared",
        "hyperclovax",
        "minicpm",
        "minicpm3",
        "recurrent_gemma",
        "vaultgemma",
    }
)
"""Model types that multiply the embeddings before the first layer (``embedding_multiplier``, ``normalizer``)."""

CHANGED_EMBEDDINGS = SCALED_EMBEDDINGS | LEARNED_POSITIONS | BERTS | {"gpt_neo", "nanochat"}
"""The same, and those that add learned positions or norm them."""

OPENS_EVERY_INPUT = (5, 0)
"""The first transformers whose ``gradient_checkpointing_enable`` calls ``enable_input_require_grads`` for every model
that takes ids; before, it did so only for adapters of transformers' own loader."""

SCALES_ITSELF = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text", "gemma4_text", "minicpm3", "vaultgemma"})
"""Model types whose embedding is a module that scales its own output (``Gemma3TextScaledWordEmbedding``), Gemma 1 and 2
since transformers 5, MiniCPM 3 where it is transformers' own class."""


CHUNKED = frozenset({"llama4_text"})
"""Model types that attend in chunks, which begin anew in every sequence: each has a mask of its own."""

COMPLEX_TABLES = frozenset({"deepseek_v2", "llama4_text"})
"""Model types with one table of a complex number for every two elements, whatever the dtype."""


FULL_TABLES = frozenset({"ernie4_5", "ernie4_5_moe", "flex_olmo", "lfm3", "olmo", "olmo2", "olmo3", "olmo_hybrid"})
"""Model types whose tables are fp32, whatever the dtype."""

TABLES_BY = {
    **dict.fromkeys(("granite_swa", "granitemoe_swa"), "layer_rope_theta"),
    **dict.fromkeys(("laguna", "lfm3", "mellum", "mimo_v2_flash", "olmo_hybrid"), "layer_types"),
}
"""What model types have tables for each of, as far as layers have it: base frequencies but 0, or kinds."""

TABLELESS = frozenset({"conv", "linear_attention"})
"""Kinds of layers that turn nothing."""

TURNED = frozenset({"laguna", "mimo_v2_flash"})
"""Model types whose layers of each kind turn other parts of a head; their architecture says which (``turned``)."""

TABLES_BY_KIND = frozenset({"gemma3", "gemma3_text", "gemma3n_text", "gemma4_text"})
"""Model types with tables for the layers that slide and others for those that do not."""

PARTLY_ROTARY = frozenset(
    {
        "bamba",
        "glm",
        "glm4",
        "glm4_moe",
        "glm4v_moe_text",
        "glm4v_text",
        "glm_ocr_text",
        "gpt_neox",
        "granitemoehybrid",
        "jamba",
        "minimax_m2",
        "minimax_m3_vl_text",
        "nemotron",
        "nemotron_h",
        "olmo_hybrid",
        "persimmon",
        "phi",
        "phi3",
        "phi4_multimodal",
        "qwen3_5_moe_text",
        "qwen3_5_text",
        "qwen3_next",
        "solar_open",
        "stablelm",
    }
)
"""Model types whose tables are as wide as the part of a head that they turn, or that may have none."""

TABLES_OF_SAMPLES = frozenset(
    {
        "glm4v_moe_text",
        "glm4v_text",
        "glm_ocr_text",
        "paddleocr_vl_text",
        "qwen2_5_omni_text",
        "qwen2_5_vl",
        "qwen2_vl",
        "qwen3_5_moe_text",
        "qwen3_5_text",
    }
)
"""Model types with tables for every sequence, whose images have positions of their own."""


OWN_TABLES = frozenset({"kimi_linear", "recurrent_gemma", *BERTS})
"""Model types whose layers each make tables, or need none, and the model none."""

ATTENTIONLESS = frozenset({"falcon_mamba", "mamba", "mamba2"})
"""Model types that have neither tables nor masks."""


SAMPLES_BY_MODEL = frozenset({"qwen3_omni_moe", "qwen3_omni_moe_thinker", "qwen3_vl", "qwen3_vl_moe"})
"""The same of model types whose language model is counted as one that has a single table."""


def tables(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int, *, samples: bool = False) -> int:
    """Bytes of the rotary tables, cosine and sine, of a sequence or of each; LitGPT keeps them in fp32.

    ``item``: bytes of an element of the residual stream. ``samples``: whether every sequence has its own.
    """
    if recipe.litgpt:
        return 2 * rounded(seq * (facts.rotary_dim or facts.head_dim) * 4)
    if facts.model_type in COMPLEX_TABLES:
        return rounded(seq * _turned(facts) * 4)
    if facts.model_type in LEARNED_POSITIONS | ATTENTIONLESS | OWN_TABLES:
        return 0
    widths = [facts.head_dim, int(facts.config.get("global_head_dim") or facts.head_dim)]
    widths = widths if facts.model_type in TABLES_BY_KIND else [_turned(facts)]
    if facts.model_type in TABLES_BY:
        widths *= len(_firsts(facts))
    if facts.model_type in TURNED:
        kinds = {*(facts.config.get("layer_types") or ("full_attention",))}
        turned = import_module(f"lintfit.catalog.architectures.{facts.model_type}").turned
        widths = [turned(facts.config, kind, facts.head_dim) for kind in kinds]
    positions = batch * seq if samples or facts.model_type in TABLES_OF_SAMPLES else seq
    item = 4 if facts.model_type in FULL_TABLES else item
    return sum(2 * rounded(positions * width * item) for width in widths)


def _firsts(facts: ModelFacts) -> list[int]:
    """The first layer of each of what :data:`TABLES_BY` tells; one where a config does not say."""
    told = facts.config.get(TABLES_BY[facts.model_type])
    if not isinstance(told, list):
        return [0]
    first = {one: number for number, one in reversed(list(enumerate(told))) if one and one not in TABLELESS}
    return sorted(first.values())


def _later_tables(facts: ModelFacts, recipe: Recipe, seq: int, item: int) -> tuple[tuple[int, int], ...]:
    """Tables that the first layers do not take: the first one that does, and bytes."""
    if facts.model_type in TABLES_BY_KIND:
        wide = int(facts.config.get("global_head_dim") or facts.head_dim)
        starts = first_of_windows(facts).items()
        widths = [(start, wide if window is None else facts.head_dim) for window, start in starts if start]
        return tuple([(start, 2 * rounded(seq * width * item)) for start, width in widths])
    firsts = _firsts(facts) if facts.model_type in TABLES_BY else []
    if not any(firsts):
        return ()
    size = tables(facts, recipe, 1, seq, item) // len(firsts)
    return tuple([(first, size) for first in firsts if first])


def _turned(facts: ModelFacts) -> int:
    """Elements of a head that the tables have."""
    partly = facts.model_type in PARTLY_ROTARY or "kv_lora_rank" in facts.config
    return facts.rotary_dim if partly else facts.head_dim


def opens_inputs(spec: Spec) -> bool:
    """Whether checkpointing over a frozen base makes the embeddings' output a leaf that needs a gradient.

    Reentrant checkpointing works with nothing else, so that PEFT, TRL or the script see to it; since
    ``OPENS_EVERY_INPUT`` transformers does so for either kind.
    """
    if spec.method != "lora" or spec.gradient_checkpointing is False:
        return False
    version = transformers_version(spec)
    return spec.use_reentrant or (version >= OPENS_EVERY_INPUT and spec.front_end != "litgpt")


def input_leaf(spec: Spec, checkpoints: bool, tokens: int, item: int) -> int:
    """The embeddings' output where it is a leaf (:func:`opens_inputs`) and not the first layer's input.

    A leaf stays as long as the graph; a model that scales it or adds positions keeps both. The fms runs of PowerLM-3b
    with LoRA (Granite) show it: 2h bytes a token.
    """
    kind = language(spec.facts).model_type
    inside = kind in SCALES_ITSELF and (kind.startswith("gemma3") or transformers_version(spec) >= (5, 0))
    scaled = kind in CHANGED_EMBEDDINGS and not inside
    width = embedding_width(language(spec.facts))
    return rounded(tokens * width * item) if scaled and checkpoints and opens_inputs(spec) else 0


def embedding_width(facts: ModelFacts) -> int:
    """Elements of a token's embedding; OPT-350m has a product between it and the first layer."""
    return int(facts.config.get("word_embed_proj_dim") or facts.hidden) if facts.model_type == "opt" else facts.hidden


def projected_embeddings(spec: Spec, recipe: Recipe, batch: int, seq: int, item: int, checkpoints: bool) -> int:
    """Bytes that the graph keeps of the product behind OPT-350m's embeddings, and of its adapter."""
    facts = language(spec.facts)
    width = embedding_width(facts)
    if width == facts.hidden:
        return 0
    t = Layer(facts, recipe)
    leaf = recipe.frozen and checkpoints and opens_inputs(spec)
    x = t.new(width, item, grad=leaf or not recipe.frozen)
    x.storage.external = leaf
    t.linear("project_in", x, width, facts.hidden)
    return sum(storage.size(batch, seq) for storage in t.saved() if storage.kind != CAST)


NORMED = {"bloom": 2, **dict.fromkeys(BERTS, 2), "nanochat": 1}
"""Model types that norm their embeddings, and how many fp32 numbers a token the norm keeps."""


def embedding_norm(spec: Spec, recipe: Recipe, tokens: int, item: int, checkpoints: bool) -> tuple[int, int]:
    """Bytes that the graph keeps of the norm behind BLOOM's and nanochat's embeddings, and how many of them are the
    embeddings.

    Its input, nanochat's and under autocast BLOOM's in fp32, and fp32 numbers a token (:data:`NORMED`); nothing where
    no gradient comes that far. A leaf is counted by :func:`input_leaf`.
    """
    facts = language(spec.facts)
    leaf = checkpoints and opens_inputs(spec)
    rows = NORMED.get(facts.model_type)
    if rows is None or (recipe.frozen and not leaf):
        return 0, 0
    kept = rows * rounded(tokens * 4)
    if item == 2 and (recipe.autocast or facts.model_type == "nanochat"):
        return kept + rounded(tokens * facts.hidden * 4), 0
    itself = rounded(tokens * facts.hidden * item)
    if facts.model_type in BERTS:  # a sum, and no leaf
        return kept + itself, 0
    return (kept if recipe.frozen else kept + itself), itself


def summands(facts: ModelFacts, batch: int, seq: int, item: int) -> int:
    """Bytes of embeddings and learned positions, whose sum is the first layer's input; BLOOM and nanochat norm the
    embeddings.

    The model's forward has names for them while its layers run. OPT looks positions up for every sequence, the others
    once.
    """
    kind = facts.model_type
    if kind not in LEARNED_POSITIONS | {"gpt_neo", "nanochat"}:
        return 0
    rows = {"opt": batch * seq, "bloom": 0, "nanochat": 0}.get(kind, seq)
    return rounded(batch * seq * facts.hidden * item) + rounded(rows * facts.hidden * item)


def triangles(facts: ModelFacts, item: int) -> int:
    """Bytes of buffers over all positions that old models hold: boolean causal masks, one or one a layer, and GPT-J's
    and CodeGen's fp32 tables in every layer; of MiniMax-01's decays over a block, ``item`` bytes an element."""
    if facts.model_type == "minimax":
        size, lightning = int(facts.config["block_size"]), facts.config["layer_types"].count("linear_attention")
        sizes = (1, size, size, size**2)
        return int(lightning * sum(rounded(facts.heads * each * item) for each in sizes))
    positions = facts.max_positions or 0
    if facts.model_type in ("gptj", "codegen"):
        return facts.layers * rounded(positions * facts.rotary_dim * 4)
    count = {"gpt_bigcode": 1, "gpt_neo": facts.layers}.get(facts.model_type, 0)
    return count * rounded(positions**2) if count else 0


def sinusoids(facts: ModelFacts) -> int:
    """Bytes of the positions of Qwen Omni's encoders of sound, a buffer in fp32 (``SinusoidsPositionEmbedding``)."""
    if "omni" not in facts.model_type or not facts.text_type:
        return 0
    thinker = "qwen2_5_omni_thinker" if facts.text_type == "qwen2_5_omni_text" else "qwen3_omni_moe_thinker"
    defaults = import_module(f"lintfit.catalog.architectures.{thinker}").AUDIO
    sound = {**defaults, **(facts.config.get("audio_config") or {})}
    return rounded(int(sound["max_source_positions"]) * int(sound["d_model"]) * 4)


BOOLEAN = frozenset({"mpt"})
"""Model types whose eager scores are masked by a boolean mask."""


def masks(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    if facts.model_type in ATTENTIONLESS:
        return 0
    windows = {kind.window for kind, _, _ in stretches(facts)}
    bites = any(window is not None and seq >= window for window in windows)
    item = 1 if facts.model_type in BOOLEAN else item
    found = mask_bytes(recipe, len(windows), bites or always_masked(facts, recipe), batch, seq, item)
    apart = facts.model_type in CHUNKED and recipe.attention == "sdpa" and not recipe.padded
    return found * batch if apart else found


BOTH_MASKS = frozenset({"ministral", "qwen2_moe", "vaultgemma"})
"""Model types with layers of one kind that make a mask for the other as well (``causal_mask_mapping``)."""


def untaken_mask(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    """Bytes of a mask that the model makes and none of its layers takes, so that it is gone with the forward."""
    if facts.model_type not in BOTH_MASKS or len(first_of_windows(facts)) > 1:
        return 0
    if recipe.attention == "sdpa" and not recipe.padded:
        sliding = None in first_of_windows(facts) and seq >= int(facts.config.get("sliding_window") or 0)
        return seq * seq if sliding else 0  # full attention has none
    return mask_bytes(recipe, 1, False, batch, seq, item)


def let_go(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> tuple[tuple[int, int], ...]:
    """Masks and tables that the first layers do not take: the first one that does, and bytes.

    In the backward each goes with the last non-reentrant checkpoint that holds it.
    """
    first = first_of_windows(facts)
    later = [(window, start) for window, start in first.items() if start]
    size = masks(facts, recipe, batch, seq, item) if later else 0
    tables_too = _later_tables(facts, recipe, seq, item)
    if recipe.attention == "sdpa" and not recipe.padded:  # full attention has none
        return (*[(start, size) for window, start in later if window is not None], *tables_too)
    return (*[(start, size // len(first)) for _, start in later], *tables_too)


SPREAD_ANEW = frozenset({"ernie4_5", "ernie4_5_moe", "helium"})
"""Model types whose layers keep tables of their own, not the model's."""


def given(
    facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int, *, checkpoints: bool, samples: bool = False
) -> tuple[int, int]:
    """Bytes of the tables and masks that the model makes and hands to all layers: of those that layers keep, and of
    those that are gone with the forward, where no checkpoint holds them.

    Checkpoints hold tables as they hold masks; some go before the backward has come to the first layers
    (:func:`let_go`). ``samples``: see :func:`tables`.
    """
    table, mask = tables(facts, recipe, batch, seq, item, samples=samples), masks(facts, recipe, batch, seq, item)
    kept = (0 if facts.model_type in SPREAD_ANEW else table) + (mask if facts.model_type in BOOLEAN else 0)
    if checkpoints:
        kept -= sum([size for _, size in _later_tables(facts, recipe, seq, item)])
    return kept, table + mask - kept + biases(facts, batch, seq, item)


def biases(facts: ModelFacts, batch: int, seq: int, item: int) -> int:
    """Bytes of the biases by position that BLOOM and MPT add to their scores; MPT's have all positions, in fp32."""
    if facts.model_type == "mpt":
        return rounded(facts.heads * (facts.max_positions or seq) * 4)
    return rounded(batch * facts.heads * seq * item) if facts.model_type == "bloom" else 0


def dropout_mask(facts: ModelFacts, recipe: Recipe, tokens: int, checkpoints: bool) -> int:
    """The mask of GPT-2's dropout behind the embeddings (one byte an element).

    Frozen ones have a gradient only where checkpointing over adapters asks for one.
    """
    if recipe.frozen and not checkpoints:
        return 0
    if facts.model_type in BERTS:
        rate = facts.config.get("hidden_dropout_prob")
    else:
        rate = facts.config.get("embd_pdrop", 0.1 if facts.model_type in ("gpt2", "gpt_bigcode") else 0.0)
    return rounded(tokens * facts.hidden) if rate and recipe.dropout else 0


def scratch(tokens: int, hidden: int, item: int) -> int:
    """The embedding's incoming gradient, and above 3072 tokens fp32 rows and sorted indices.

    ``aten/src/ATen/native/cuda/Embedding.cu``: the sorting kernel sums rows in fp32 and holds six int64 a token.
    """
    scratch = tokens * hidden * item
    return scratch + (tokens * (4 * hidden + 6 * INDEX) if tokens > SORTED_EMBEDDING else 0)
