"""Which catalogued model a name stands for that nobody published: by its family, version and size.

``output/my-llama-2-7b-sft`` is a Llama 2 of seven billion parameters that somebody has trained further. What the
family's owner has published in that version and size says its shape, where all of that has one shape; a name without a
version stands for all versions of that size. A word that tells of another shape (more layers, an encoder) or of what is
no whole model makes a name unknown. A word that nobody knows (``elyza-llama-3-8b``) leaves the vocabulary open: who
trains a model further for a language of their own may give it more words, and the layers stay those of its family.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lintfit.catalog.facts import LONGEST_NAME
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, word_set

ConfigOf = Callable[[str], tuple[Mapping[str, Any], str]]
"""The config of a catalogue's id, and where it was published."""

OWNERS: Mapping[str, tuple[str, ...]] = {
    "baichuan": ("baichuan-inc",),
    "bloom": ("bigscience",),
    "bloomz": ("bigscience",),
    "chatglm": ("thudm", "zai-org"),
    "codellama": ("codellama",),
    "falcon": ("tiiuae",),
    "gemma": ("google",),
    "glm": ("thudm", "zai-org"),
    "internlm": ("internlm",),
    "llama": ("meta-llama", "huggyllama", "decapoda-research", "openlm-research"),
    "minicpm": ("openbmb",),
    "mistral": ("mistralai",),
    "mixtral": ("mistralai",),
    "mpt": ("mosaicml",),
    "olmo": ("allenai",),
    "opt": ("facebook",),
    "phi": ("microsoft",),
    "pythia": ("eleutherai",),
    "qwen": ("qwen",),
    "smollm": ("huggingfacetb",),
    "tinyllama": ("tinyllama",),
    "vicuna": ("lmsys",),
    "yi": ("01-ai",),
    "zephyr": ("huggingfaceh4",),
}
"""Who publishes a family's own models, by its name in names."""

_SAME = word_set("""
    a align aligned alpaca alpha base best beta bf bs by cache chat checkpoint checkpoints ckpt ckpts code coder
    converted cpo cpt data deduped deepspeed deita dir dolly dpo e ep epoch evol exp experiment experiments fft final
    finance finetune finetuned finetuning folder for from ft full gpu gpus grpo gsm harmless helpful helpsteer hf hh
    hub huggingface inst instruct instruction intermediate ipo it iter iteration k kto last latest law legal len local
    log logs lr magpie math medical merged meta metamath mine model models multigpu my new numina numinamath oasst of
    offline old online open openhermes or orca orpo our out output outputs own path pissa ppo pretrain pretrained
    preview pt python pytorch r raft reinforce rejection release result results reward rl rlhf rloo rlvr rm root run
    safe safety sampling save saved science seed seq sft shard sharded shards share sharegpt simpo spin sppo stage step
    steps t test the think thinking tmp to tofu train trained training tulu tune tuned tuning ultrachat ultrafeedback
    user warmup wd weight weights wizardlm wizardmath workspace your zero
    """)
"""Words of names that change nothing: how a model was trained, on which data, for what, and where it lies."""
_OTHER = word_set("""
    accelerator adapter adapters asr audio bit bitnet bits blip bnb clip cogvlm compressed delta depth diff dora draft
    drafter drop dropped dummy eagle encoder expand expanded expansion expert experts flamingo fp ggml gguf gnn gptq
    graph half hqq hybrid hydra ia image images init int internvl layer layers linear llava lora loras mamba marlin
    medusa minigpt minitron mixture mlx mm mmlm moe moes mplug mtp multimodal music nf ocr omni onnx owl peft prefix
    pro projector prompt prune pruned pruning qformer qlora quant quantised quantized random retnet robot rwkv sae
    scratch sheared shallow shortened siglip slice sliced slim small sound sparse speculator speech split stacked
    student subset thin tiny tower tts upcycle upcycled upscale upscaled upscaling video vila vision visual vit vl vla
    vlm voice w width
    """)
"""Words that tell of other layers, of an encoder, of quantised weights, or of what is no whole model."""
ROOM = 65_536
"""Words that a vocabulary is taken to be extended by at the most. Published extensions of Llama's 32,000: to 55,296
(Chinese-LLaMA-2), 49,954 (Chinese-Alpaca), 46,336 (llama-2-ko), 43,176 (Swallow), 48,000 (Tamil-Llama); of Mixtral's
to 57,000 (HIT-SCIR's Chinese-Mixtral-8x7B)."""
_MADE_OF = {"vicuna": "llama", "zephyr": "mistral"}
"""Families whose models are another family's, trained further: a name may say both (``llama-vicuna-7b``)."""
_SIZE = lazy_pattern(r"\d+(?:x\d+)?(?:[.]\d+)?[bm]")
_WORDS = lazy_pattern(
    r"\d+x\d+(?:\.\d+)?[bm](?![a-z])|\d+(?:\.\d+)?[bm](?![a-z])|v\d+(?:\.\d+)?(?![a-z\d])|[a-z]+|\d+(?:\.\d+)?"
)
_NUMBER = lazy_pattern(r"v?\d+(?:\.\d+)?")
_POINT = lazy_pattern(r"(?:(?<=\d)[p_]|(?<=v\d)-)(?=\d(?!\d*(?:\.\d+)?[bm](?![a-z])))")
"""What stands for the point of a version in names of files: ``qwen2p5``, ``internlm2_5``, ``vicuna-v1-3``."""
_PARTS = 2
"""Parts of a path, from its end, in which a family and a size are looked for."""
_SHORT = frozenset({"glm", "opt", "phi", "yi"})
"""Names of families that are folders or people as well: they count in the last part of a path alone."""
_VERSION_LAST = frozenset({"mistral", "mixtral", "vicuna"})
"""Families that have their version behind the size (``Mistral-7B-v0.3``)."""
_ALL_VERSIONS = frozenset({"mistral", "mixtral", "vicuna"})
"""Families that have published nothing without a version, and that people name without one all the same."""
_SHAPES = word_set("""
    model_type hidden_size n_embd d_model num_hidden_layers n_layer n_layers num_layers num_attention_heads n_head
    n_heads num_key_value_heads multi_query_group_num head_dim kv_channels intermediate_size ffn_hidden_size ffn_dim
    padded_vocab_size tie_word_embeddings num_local_experts num_experts
    """)
