"""A vision-language model's language model as a model of its own, whose layers the rest of the estimate counts."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.memo import Memo
from lintfit.memory.spec import Encoded, Spec

_LANGUAGE: Memo[ModelFacts] = Memo()


def language(facts: ModelFacts) -> ModelFacts:
    """The facts with ``model_type`` and config of the language model; the same object for the same facts.

    A model that only reads is its own language model.
    """
    if not facts.text_type:
        return facts
    return _LANGUAGE.get(facts, "", lambda: _text(facts))


def _text(facts: ModelFacts) -> ModelFacts:
    return replace(
        facts,
        model_type=facts.text_type,
        config=facts.text_config,
        code=facts.text_code,
        vision=None,
        text_type="",
    )


_HALVES: Memo[tuple[ModelFacts, ModelFacts]] = Memo()


def halves(facts: ModelFacts) -> tuple[ModelFacts, ModelFacts] | None:
    """The encoder and the decoder as models of their own, each with all of the parameters; None for any other model."""
    from lintfit.memory.activations.families import traits

    both = traits(facts).halves
    if both is None:
        return None

    def made() -> tuple[ModelFacts, ModelFacts]:
        encoder, decoder = (
            replace(facts, layers=layers, config={**facts.config, "is_decoder": decodes})
            for layers, decodes in zip(both.layers(facts), (False, True), strict=True)
        )
        return encoder, decoder

    return _HALVES.get(facts, "", made)


def of_decoder(spec: Spec) -> Spec:
    """What the decoder of an encoder and a decoder runs; any other model's spec as it is.

    Its own tokens come without a mask; the encoder's are in ``Spec.encoded``.
    """
    found = halves(spec.facts) if spec.encoded is None else None
    if found is None:
        return spec
    read = Encoded(spec.seq_len, spec.padded_batches)
    own = spec.decoder_seq_len or spec.seq_len
    return replace(spec, facts=found[1], encoded=read, seq_len=own, decoder_seq_len=None, padded_batches=False)
