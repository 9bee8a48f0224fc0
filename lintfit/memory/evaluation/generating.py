"""An evaluation that only generates: a batch of prompts is read at once, then their answers are made token by token.

Sources: transformers ``generation/utils.py`` (``generate``, ``_sample``, ``_beam_search``), ``cache_utils.py``
(``DynamicLayer.update``), ``integrations/sdpa_attention.py`` (``pack_gqa``). All sizes are bytes of one rank.
"""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.memory.activations.attention import repeats
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.recipe import Recipe, evaluating
from lintfit.memory.evaluation.batch import Round, copies_without_head
from lintfit.memory.loss.returned import returned_item
from lintfit.memory.micro_batch.alive import layer_without_graph
from lintfit.memory.micro_batch.stream import stream_bytes
from lintfit.memory.rollouts.rollout import layer_cache, selected_experts
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import local
from lintfit.memory.versions import transformers_version

READING = "evaluation, prompts read"
GENERATING = "evaluation, tokens generated"

NEW_TOKENS = 20
"""Tokens of an answer where nobody says (``GenerationConfig.max_length``, which counts from the prompt's end)."""

LAST_LOGITS = (4, 45)
"""The first transformers whose ``generate`` asks for the last token's logits alone (``num_logits_to_keep``)."""
LAST_LOGITS_OF: Mapping[str, tuple[int, int]] = {
    "falcon": (4, 47), "granite": (4, 48), "gpt_neox": (4, 49), "granitemoe": (4, 52), "granitemoeshared": (4, 52),
    "gpt2": (4, 53), "biogpt": (4, 57), "glm4v": (4, 57),
    **dict.fromkeys(
        ("bloom", "chameleon", "codegen", "falcon_mamba", "gpt_bigcode", "gpt_neo", "gptj", "mamba", "mamba2", "mpt",
         "openai-gpt", "opt", "qwen2_5_vl", "qwen2_vl", "recurrent_gemma", "xglm"), (5, 0)),
}  # fmt: skip
"""The same of models whose ``forward`` learned it later (read in 4.45 to 5.23)."""

PACKS_GROUPS = (5, 23)
"""The first transformers that hands SDPA a single token's groups of heads as they are, with a mask, too."""


def answered(run: Round) -> int:
    """Tokens of a row whose keys and values are there at the end: nobody reads the last one."""
    return run.spec.seq_len + (run.evaluation.new_tokens or NEW_TOKENS) - 1


def reading(run: Round) -> Live:
    """The end of the prompts' forward pass: the last layer beside the keys and values of all; or the logits of every
    token, where a model makes these."""
    copies = copies_without_head(run)
    layer = layer_without_graph(run.spec, run.step, evaluating(run.step.recipe))
    found = Live(run.step.inputs + cached(run, run.spec.seq_len), casts=copies).plus(layer)
    if not makes_all_logits(run.spec):
        return found
    around = run.step.inputs + cached(run, run.spec.seq_len) + run.step.head.bare.activations
    return max(found, Live(around, all_logits(run), run.step.copies), key=lambda live: live.total)


def generating(run: Round) -> Live:
    """The last token: the keys and values of all before it, and what a layer makes of its own; or the logits.

    What was made of the logits of the token before is a variable's until there are new ones. Accelerate hands logits on
    in fp32 when autocast is over, and its copies of weights are gone.
    """
    held = run.step.inputs + cached(run, answered(run))
    before, recipe = left(run), run.step.recipe
    given, item = returned_item(run.spec, recipe), 2 if recipe.autocast else recipe.weights
    passing = Live(held + beside(run), before, copies_without_head(run))
    routed = Live(held, before, copies_without_head(run), selected_experts(run.spec, run.spec.micro_batch_size))
    inside = Live(held, before + entries(run) * item, run.step.copies)
    outside = Live(held, before + entries(run) * (given + LOGIT))
    return max(passing, routed, inside, outside, key=lambda live: live.total)


LOGIT = 4
"""Bytes of a logit that the next token is chosen by: fp32."""
SEARCHED = 2
"""Such copies that a search of beams has left: the logits and their log-softmax (``_beam_search``)."""


def entries(run: Round) -> int:
    """Logits of one token of every row."""
    return run.spec.micro_batch_size * run.spec.facts.vocab


def left(run: Round) -> int:
    """What is left of the logits of the token before."""
    return entries(run) * LOGIT * (SEARCHED if run.evaluation.beams > 1 else 1)


def makes_all_logits(spec: Spec) -> bool:
    """Whether the head runs on every token of a prompt."""
    first = LAST_LOGITS_OF.get(spec.facts.model_type, LAST_LOGITS)
    return spec.encoded is None and transformers_version(spec) < first


def all_logits(run: Round) -> int:
    """The logits of whole prompts, at their cast to fp32 where there is one."""
    recipe = run.step.recipe
    given, item = returned_item(run.spec, recipe), 2 if recipe.autocast else recipe.weights
    return run.made + (run.made // given * item if given != item else 0)


def cached(run: Round, tokens: int) -> int:
    """The keys and values of all layers for so many tokens of every row, and for what an encoder has read."""
    return _of_a_layer(run, tokens) * language(run.spec.facts).layers


def _of_a_layer(run: Round, tokens: int) -> int:
    facts, recipe = local(language(run.spec.facts), run.spec.tensor_parallel), run.step.recipe
    read = run.spec.encoded.seq_len if run.spec.encoded is not None else 0
    return layer_cache(facts, _item(facts, recipe), run.spec.micro_batch_size * (tokens + read))


def _item(facts: ModelFacts, recipe: Recipe) -> int:
    """Bytes of a key or a value: autocast's products are half precision, but rotary positions of an fp32 stream make
    keys of it, and the cache takes their dtype for both."""
    if not recipe.autocast:
        return recipe.weights
    how = frame(facts)
    return 2 if how.places_once or how.half_cache else stream_bytes(facts, recipe)


def beside(run: Round) -> int:
    """What a layer makes beside the keys and values of all tokens: keys or values once more while the newest are
    appended, or copies of both for all heads of their groups, or without what pads them."""
    facts, recipe = local(language(run.spec.facts), run.spec.tensor_parallel), run.step.recipe
    one = _of_a_layer(run, answered(run))
    if recipe.attention == "flash_attention_2":
        return one if recipe.padded else one // 2
    packs = recipe.attention == "sdpa" and recipe.transformers >= PACKS_GROUPS
    return one // 2 if packs or not repeats(facts, recipe) else one // facts.kv_heads * facts.heads