"""Keys of configs that say how many parameters a model has, and of what form, but for its vocabulary."""


def names_all_sizes(last: str, ids: Sequence[str]) -> bool:
    """Whether a folder's name, in lower case, is that of a family alone, of which there are several sizes.

    The owner's model of that very name may be the largest (``bigscience/bloom``: 176B beside five smaller ones), and
    nothing says that ``/path/to/bloom`` holds that one.
    """
    if last not in OWNERS:
        return False
    starts = tuple(f"{owner}/{last}-" for owner in OWNERS[last])
    sizes = (_SIZE.match(each.lower().rpartition(f"/{last}-")[2]) for each in ids if each.lower().startswith(starts))
    return len({found.group() for found in sizes if found is not None}) > 1


@frozen
class Named:
    """What a name says of a model: whose family, which version (empty where it says none), how large."""

    family: str
    version: str
    size: str
    vocabulary_open: bool = False
    """Whether it has words that nobody knows, of which one may tell of another vocabulary."""


@frozen
class Like:
    """The catalogue's id that a name stands for, and the most words that a model of that name has, where it is open."""

    model: str
    words: int | None = None


def named(name: str) -> Named | None:
    """What a name says; None where it does not say family and size, or tells of something else."""
    words: list[str] = _WORDS.findall(_POINT.sub(".", name.lower()))
    families = {word for word in words if word in OWNERS}
    families -= {_MADE_OF.get(family, "") for family in families}
    families = families - _MADE_OF.keys() or families  # trained as Zephyr was, from another family (zephyr-gemma-7b)
    sizes = {word for word in words if _SIZE.fullmatch(word)}
    known = families | sizes | {_MADE_OF.get(family, "") for family in families}
    others = {word for word in words if word not in known and not _NUMBER.fullmatch(word)}
    if len(families) != 1 or len(sizes) != 1 or others & _OTHER:
        return None
    (family,), (size,) = families, sizes
    return Named(family, _version(family, words[words.index(family) + 1 :]), size, not others <= _SAME)


def _version(family: str, behind: Sequence[str]) -> str:
    """The number right behind a family's name (``llama-2``, ``qwen2.5``, ``vicuna-v1.5``), or behind the size."""
    if behind and _NUMBER.fullmatch(behind[0]):
        return behind[0].removeprefix("v")
    last = (word for word in behind if family in _VERSION_LAST and re.fullmatch(r"v\d+\.\d+", word))
    return next(last, "").removeprefix("v")


def candidates(path: str) -> Iterator[Named]:
    """What a path's end says, the shortest that says both a family and a size first."""
    parts = [part for part in path.split("/") if part][-_PARTS:] if len(path) <= LONGEST_NAME else []
    for count in range(1, len(parts) + 1):
        found = named("/".join(parts[-count:]))
        if found is not None and (count == 1 or found.family not in _SHORT):
            yield found
            return


def published(path: str, ids: Sequence[str], config_of: ConfigOf) -> Like | None:
    """The catalogue's id whose shape a path's name stands for; None where it stands for several shapes or none."""
    wanted = next(candidates(path), None)
    owner, _, rest = path.partition("/")
    if wanted is None or (owner.lower() in OWNERS[wanted.family] and rest.count("/") == 0):
        return None  # an owner's own name that is not catalogued is a typo, or something else
    same = {
        name: said.version
        for name, said in _published(tuple(ids))
        if (said.family, said.size) == (wanted.family, wanted.size) and wanted.version in ("", said.version)
    }
    if wanted.version not in same.values() and (wanted.version or wanted.family not in _ALL_VERSIONS):
        return None
    configs = {name: config_of(name)[0] for name in same}
    if len({tuple(str(config.get(key)) for key in sorted(_SHAPES)) for config in configs.values()}) != 1:
        return None
    words = {name: config.get("vocab_size") for name, config in configs.items()}
    if len(set(words.values())) == 1 and not wanted.vocabulary_open:
        return Like(next(iter(same)))
    counts = [count for count in words.values() if isinstance(count, int)]
    if len(counts) < len(words):
        return None
    fewest = min(counts)
    most = max(counts) + (ROOM if wanted.vocabulary_open else 0)
    return Like(next(name for name, count in words.items() if count == fewest), most)


@functools.cache
def _published(ids: tuple[str, ...]) -> tuple[tuple[str, Named], ...]:
    """What the names of each family's own models say."""
    found = ((name, named(name.rpartition("/")[2])) for name in ids)
    return tuple(
        (name, said)
        for name, said in found
        if said is not None and not said.vocabulary_open and name.partition("/")[0].lower() in OWNERS[said.family]
    )
