"""How the classes of models are written around their layers: embeddings, positions, masks, the last norm, the loss.

What the layers themselves do is their family's (:mod:`.families`). A model type that is not here is written as Llama's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lintfit.catalog.architectures import ALIASES
from lintfit.catalog.facts import ModelFacts

PADDED_LABELS = (4, 49)
"""The first transformers version whose loss pads the labels instead of copying the shifted logits."""

ALWAYS = (1000, 0)
"""Later than any version of transformers."""


class Projection(NamedTuple):
    """A product between the embeddings and the first layer.

    ``module``: its name. ``width``: the key of the config with the embeddings' width. ``always``: whether it is there
    also where that is the layers' own (``AlbertTransformer.__init__``; not ``OPTDecoder.__init__``). ``biased``:
    whether it adds a bias.
    """

    module: str
    width: str
    always: bool = False
    biased: bool = False


class Transform(NamedTuple):
    """The product, the activation and the norm in front of the head of a model that finds masked words.

    ``product``: the module's name (``DistilBertForMaskedLM.vocab_transform``). ``activation``: the key of the config
    that names its activation, where that is not the layers' (``ModernBertPredictionHead``). ``stepwise``: its GELU is
    written out in single operations, each of which keeps what it takes (``modeling_esm.py:gelu``).
    """

    product: str = "dense"
    activation: str = ""
    stepwise: bool = False


class Frame(NamedTuple):
    """What a model type's class does around its layers, where that is not Llama's way.

    ``positions``: ``rotary`` tables of the model; ``learned`` and added to the embeddings, looked up once or
    (``learned each``) for every sequence; ``sinusoids`` of a buffer, added as well; ``biases`` of the scores, for all
    positions (``build_mpt_alibi_tensor``) or (``biases each``) for the tokens of every sequence
    (``modeling_bloom.py:build_alibi_tensor``); ``bucketed`` biases, looked up once for all layers
    (``MPNetEncoder.compute_position_bias``); ``relative``, vectors that all layers take with the place of every pair
    (``DebertaV2Encoder.get_rel_embedding``, ``get_rel_pos``); of the ``layers``, which make tables of their own or need
    none; or ``none``, and no masks.

    Embeddings. ``scaled``: they are multiplied before the first layer (``embedding_multiplier``, ``normalizer``).
    ``scales_itself``: the transformers version from which a module scales its own output
    (``Gemma3TextScaledWordEmbedding``), where the class is transformers' own. ``normed``: fp32 numbers a token that a
    norm behind them keeps: two of LayerNorm, one of an RMSNorm, which makes its input fp32 (``NanoChatRMSNorm``).
    ``drops``: the key of the config with the rate of a dropout behind them. ``projection``: a product behind them.
    ``zeroes_padding``: they are multiplied by the mask of a padded batch, and by the share of words that are not masked
    where the config has ``token_dropout`` (``EsmEmbeddings.forward``).

    Tables. ``tables``: in the ``stream``'s dtype, ``fp32``, or ``complex``, one number for every two elements, whatever
    the dtype. ``tables_by``: the key of the config that says for every layer which of several it takes (base
    frequencies but 0, or kinds), or ``windows``, one for layers that slide and one for the others. ``partly``: they are
    as wide as the part of a head that they turn, or that the model may have none of; ``partly_by_kind``: which differs
    between kinds of layers, as the architecture says (``turned``). ``tables_each``: every sequence has its own, because
    images have positions of their own. ``keeps_tables``: layers save them, not copies.

    Masks. ``masks_each``: every sequence has its own, because chunks begin anew in each. ``boolean_masks``: eager ones
    are boolean, too. ``makes_both_masks``: layers of one kind, and a mask for the other as well
    (``causal_mask_mapping``). ``head_masks``: the key of the config with which every head of every sequence has one of
    its own, in the embeddings' dtype, with the biases of its positions in it. ``masked_since``: the first transformers
    version that hands SDPA a mask whether it needs one or not (``allow_is_causal_skip=False``). ``masks_padding``: they
    are of padding alone, a row for each sequence (``OpenAIGPTModel.forward``).

    ``buffers``: what the class has buffers of, beside rotary frequencies (:mod:`.micro_batch.buffers`). ``hears``: it
    has an encoder of sound that adds sinusoids, also out of a buffer.

    ``returns_weights``: layers give back eager attention's weights beside their output. ``half_cache``: what turns keys
    for the cache casts them back under autocast. ``fp32_stream``: layers add to a stream in fp32 unless the config says
    otherwise (``residual_in_fp32``). ``casts_norms``: what LayerNorm gives, in fp32 under autocast, is cast back to it.
    ``encoder``: tokens see both ways. ``ends``: layers end with a norm, and no other follows the last.
    ``ends_unless``: the key of the config that, where it is off, has them do so (``OPTDecoderLayer.forward``).
    ``lists_states``: the forward holds what every layer gave until the last one is done, asked for or not. ``opens``:
    what the norm behind the embeddings gives is what all layers add to.

    Behind the layers. ``norm``: :func:`.final.final_norm`'s key; empty for torch's RMSNorm or LayerNorm.
    ``scaled_states``: states are divided before the head. ``softcapped``: logits are, where the config has a cap.
    ``fp32_logits``: the head takes its weight's dtype and the model upcasts the logits, whatever the version.
    ``transforms``: what the head has in front of it. ``masks_logits``: those of words that stand for
    images are overwritten. ``own_loss_before``: the transformers version before which the model's own loss takes logits
    in the dtype that they have (autocast makes it fp32); :data:`ALWAYS` of code outside transformers
    (``modeling_qwen.py``, ``modeling_baichuan.py``). ``plain_loss``: the class has torch's cross entropy of all logits
    as they are, in every version. ``biased_logits``: it adds a bias to them, which autocast leaves in fp32.
    ``tied_scale``: ``scaled_states`` unless the config unties the head.
    """

    positions: str = "rotary"
    scaled: bool = False
    scales_itself: tuple[int, int] = ALWAYS
    normed: int = 0
    drops: str = ""
    projection: Projection | None = None
    zeroes_padding: bool = False
    tables: str = "stream"
    tables_by: str = ""
    partly: bool = False
    partly_by_kind: bool = False
    tables_each: bool = False
    keeps_tables: bool = True
    masks_each: bool = False
    boolean_masks: bool = False
    makes_both_masks: bool = False
    head_masks: str = ""
    masked_since: tuple[int, int] = ALWAYS
    masks_padding: bool = False
    buffers: str = ""
    hears: bool = False
    returns_weights: bool = False
    half_cache: bool = False
    fp32_stream: bool = False
    encoder: bool = False
    ends: bool = False
    ends_unless: str = ""
    lists_states: bool = False
    opens: bool = False
    casts_norms: bool = False
    norm: str = ""
    scaled_states: bool = False
    softcapped: bool = False
    fp32_logits: bool = False
    transforms: Transform | None = None
    masks_logits: bool = False
    own_loss_before: tuple[int, int] = (0, 0)
    plain_loss: bool = False
    biased_logits: bool = False
    tied_scale: bool = False

    @property
    def learned(self) -> bool:
        """Whether positions are learned and added to the embeddings."""
        return self.positions.startswith("learned")

    @property
    def places_once(self) -> bool:
        """Whether positions are added to the embeddings or to the scores, so that nothing turns keys by them."""
        return self.learned or self.positions in ("biases", "biases each", "sinusoids")

    @property
    def changes(self) -> bool:
        """Whether the first layer takes something else than what the embedding gave."""
        return self.scaled or self.learned or self.normed > 0 or self.positions == "sinusoids"


_BERT = Frame(
    positions="layers",
    normed=2,
    drops="hidden_dropout_prob",
    encoder=True,
    transforms=Transform(),
    plain_loss=True,
    ends=True,
)
_BART = Frame(drops="dropout", plain_loss=True, biased_logits=True)
_GPT = Frame(positions="learned", drops="embd_pdrop", own_loss_before=PADDED_LABELS)
_MODERNBERT = Frame(
    normed=2,
    drops="embedding_dropout",
    tables_by="layer_types",
    opens=True,
    transforms=Transform(activation="classifier_activation"),
)

FRAMES: Mapping[str, Frame] = {
    "afmoe": Frame(scaled=True, norm="full"),
    "albert": _BERT._replace(
        projection=Projection("embedding_hidden_mapping_in", "embedding_size", always=True, biased=True)
    ),
    **dict.fromkeys(("baichuan", "qwen", "qwenvl"), Frame(own_loss_before=ALWAYS)),
    "bamba": Frame(partly=True, returns_weights=True),
    **dict.fromkeys(("bert", "data2vec-text", "ernie", "roberta"), _BERT),
    "bart": _BART._replace(positions="learned", normed=2, ends=True),
    "biogpt": Frame(positions="learned", drops="hidden_dropout_prob"),
    "blenderbot": _BART._replace(positions="learned"),
    "bloom": Frame(positions="biases each", normed=2, returns_weights=True, own_loss_before=PADDED_LABELS),
    "chameleon": Frame(masks_logits=True),
    **dict.fromkeys(
        ("codegen", "gptj"), Frame(positions="layers", drops="embd_pdrop", buffers="tables", returns_weights=True)
    ),
    **dict.fromkeys(("cohere", "cohere2"), Frame(half_cache=True, norm="cohere")),
    "cohere2_moe": Frame(half_cache=True, casts_norms=True, norm="cohere"),
    "dbrx": Frame(casts_norms=True),
    "deberta-v2": _BERT._replace(positions="relative", lists_states=True),
    "deepseek_v2": Frame(tables="complex"),
    "deepseek_v32": Frame(masked_since=(5, 0)),
    "distilbert": _BERT._replace(drops="dropout", transforms=Transform("vocab_transform")),
    "doge": Frame(masked_since=(0, 0)),
    **dict.fromkeys(("ernie4_5", "ernie4_5_moe"), Frame(tables="fp32", keeps_tables=False)),
    "esm": Frame(
        zeroes_padding=True,
        encoder=True,
        transforms=Transform(stepwise=True),
        plain_loss=True,
        biased_logits=True,
    ),
    "eurobert": Frame(encoder=True),
    "falcon": Frame(masked_since=(5, 15), head_masks="alibi", returns_weights=True, own_loss_before=PADDED_LABELS),
    **dict.fromkeys(("falcon_h1", "granite", "granitemoe", "granitemoeshared", "hyperclovax"), Frame(scaled=True)),
    **dict.fromkeys(("falcon_mamba", "mamba", "mamba2"), Frame(positions="none", fp32_stream=True, fp32_logits=True)),
    **dict.fromkeys(("flex_olmo", "olmo2"), Frame(tables="fp32", norm="full")),
    "olmo3": Frame(tables="fp32", tables_by="layer_types", norm="full"),
    "gemma": Frame(scaled=True, scales_itself=(5, 0), norm="gemma"),
    "gemma2": Frame(scaled=True, scales_itself=(5, 0), norm="gemma", softcapped=True),
    **dict.fromkeys(
        ("gemma3", "gemma3_text"),
        Frame(scaled=True, scales_itself=(0, 0), tables_by="windows", norm="gemma", softcapped=True),
    ),
    "gemma3n_text": Frame(tables_by="windows", norm="gemma3n", softcapped=True),
    "gemma4_text": Frame(scaled=True, scales_itself=(5, 0), tables_by="windows", norm="gemma4", softcapped=True),
    **dict.fromkeys(
        ("glm", "glm4", "glm4_moe", "jamba", "minimax_m2", "persimmon", "phi3", "phi4_multimodal", "solar_open"),
        Frame(partly=True),
    ),
    **dict.fromkeys(("glm4v_moe_text", "glm4v_text", "glm_ocr_text"), Frame(partly=True, tables_each=True)),
    "glm_moe_dsa": Frame(masked_since=(5, 0), returns_weights=True),
    "gpt2": _GPT,
    "gpt_bigcode": _GPT._replace(buffers="triangle"),
    "gpt_neo": Frame(positions="learned", drops="embed_dropout", buffers="triangles", returns_weights=True),
    "gpt_neox": Frame(drops="hidden_dropout", partly=True, own_loss_before=PADDED_LABELS),
    "gpt_oss": Frame(norm="full"),
    **dict.fromkeys(("granite_swa", "granitemoe_swa"), Frame(scaled=True, tables_by="layer_rope_theta")),
    "granitemoehybrid": Frame(scaled=True, partly=True),
    "helium": Frame(keeps_tables=False, norm="helium"),
    "kimi_linear": Frame(positions="layers"),
    **dict.fromkeys(("laguna", "mimo_v2_flash"), Frame(tables_by="layer_types", partly_by_kind=True)),
    "lfm3": Frame(tables="fp32", tables_by="layer_types"),
    "llama4_text": Frame(tables="complex", masks_each=True),
    "m2m_100": _BART._replace(positions="sinusoids", buffers="sinusoids", biased_logits=False),
    "marian": _BART._replace(positions="sinusoids", ends=True),
    "mbart": _BART._replace(positions="learned", normed=2, opens=True),
    "mellum": Frame(tables_by="layer_types"),
    "minicpm": Frame(scaled=True, scaled_states=True),
    "minicpm3": Frame(scaled=True, scales_itself=(5, 0), scaled_states=True),
    "minimax": Frame(buffers="decays"),
    **dict.fromkeys(("minimax_m3_vl_text", "nemotron_h", "qwen3_next"), Frame(partly=True, norm="gemma")),
    **dict.fromkeys(("ministral", "qwen2_moe"), Frame(makes_both_masks=True)),
    "modernbert": _MODERNBERT._replace(encoder=True),
    "modernbert-decoder": _MODERNBERT._replace(tables_each=True),
    "mpnet": _BERT._replace(positions="bucketed"),
    "mpt": Frame(positions="biases", boolean_masks=True, returns_weights=True, own_loss_before=PADDED_LABELS),
    "nanochat": Frame(normed=1, norm="nanochat", softcapped=True),
    "nemotron": Frame(partly=True, norm="cohere"),
    "olmo": Frame(tables="fp32", norm="cohere"),
    "olmo_hybrid": Frame(tables="fp32", tables_by="layer_types", partly=True, norm="full"),
    "openai-gpt": _GPT._replace(masks_padding=True, buffers="wide triangles", ends=True),
    "opt": Frame(
        positions="learned each",
        projection=Projection("project_in", "word_embed_proj_dim"),
        half_cache=True,
        ends_unless="do_layer_norm_before",
        norm="opt",
        own_loss_before=PADDED_LABELS,
    ),
    "pegasus": _BART._replace(positions="sinusoids"),
    "phi": Frame(drops="embd_pdrop", partly=True),
    **dict.fromkeys(
        (
            "paddleocr_vl_text",
            "qwen2_5_omni_text",
            "qwen2_5_vl",
            "qwen2_vl",
            "qwen3_vl",
            "qwen3_vl_moe",
        ),
        Frame(tables_each=True),
    ),
    "qwen2_5_omni_thinker": Frame(hears=True),
    "qwen3_omni_moe_thinker": Frame(tables_each=True, hears=True),
    **dict.fromkeys(("qwen3_5_moe_text", "qwen3_5_text"), Frame(partly=True, tables_each=True, norm="gemma")),
    "recurrent_gemma": Frame(positions="layers", scaled=True, norm="gemma", softcapped=True),
    "stablelm": Frame(partly=True, own_loss_before=PADDED_LABELS),
    "starcoder2": Frame(drops="embedding_dropout"),
    **dict.fromkeys(
        ("mt5", "t5"),
        Frame(positions="layers", drops="dropout_rate", norm="t5", tied_scale=True, plain_loss=True),
    ),
    "vaultgemma": Frame(scaled=True, scales_itself=(5, 0), makes_both_masks=True, norm="gemma", softcapped=True),
    "xglm": Frame(positions="sinusoids", drops="dropout", buffers="sinusoids"),
    "zamba": Frame(partly=True),
    "zamba2": Frame(partly=True),
}
"""By model type."""

_BY_NAME = {**{name: FRAMES[kind] for name, kind in ALIASES.items() if kind in FRAMES}, **FRAMES}
_LLAMA = Frame()


def frame(facts: ModelFacts) -> Frame:
    """How the model's class is written around its layers."""
    return _BY_NAME.get(facts.model_type, _LLAMA)


def biased_heads(facts: ModelFacts) -> bool:
    """Whether every head of every sequence has a mask of its own, with biases by position in it."""
    key = frame(facts).head_masks
    return bool(key and facts.config.get(key))


def projection(facts: ModelFacts) -> Projection | None:
    """The product between the embeddings and the first layer; None where there is none."""
    found = frame(facts).projection
    return found if found is not None and (found.always or embedding_width(facts) != facts.hidden) else None


def embedding_width(facts: ModelFacts) -> int:
    """Elements of a token's embedding: the layers' width, where no product lies between."""
    found = frame(facts).projection
    return facts.hidden if found is None else int(facts.config.get(found.width) or facts.hidden)


def ends_with_norm(facts: ModelFacts) -> bool:
    """Whether layers end with a norm."""
    how = frame(facts)
    return how.ends or (bool(how.ends_unless) and not facts.config.get(how.ends_unless, True))
